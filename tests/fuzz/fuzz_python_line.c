/* Any bytes as the line table of a Python code object, of each version that has
 * a format of its own. */
#include "fuzz.h"
#include "python_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {0x0309, 0x030a, 0x030b, 0x030d};
    struct fuzz_input input = {data, size};
    struct mt_code_definition code = {0};
    size_t length;

    code.python_version = versions[fuzz_number(&input, 1) % 4];
    code.first_line = (uint32_t)fuzz_number(&input, 4);
    uint8_t *table = fuzz_copy(&input, input.left, &length);
    code.table_bytes = (uint32_t)length;
    for (uint32_t offset = 0; offset < 64; offset += 6)
        (void)mt_python_line(&code, table, offset);
    (void)mt_python_line(&code, table, UINT32_MAX);
    free(table);
    return 0;
}
