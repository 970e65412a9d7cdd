/* Writes a shared library of x86-64 Linux as a file, without compiler or linker. Its functions are
 * stubs: they answer a constant, number what they make, or jump to the function of the same name in
 * another library. */
#ifndef MT_ELF_WRITER_H
#define MT_ELF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "elf_stub.h"
#include "status.h"

/* All texts are borrowed for the call. A name may come only once. */
struct mt_elf_recipe {
    const char *soname;
    const char *const *needed; /* names, or absolute paths */
    size_t needed_count;
    const char *search;         /* where names are looked for (DT_RPATH); NULL: nowhere special */
    const char *target;         /* one of `needed`: what stubs jump to; NULL: none does */
    const char *target_version; /* of the functions there; NULL: none */
    const struct mt_stub *stubs;
    size_t stub_count;
};

/* Adds the bytes of the library to `out`, which was empty. O(stubs). MT_ERR_USAGE: a recipe that
 * cannot be (a jump without target, more than MT_MAX_STUBS); MT_ERR_MEMORY. */
enum { MT_MAX_STUBS = 1 << 20 };
enum mt_status mt_elf_write(const struct mt_elf_recipe *recipe, struct mt_buf *out,
                            struct mt_error *error) MT_MUST_USE;

#endif
