/* Values of a pickle, and the hooks that can replace containers. */
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
    MT_PICKLE_BIG,   /* an integer beyond 64 bits: its value is lost */
    MT_PICKLE_FLOAT, /* bits of a double */
    MT_PICKLE_TEXT,  /* bits: id (mt_pickle_text); equal texts have equal ids */
    MT_PICKLE_BYTES, /* like TEXT */
    MT_PICKLE_LIST,  /* these four: see mt_pickle_items */
    MT_PICKLE_TUPLE,
    MT_PICKLE_SET,
    MT_PICKLE_DICT,
    MT_PICKLE_HOST /* a hook's replacement of a container: the hook defines `host` and 48 `bits` */
};

struct mt_pickle_value {
    uint64_t bits;
    uint8_t kind; /* enum mt_pickle_kind */
    uint8_t host; /* for the hook's use; 0 unless HOST */
};

struct mt_pickle;

/* Called for each list, tuple and dictionary when it is complete, before it becomes part of another
 * container. May be called again for a container that was not replaced, or for a list whose first
 * result was not used. `items` are borrowed; those of a dictionary are key, value, key, value
 * (count includes both), in file order, so the last of several equal keys wins. The `bits` of a
 * dictionary stand for its keys and their order; 0 = unknown. The hook may replace the container by
 * setting *value to a HOST value; a replaced container cannot change any more. */
struct mt_pickle_hooks {
    void *context;
    enum mt_status (*complete)(void *context, struct mt_pickle *pickle,
                               const struct mt_pickle_value *items, size_t count,
                               struct mt_pickle_value *value, struct mt_error *error);
    /* Optional (may be NULL), for speed only: appends `items` to a list of records that the hook
     * owns. *list is an empty LIST, or the HOST value that this hook returned for it before. Sets
     * *taken, or changes nothing. */
    enum mt_status (*append)(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *list, bool *taken, struct mt_error *error);
    /* Bit i: equal lists that became HOST values of kind i are interchangeable, so `complete` need
     * not be called for each of them. For speed only. */
    uint32_t interchangeable;
    /* Texts that get the ids 0, 1, 2, ... before reading starts. */
    const char *const *texts;
    size_t text_count;
    /* Disables the fast paths for common shapes; for tests. The result is the same. */
    bool no_short_cuts;
};

#endif
