/* A holding as a row that can be summed: its key is frames, phase and role. */
#ifndef MT_ANALYZER_ATTRIBUTED_H
#define MT_ANALYZER_ATTRIBUTED_H

#include "holding.h"
#include "phases.h"
#include "report.h"
#include "site.h"
#include "util.h"

struct mt_block_life;

/* The live blocks of one device at one event, grouped. The pass `blocks` copies them at the chosen
 * instants. */

/* The blocks of one device after one event. */
struct mt_snapshot {
    uint64_t event; /* wanted: the last event <= this */
    uint16_t device;
    struct mt_holding *holdings;
    uint32_t holding_count;
    uint64_t bytes; /* their sum */
    uint64_t waiting_blocks, waiting_bytes, waiting_requested_bytes;
    uint64_t pool_role_bytes[MT_ROLE_COUNT]; /* of blocks in private pools */
};

/* Snapshots in the order of `snapshots`: by event, then device. For qsort and bsearch. */
static inline int mt_snapshot_order(const void *a, const void *b)
{
    const struct mt_snapshot *x = a, *y = b;

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (int)x->device - (int)y->device;
}

struct mt_attribution {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    struct mt_site_table sites;
    bool has_stacks;       /* any were recorded */
    bool names_operations; /* mt_header_names_operations */
    bool is_outside; /* of memory outside of the framework, which no node of backward allocates */
    uint64_t first_event; /* earlier blocks are the state at the start of the trace */
};

void mt_attribution_init(struct mt_attribution *attribution, struct mt_arena *arena,
                         const struct mt_symbols *symbols, const struct mt_phases *phases);
void mt_attribution_release(struct mt_attribution *attribution);

struct mt_attributed {
    struct mt_site site; /* of its stack, or of its owner's */
    uint32_t stack;      /* of its largest holding */
    const char *phase;
    int64_t step;
    enum mt_role role;
    bool initial;  /* alive when the trace began */
    bool backward; /* allocated in backward, without a stack: by the autograd engine */
    enum mt_tie tie;
    uint32_t tied; /* see mt_holding */
    int64_t bytes, blocks;
    uint64_t largest; /* the holding that gives stack and role */
    /* live blocks at an instant */
    int32_t birth; /* the phase that a person would name */
    uint64_t requested_bytes, block_bytes;
    bool several_roles, several_phases;
    const char *tag; /* its group, if the question is about tags; otherwise NULL */
    uint32_t tag_id; /* equal for equal groups, in order of their first blocks */
};

struct mt_attributed mt_attributed_of(const struct mt_attribution *attribution,
                                      const struct mt_holding *holding);
struct mt_attributed mt_attributed_of_life(const struct mt_attribution *attribution,
                                           const struct mt_block_life *life);

/* For qsort: by place and role; by bytes, largest first. */
int mt_attributed_by_source(const void *a, const void *b);
int mt_attributed_by_size(const void *a, const void *b);

/* Adds a row to one with an equal key. */
void mt_attributed_absorb(struct mt_attributed *row, const struct mt_attributed *other);

/* Returns how many of the sorted rows get a line of their own: at most `most`, and none below half
 * a percent of the largest; a single remaining row also gets its line. */
size_t mt_attributed_worth(const struct mt_attributed *rows, size_t count, size_t most);

/* Returns the operation that made the row's largest blocks: "embedding functional.py:2567". Returns
 * NULL if the site is that operation, or if there is none. */
const char *mt_attributed_operation(const struct mt_attribution *attribution,
                                    const struct mt_attributed *row);

/* Returns the site in words. For blocks without a stack, describes what is known about them
 * instead. */
const char *mt_attributed_site(const struct mt_attribution *attribution,
                               const struct mt_attributed *row);

/* Turns holdings into sums by site, phase of allocation and role, at one instant or for the
 * difference between two. */

/* Every site of a snapshot, largest first; bytes and blocks sum to those of the snapshot. */
void mt_attribute_sites(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                        struct mt_site_use **sites, uint32_t *count);

/* The sites behind the difference from one snapshot (NULL = nothing) to another: at most `most`
 * rows and one for the rest, which sum to it. */
void mt_attribute_change(struct mt_attribution *attribution, const struct mt_snapshot *from,
                         const struct mt_snapshot *to, uint32_t most,
                         struct mt_contribution **contributions, uint32_t *count);

#endif
