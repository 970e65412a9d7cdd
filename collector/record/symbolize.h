/* Maps an address in an executable or shared library to functions, files and lines. Uses DWARF if
 * it is available (in the file, or in /usr/lib/debug by build id or debug link), otherwise symbol
 * tables (.symtab, .dynsym, .gnu_debugdata). Reads only local files and contacts no servers.
 *
 * Without libdw, nothing is found. The program loads this code as a module (symbolize_loaded.c). */
#ifndef MT_COLLECTOR_SYMBOLIZE_H
#define MT_COLLECTOR_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "symbols.h"

struct mt_code_file;
struct mt_demangler;

/* Identifies the requested file. */
struct mt_code_file_id {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_bytes;    /* 0 = not known: not_after_unix_s identifies the file */
    int64_t not_after_unix_s; /* without a build id, the file must not be newer than this */
};

enum mt_code_file_state {
    MT_CODE_FOUND,
    MT_CODE_MISSING, /* there is no such file, or it cannot be read */
    MT_CODE_CHANGED  /* the file exists, but is not the one that was recorded */
};

/* A source position. If an address has several places, the outermost is the function that contains
 * the machine code; the others were inlined into it. */
struct mt_code_position {
    const char *function; /* demangled if the machine has a C++ library */
    const char *file;     /* absolute as far as it is known, NULL = unknown */
    uint32_t line;        /* 0 = unknown */
};

#define MT_MAX_CODE_POSITIONS 32u

/* Returns whether libdw is in the program, or its module finds it. If not, `error` (may be NULL)
 * has the reason, and what to do. */
bool mt_symbolize_available(struct mt_error *error);

/* *file is NULL unless *state is FOUND. The demangler is borrowed. */
enum mt_status mt_code_file_open(const struct mt_code_file_id *id, struct mt_demangler *demangler,
                                 struct mt_code_file **file,
                                 enum mt_code_file_state *state) MT_MUST_USE;
void mt_code_file_close(struct mt_code_file *file); /* NULL is fine */

/* Returns the number of places at an address (of the file's symbol table), outermost first; 0 if
 * no named symbol contains it. Strings are valid until the next call. The first call for a file
 * reads its symbol table. */
size_t mt_code_file_positions(struct mt_code_file *file, uint64_t address,
                              struct mt_code_position places[MT_MAX_CODE_POSITIONS]);

/* Finds the name of the function at an address, in a sorted symbol table. */

struct mt_symbol {
    uint64_t address, size_bytes; /* address first: sorted.h */
    const char *name;             /* borrowed */
    uint32_t rank;                /* if several names have one address, the highest rank wins */
    bool is_open; /* the size is unknown (assembly); size_bytes is its upper bound */
};

/* Zeroed memory is empty. */
struct mt_symbol_index {
    struct mt_symbol *symbols;
    size_t count, capacity;
};

enum mt_status mt_symbol_index_add(struct mt_symbol_index *index,
                                   struct mt_symbol symbol) MT_MUST_USE;

/* Call it once, after the last addition. */
void mt_symbol_index_sort(struct mt_symbol_index *index);

/* Returns the name of the symbol that contains `address`, or NULL between symbols: a wrong name
 * would be worse. A symbol without a size extends to the next one. O(log n). */
const char *mt_symbol_index_find(const struct mt_symbol_index *index, uint64_t address);

void mt_symbol_index_release(struct mt_symbol_index *index);

#endif
