/* Any bytes as the call frame instructions of a module. */
#include "cfi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct mt_cfi_program program = {0};

    /* Either processor; the bytes stay those of the corpus. */
    program.registers = size % 2 ? &mt_cfi_aarch64 : &mt_cfi_x86_64;
    program.begin = fuzz_number(&input, 4);
    uint64_t pc = program.begin + fuzz_number(&input, 2);
    program.code_align = fuzz_number(&input, 1);
    program.data_align = (int8_t)fuzz_number(&input, 1);
    size_t length = fuzz_number(&input, 1);
    uint8_t *initial = fuzz_copy(&input, length, &length);
    program.initial = (struct mt_cursor){initial, initial + length, false};
    uint8_t *own = fuzz_copy(&input, input.left, &length);
    program.own = (struct mt_cursor){own, own + length, false};
    struct mt_cfi_rule rule = mt_cfi_execute(&program, pc);
    FUZZ_CHECK(rule.base <= MT_CFI_GUESS && rule.fp <= MT_CFI_LOST);
    free(initial);
    free(own);
    return 0;
}
