/* Matches the places of two versions of a program: by functions and files first, then by the order
 * of lines, so a line that moved still matches. Places with equal functions and files are aligned
 * in order; among these alignments, the one with the most equal lines, sizes and numbers of blocks
 * is chosen. */
#ifndef MT_ANALYZER_DIFF_MATCH_H
#define MT_ANALYZER_DIFF_MATCH_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

#define MT_NO_PARTNER SIZE_MAX

struct mt_place_item {
    const char *key;   /* everything except lines */
    uint32_t lines[2]; /* outer first */
    uint64_t bytes, blocks;
    size_t partner; /* index on the other side, or MT_NO_PARTNER */
};

/* Order of items: by key, then lines. */
int mt_place_item_order(const struct mt_place_item *a, const struct mt_place_item *b);

/* Sets `partner` of both sides, which are sorted and have no equal items. O(n), except for places
 * of one key, which cost the product of their numbers. */
void mt_match_places(struct mt_place_item *a, size_t a_count, struct mt_place_item *b,
                     size_t b_count);

#endif
