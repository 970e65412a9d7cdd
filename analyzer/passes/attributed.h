/* A holding as a row that can be summed up: frames, phase and role as its key. */
#ifndef MT_ANALYZER_ATTRIBUTED_H
#define MT_ANALYZER_ATTRIBUTED_H

#include "holding.h"
#include "phases.h"
#include "site.h"
#include "util.h"

struct mt_attribution {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    struct mt_site_table sites;
    bool has_stacks;       /* any were recorded */
    bool names_operations; /* mt_header_names_operations */
    bool is_outside;       /* of memory beside the framework: no node of its backward made it */
    uint64_t first_event;  /* what was born before is the state that the trace began with */
};

enum mt_status mt_attribution_init(struct mt_attribution *attribution, struct mt_arena *arena,
                                   const struct mt_symbols *symbols,
                                   const struct mt_phases *phases) MT_MUST_USE;
void mt_attribution_release(struct mt_attribution *attribution);

struct mt_attributed {
    struct mt_site site; /* of its stack, or of what it belongs to */
    uint32_t stack;      /* of its largest holding */
    const char *phase;
    int64_t step;
    enum mt_role role;
    bool initial;  /* alive when the trace began */
    bool backward; /* born in backward: who allocates without a stack there */
    enum mt_tie tie;
    uint32_t tied; /* stack of what it belongs to, if it has none */
    int64_t bytes, blocks;
    uint64_t largest; /* holding: it gives stack and role */
    /* of what is alive at an instant */
    int32_t birth; /* phase that a person would name */
    uint64_t requested_bytes, block_bytes;
    bool several_roles, several_phases;
};

struct mt_attributed mt_attributed_of(const struct mt_attribution *attribution,
                                      const struct mt_holding *holding);
struct mt_block_life;
struct mt_attributed mt_attributed_of_life(const struct mt_attribution *attribution,
                                           const struct mt_block_life *life);

/* Equal: the same site, phase name and sort of origin. */
int mt_attributed_by_place(const struct mt_attributed *x, const struct mt_attributed *y);
/* For qsort: by place and role; by size of bytes, largest first. */
int mt_attributed_by_source(const void *a, const void *b);
int mt_attributed_by_size(const void *a, const void *b);

/* Adds a row to one with an equal key. */
void mt_attributed_absorb(struct mt_attributed *row, const struct mt_attributed *other);

/* How many of sorted rows deserve a line of their own: not more than `most`, none
 * below half a percent of the largest; a single row that is left over also gets its line. */
size_t mt_attributed_worth(const struct mt_attributed *rows, size_t count, size_t most);

static inline uint64_t mt_attributed_size(const struct mt_attributed *row)
{
    return mt_magnitude(row->bytes);
}

/* What made its largest blocks, in words: "embedding functional.py:2567"; NULL if its site says it,
 * if nothing does, and without memory. */
const char *mt_attributed_operation(const struct mt_attribution *attribution,
                                    const struct mt_attributed *row);

/* The site in words; blocks without a stack are told apart by what is known.
 * NULL without memory. */
const char *mt_attributed_site(const struct mt_attribution *attribution,
                               const struct mt_attributed *row);
#endif
