/* Finds the name of the function at an address, in a sorted symbol table. */
#ifndef MT_COLLECTOR_SYMBOL_INDEX_H
#define MT_COLLECTOR_SYMBOL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "symbols.h"

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
