/* A bounded reader of Python pickles, protocols 0 to 5, for plain data. It never executes
 * anything: an opcode that would import, call or build an object is an error that names the
 * opcode and its offset.
 *
 * It reads the input in one pass. A hook of the caller may replace a container by a HOST value as
 * soon as the container is complete, so that a long list of records never exists as a tree of
 * objects. Memory: at most 128 bytes for each byte of (hostile) input, about one byte for real
 * snapshots. */
#ifndef MT_COLLECTOR_PICKLE_H
#define MT_COLLECTOR_PICKLE_H

#include "feed.h"
#include "pickle_value.h"

/* Reads one pickle up to its STOP; *root is its value. `hooks` may be NULL. On success the caller
 * owns *pickle, which holds texts and containers. */
enum mt_status mt_pickle_read(struct mt_feed *feed, const struct mt_pickle_hooks *hooks,
                              struct mt_pickle **pickle, struct mt_pickle_value *root,
                              struct mt_error *error) MT_MUST_USE;

void mt_pickle_free(struct mt_pickle *pickle); /* NULL is fine */

/* Returns the items of a LIST, TUPLE, SET or DICT, in the order in which hooks get them; NULL and 0
 * for other kinds. Valid until the next call of a hook returns. A container can contain itself. */
const struct mt_pickle_value *mt_pickle_items(const struct mt_pickle *pickle,
                                              struct mt_pickle_value value, size_t *count);

/* Returns NUL-terminated text or bytes; "" for other kinds. */
const char *mt_pickle_text(const struct mt_pickle *pickle, struct mt_pickle_value value,
                           size_t *length);

/* Number of decoded bytes up to and including STOP. */
uint64_t mt_pickle_bytes(const struct mt_pickle *pickle);

/* Returns true if these first bytes look like a pickle of a list or dictionary. */
bool mt_pickle_probe(const void *bytes, size_t length);

#endif
