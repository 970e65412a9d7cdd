/* Writes a shared library of x86-64 Linux as a file, without a compiler or linker. Its functions
 * are stubs: each returns a constant, returns consecutive numbers as handles, or jumps to the
 * function of the same name in another library. */
#ifndef MT_ELF_WRITER_H
#define MT_ELF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "status.h"

/* The functions of a library, and their machine code. */

enum mt_stub_kind {
    MT_STUB_ANSWER,  /* returns `answer` */
    MT_STUB_COUNTER, /* stores the next of 1, 2, 3, ... at the address in its first argument, and
                        returns 0 */
    MT_STUB_JUMP     /* jumps to the function of this name in the target */
};

struct mt_stub {
    const char *name;
    const char *version; /* NULL: none */
    enum mt_stub_kind kind;
    int32_t answer;
};

/* All texts are borrowed for the call. Names must be distinct. */
struct mt_elf_recipe {
    const char *soname;
    const char *const *needed; /* names, or absolute paths */
    size_t needed_count;
    const char *search;         /* folders in which `needed` is searched (DT_RPATH); NULL: none */
    const char *target;         /* the library in `needed` to which stubs jump; NULL: none */
    const char *target_version; /* of the functions there; NULL: none */
    const struct mt_stub *stubs;
    size_t stub_count;
};

/* Adds the bytes of the library to `out`, which must be empty. O(stubs). MT_ERR_USAGE: an invalid
 * recipe (a jump without target, more than MT_MAX_STUBS); MT_ERR_MEMORY. */
enum mt_status mt_elf_write(const struct mt_elf_recipe *recipe, struct mt_buf *out,
                            struct mt_error *error) MT_MUST_USE;

#endif
