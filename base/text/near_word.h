/* "Did you mean": finds the known word nearest to a misspelled one. Allocates nothing. */
#ifndef MT_BASE_NEAR_WORD_H
#define MT_BASE_NEAR_WORD_H

#include <stddef.h>

/* Returns the name that is nearest to `word`, or NULL. It differs by at most one edit, or by at
 * most two if `word` has six bytes or more. Words and names longer than 40 bytes never match. */
const char *mt_did_you_mean(const char *word, const char *const *names, size_t count);

/* The same for the first `length` bytes of `word`. */
const char *mt_did_you_mean_part(const char *word, size_t length, const char *const *names,
                                 size_t count);

#endif
