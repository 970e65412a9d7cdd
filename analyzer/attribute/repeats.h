/* Finds contiguous repetitions in a sequence of tokens: "e abc abc abc n" has abc three times. The
 * parameters of a model, in the order in which they were made, repeat in this way, layer by
 * layer. */
#ifndef MT_ANALYZER_REPEATS_H
#define MT_ANALYZER_REPEATS_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* Longer sequences are skipped, because the time of the search is quadratic in their length. */
#define MT_REPEATS_TOKENS_MAX 8192
#define MT_REPEATS_MAX        64

struct mt_repeat {
    size_t begin, period, times; /* tokens [begin, begin + period * times) */
    size_t more; /* number of further tokens that continue the period but do not complete it: the
                    repeat may begin up to this many tokens later */
};

struct mt_repeats {
    struct mt_repeat list[MT_REPEATS_MAX]; /* in order, without overlap */
    uint32_t count;
};

/* Finds the repeat that covers the most tokens, then those to its left and to its right. Among
 * equals, chooses the one with the shortest period, then the first. A period has at least two
 * different tokens, because a repeated size alone is no evidence. */
void mt_repeats_find(const uint64_t *tokens, size_t count, struct mt_repeats *repeats);

#endif
