#include "symbol_index.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sorted.h"

/* A symbol that contains an address is at most this many symbols before it, because only assembly
 * nests symbols. */
enum { LOOK_BACK = 32 };

enum mt_status mt_symbol_index_add(struct mt_symbol_index *index, struct mt_symbol symbol)
{
    if (mt_grow(&index->symbols, &index->capacity, index->count + 1, sizeof *index->symbols))
        return MT_ERR_MEMORY;
    index->symbols[index->count++] = symbol;
    return MT_OK;
}

/* Sorts by address. Among symbols at one address the best one is last, because the search finds the
 * last one first. Plain names are better than names with underscores. */
static int compare(const void *left, const void *right)
{
    const struct mt_symbol *a = left, *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->name, b->name);
}

void mt_symbol_index_sort(struct mt_symbol_index *index)
{
    if (index->count)
        qsort(index->symbols, index->count, sizeof *index->symbols, compare);
}

const char *mt_symbol_index_find(const struct mt_symbol_index *index, uint64_t address)
{
    size_t above =
        mt_sorted_count_to(index->symbols, index->count, sizeof *index->symbols, address);

    for (size_t i = above; i > 0 && above - i < LOOK_BACK; i--) {
        const struct mt_symbol *symbol = &index->symbols[i - 1];
        bool is_nearest = symbol->address == index->symbols[above - 1].address;
        if (address - symbol->address < symbol->size_bytes && (is_nearest || !symbol->is_open))
            return symbol->name;
    }
    return NULL;
}

void mt_symbol_index_release(struct mt_symbol_index *index)
{
    free(index->symbols);
    memset(index, 0, sizeof *index);
}
