/* Any bytes as a file of machine code with symbols and DWARF. libdw and libelf are
 * not instrumented, so a fuzzer sees little of the way, but finds what crashes. */
#define _GNU_SOURCE /* memfd_create */
#include <sys/mman.h>
#include <unistd.h>

#include "demangle.h"
#include "fuzz.h"
#include "symbolize.h"

static void look_around(struct mt_code_file *file)
{
    struct mt_code_position places[MT_MAX_CODE_POSITIONS];

    for (uint64_t address = 0x1000; address < 0x1400; address += 37) {
        size_t count = mt_code_file_positions(file, address, places);
        FUZZ_CHECK(count <= MT_MAX_CODE_POSITIONS);
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(places[i].function && strlen(places[i].function) <= MT_MAX_DEMANGLED_BYTES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mt_demangler demangler;
    struct mt_code_file_id id = {.not_after_unix_s = INT64_MAX};
    struct mt_code_file *file = NULL;
    enum mt_code_file_state state;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[40];

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    id.path = path;
    if (mt_code_file_open(&id, &demangler, &file, &state) == MT_OK && file)
        look_around(file);
    mt_code_file_close(file);
    close(fd);
    return 0;
}
