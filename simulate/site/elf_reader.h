/* The loader's information in a shared library of x86-64 Linux: its name, the libraries that it
 * needs, the functions that it defines and those that it imports, with their versions. The file may
 * be hostile: every offset and size is checked, and nothing is executed or mapped. */
#ifndef MT_ELF_READER_H
#define MT_ELF_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "status.h"

struct mt_elf_symbol {
    const char *name;
    const char *version; /* NULL: none */
    const char *library; /* library that defines the version; NULL: none, or the symbol is defined
                            in this file */
    bool is_defined;
};

/* All texts live in the arena. */
struct mt_elf {
    const char *soname; /* NULL: none */
    const char **needed;
    size_t needed_count;
    struct mt_elf_symbol *symbols; /* in the order of the file */
    size_t symbol_count;
    struct mt_arena arena;
};

/* Reads the tables of a file, found through its section headers. Takes memory for its dynamic
 * symbols and their names. MT_ERR_FORMAT: damaged, or not an ELF file; MT_ERR_UNSUPPORTED: not a
 * library of x86-64; MT_ERR_IO. On failure there is nothing to release. */
enum mt_status mt_elf_read(const char *path, struct mt_elf *elf,
                           struct mt_error *error) MT_MUST_USE;

void mt_elf_release(struct mt_elf *elf);

#endif
