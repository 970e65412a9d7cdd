/* Chooses which points of a grid to evaluate in order to find, for each card, the points that fit
 * and that no other point beats. It runs nothing: the caller evaluates the points of a round, and
 * requests the next one.
 *
 * Searched axes ascend, and a point needs at least as much memory as a point whose values are all
 * smaller or equal. The values of the first searched axis are the sizes. A combination has one
 * value of each other axis, and contains a point for each size. */
#ifndef MT_CLI_SEARCH_H
#define MT_CLI_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_MAX_SEARCH_AXES = 4, MT_MAX_SEARCH_CARDS = 32 };
#define MT_SEARCH_NONE SIZE_MAX

enum mt_search_state {
    MT_SEARCH_UNKNOWN,
    MT_SEARCH_NEED,      /* its need is known */
    MT_SEARCH_TOO_LARGE, /* ran out of memory on a device as large as the largest card */
    MT_SEARCH_FAILED     /* nothing is known, also not about larger points */
};

struct mt_search_point {
    enum mt_search_state state;
    uint64_t need_bytes;
    uint32_t cards; /* bit k: it fits on card k */
};

struct mt_search_axis {
    size_t count;
    const uint64_t *amounts; /* of a searched axis, ascending; NULL: the values are a list, whose
                                earlier values are preferred */
};

struct mt_search_combination {
    size_t at[MT_MAX_SEARCH_AXES]; /* of the sizes: 0 */
    uint64_t devices;              /* set by the caller; fewer are better */
    bool is_in_shard;
    bool is_begun, is_done;
    bool is_contradicted;               /* a larger value needed less: every value is evaluated */
    bool gave_up;                       /* too many points failed */
    size_t best[MT_MAX_SEARCH_CARDS];   /* index of the largest size that fits, or NONE */
    bool is_exact[MT_MAX_SEARCH_CARDS]; /* larger values do not fit; none of them failed */
    unsigned char guesses[MT_MAX_SEARCH_CARDS];
};

struct mt_search {
    /* set by the caller before mt_search_init */
    struct mt_search_axis axes[MT_MAX_SEARCH_AXES];
    size_t axis_count, card_count;
    uint64_t card_bytes[MT_MAX_SEARCH_CARDS];
    size_t shard, shard_count; /* this part of the combinations; shard_count 0: all of them */
    /* Called once for a combination that needs a value: sets the points of it that are known
     * from elsewhere. NULL: none are. */
    void (*recall)(void *context, size_t combination);
    void *context;
    /* set by mt_search_init */
    size_t size_axis, size_count;   /* NONE: no axis is searched, size_count is 1 */
    struct mt_search_point *points; /* of the grid; the last axis changes fastest */
    size_t point_count;
    struct mt_search_combination *combinations;
    size_t combination_count;
};

void mt_search_init(struct mt_search *search);
void mt_search_release(struct mt_search *search);

/* Returns the index of a point of the grid: a size of a combination. */
size_t mt_search_point_of(const struct mt_search *search, size_t combination, size_t size);

/* Splits the index of a point into one index for each axis. */
void mt_search_split(const struct mt_search *search, size_t point, size_t at[MT_MAX_SEARCH_AXES]);

/* Fills the points of the next round, at most `most` of them, and returns their number. 0: the
 * search is complete, or `most` is 0. The round depends only on the states of the points. */
size_t mt_search_next(struct mt_search *search, size_t most, size_t *round);

/* Fills the combinations whose best point on this card is not beaten, and returns their number. A
 * combination beats another one if it comes first in every list, has no smaller value on any
 * searched axis, and no more devices. */
size_t mt_search_front(const struct mt_search *search, size_t card, size_t *combinations);

#endif
