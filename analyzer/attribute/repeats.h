/* What comes again and again in a sequence of tokens, without anything between:
 * "e abc abc abc n" has abc three times. The parameters of a model in the order in
 * which they were made repeat like that, a layer after another. */
#ifndef MT_ANALYZER_REPEATS_H
#define MT_ANALYZER_REPEATS_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* Longer sequences are not looked at: the search takes the square of their length. */
#define MT_REPEATS_TOKENS_MAX 8192
#define MT_REPEATS_MAX        64

struct mt_repeat {
    size_t begin, period, times; /* tokens [begin, begin + period * times) */
    size_t more; /* tokens after those that go on with the period, but not to its end: it may
                    as well begin that much later */
};

struct mt_repeats {
    struct mt_repeat list[MT_REPEATS_MAX]; /* in order, without overlap */
    uint32_t count;
};

/* The repeat that covers most tokens, then the same to its left and to its right. Of
 * equal ones that of the shortest period, then the first. A period has at least two
 * tokens, and two that differ: that one size is there twice says nothing. */
void mt_repeats_find(const uint64_t *tokens, size_t count, struct mt_repeats *repeats);

#endif
