/* Any bytes as a shared library of somebody's PyTorch (elf_reader.h), and what is wanted of it. */
#define _GNU_SOURCE /* memfd_create */
#include <sys/mman.h>
#include <unistd.h>

#include "elf_reader.h"
#include "fuzz.h"
#include "wheel_libraries.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_wanted wanted = {0};
    struct mt_elf elf;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[40];

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mt_elf_read(path, &elf, NULL) == MT_OK) {
        for (size_t i = 0; i < elf.symbol_count; i++)
            FUZZ_CHECK(*elf.symbols[i].name);
        mt_elf_release(&elf);
    }
    if (mt_wanted_add_file(&wanted, path, NULL) == MT_OK)
        mt_wanted_sort(&wanted);
    for (size_t i = 1; i < wanted.count; i++)
        FUZZ_CHECK(strcmp(wanted.functions[i - 1].library, wanted.functions[i].library) <= 0);
    mt_wanted_release(&wanted);
    close(fd);
    return 0;
}
