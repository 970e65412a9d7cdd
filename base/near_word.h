/* "Did you mean": the known word that is nearest to a misspelt one. Takes no memory. */
#ifndef MT_BASE_NEAR_WORD_H
#define MT_BASE_NEAR_WORD_H

#include <stddef.h>

/* The nearest of `names` to `word` within 2 edits (a third of its length), or
 * NULL. Words beyond 40 bytes have none. */
const char *mt_did_you_mean(const char *word, const char *const *names, size_t count);

/* The same for `length` bytes of `word`, which may go on behind them. */
const char *mt_did_you_mean_part(const char *word, size_t length, const char *const *names,
                                 size_t count);

#endif
