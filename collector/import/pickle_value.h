/* Values of a pickle, and the hooks that may turn containers into something else. */
#ifndef MT_COLLECTOR_PICKLE_VALUE_H
#define MT_COLLECTOR_PICKLE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum mt_pickle_kind {
    MT_PICKLE_NONE,
    MT_PICKLE_BOOL,  /* bits: 0 or 1 */
    MT_PICKLE_INT,   /* bits: int64_t */
    MT_PICKLE_UINT,  /* bits: uint64_t beyond INT64_MAX */
    MT_PICKLE_BIG,   /* an integer that 64 bits do not hold: its value is lost */
    MT_PICKLE_FLOAT, /* bits of a double */
    MT_PICKLE_TEXT,  /* bits: id, see mt_pickle_text; equal texts, equal ids */
    MT_PICKLE_BYTES, /* as TEXT */
    MT_PICKLE_LIST,  /* these four: see mt_pickle_items */
    MT_PICKLE_TUPLE,
    MT_PICKLE_SET,
    MT_PICKLE_DICT,
    MT_PICKLE_HOST /* what a hook made of a container: `host`, 48 `bits` */
};

struct mt_pickle_value {
    uint64_t bits;
    uint8_t kind; /* enum mt_pickle_kind */
    uint8_t host; /* for the hook's use; 0 unless HOST */
};

struct mt_pickle;

/* Called for each list, tuple and dictionary when it is complete, that is before
 * it becomes part of another container; now and then more than once if it was
 * left alone, and for a list whose first result was not used. `items` are
 * borrowed; those of a dictionary are key, value, key, value (count = both), in
 * file order, so that of equal keys the last one holds. The hook may replace
 * the container by setting *value to a HOST value; after that it cannot change
 * any more. */
struct mt_pickle_hooks {
    void *context;
    enum mt_status (*complete)(void *context, struct mt_pickle *pickle,
                               const struct mt_pickle_value *items, size_t count,
                               struct mt_pickle_value *value, struct mt_error *error);
    /* speed only, may be NULL: a list of records that the hook keeps itself gets
     * `items` more. *list is an empty LIST, or the HOST value that this hook
     * made of it before. Sets *taken, or leaves all as it was. */
    enum mt_status (*append)(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *list, bool *taken, struct mt_error *error);
    /* Texts that get the ids 0, 1, 2, ... before anything is read. */
    const char *const *texts;
    size_t text_count;
    /* Do not use the short cuts for common shapes: for tests, same result. */
    bool no_short_cuts;
};

#endif
