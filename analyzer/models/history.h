/* The history of a device as columns of changes, and its groups. */
#ifndef MT_ANALYZER_HISTORY_H
#define MT_ANALYZER_HISTORY_H

#include "arena.h"
#include "blocks_model.h"
#include "counters.h"
#include "layers_model.h"
#include "symbols.h"

struct mt_history_builder;

/* What the blocks of a group have in common. */
enum mt_history_detail {
    MT_HISTORY_BY_SIZE,  /* stack, phase and role, and the size of each */
    MT_HISTORY_BY_STACK, /* of several sizes */
    MT_HISTORY_BY_SITE,  /* of several stacks with one site */
    MT_HISTORY_BY_ROLE   /* all small blocks of a role */
};

/* Holders of memory. Equal words are equal pointers; they live as long as the history's arena. */
struct mt_history_group {
    const char *site;                /* as in `memtrace live`; "" = several */
    const char *phase;               /* name, at allocation; "" = none; NULL = several */
    const char *stream, *pool, *tag; /* names; "" = none or several */
    uint32_t stack;                  /* of several: their common part, MT_NO_ID = none */
    uint64_t block_bytes;            /* of each, 0 = of several sizes */
    enum mt_role role;
    enum mt_history_detail detail;
    bool is_initial;     /* alive when the trace began */
    bool is_backward;    /* without a stack: the autograd engine's */
    uint64_t most_bytes; /* maximum at the instants of all columns, or more */
    uint32_t site_stack; /* the stack that `site` names (mt_stack_of_site); of several: of one */
    enum mt_tie tie;     /* why that stack */
};

struct mt_history_change {
    uint32_t group;
    int64_t bytes, blocks;
};

struct mt_history_column {
    uint64_t begin_t_ns;  /* its start */
    uint64_t begin_event; /* the first event in it, or after it */
    uint64_t t_ns, event; /* of its instant: after this event */
    int32_t phase;        /* innermost at that instant */
    bool is_exact;        /* it has a single event, and its instant is the one after it */
    bool is_cut;          /* its instant is the state at a cut, or before a window */
    struct mt_bytes bytes;
    uint32_t first_change, change_count; /* since the instant of the previous column */
};

/* A block by itself, and the group that it is in before groups are merged. */
struct mt_history_block {
    struct mt_block_shape shape;
    struct mt_history_group group;
};

struct mt_history {
    struct mt_arena *arena;
    bool by_event; /* inexact columns have equally many events, not equal time */
    /* The share of the time that the first of several steps takes, if that is why by_event is set;
     * otherwise 0. */
    unsigned first_step_percent;
    const struct mt_symbols *symbols;
    struct mt_timeline axis; /* its spans: where time is folded; no bins */
    struct mt_history_column *columns;
    uint32_t column_count;
    struct mt_history_group *groups;
    uint32_t group_count;
    struct mt_history_change *changes; /* of each column by group */
    uint32_t change_count;
    uint64_t small_bytes; /* groups with less may have been merged; 0 = none */
    uint64_t *cuts;       /* ascending */
    uint32_t cut_count;
    /* Those of the charts of blocks and addresses, then those with the most bytes x length; at most
     * MT_HISTORY_BLOCKS and those of the charts. None unless the model of blocks is requested. */
    struct mt_history_block *blocks;
    uint32_t block_count;
    uint64_t blocks_in_all; /* of the device */
};

/* A set of groups, found by their common properties, and the functions that reduce it. */

/* Zeroed memory is an empty set. */
struct mt_history_groups {
    struct mt_history_group *list;
    uint32_t count;
    size_t capacity;
    struct mt_map ids;    /* hash -> index */
    uint32_t recent[512]; /* by stack and size: a group to try before `ids` */
};

/* The group with the key of `like`, added if missing. Amortized O(1). */
void mt_history_groups_find(struct mt_history_groups *groups, const struct mt_history_group *like,
                            uint32_t *index);
void mt_history_groups_release(struct mt_history_groups *groups);

/* Merges every group with less than `small_bytes` into a coarser one. *into becomes an array of the
 * new numbers of the previous groups; the caller frees it. */
void mt_history_groups_merge(struct mt_history_groups *groups, const struct mt_symbols *symbols,
                             uint64_t small_bytes, uint32_t **into);

/* Assigns groups their new numbers below `group_count`, and merges the changes of each column. */
void mt_history_renumber(struct mt_history_column *columns, uint32_t column_count,
                         struct mt_history_change *changes, uint32_t *change_count,
                         const uint32_t *into, uint32_t group_count);

/* Makes a history small enough for a page: merges groups, the smallest first, until at most these
 * numbers of groups and changes remain. */
void mt_history_reduce(struct mt_history *history, uint32_t most_groups, uint32_t most_changes);

/* Writes the number of the group that has each of the first `count` blocks. */
void mt_history_group_blocks(const struct mt_history *history, uint32_t count, uint32_t *numbers);

/* Leaves at most `most` columns of single events, those around the fullest column. Others are
 * merged to columns of several events with their fullest instants. */
void mt_history_shorten(struct mt_history *history, uint32_t most);

/* Holders of memory at every time: the trace cut into columns of equal busy time, or of equally
 * many events, each with the state at its fullest instant, as differences between neighbors. Within
 * windows, each event has a column of its own, so the changes of a column are those of the event.
 * Exact to the byte. Detail that does not fit in a page is merged, not dropped: groups that never
 * held much are merged, first over sizes, then over stacks, then over sites.
 *
 * Built in one pass; size does not depend on the length of the trace. */

#define MT_HISTORY_COLUMNS 512u

/* Limits of the finished history, for all devices that share them. */
#define MT_HISTORY_GROUPS  2000u
#define MT_HISTORY_CHANGES 24000u
#define MT_HISTORY_EXACT   4000u /* events that have columns of their own */
#define MT_HISTORY_CUTS    600u
#define MT_HISTORY_BLOCKS  12000u /* single blocks; 14 bytes each on a page */
/* Devices that share these limits. Further ones have as much, and the page reduces what it shows.
 */
#define MT_HISTORY_SHARES 4u

/* Events of the trace from `first` to `last`. */
struct mt_history_window {
    uint64_t first, last;
};

/* Creates a builder. `start` is the state before the first event. Its allocated bytes are those of
 * the blocks that begin `at_start`. */
void mt_history_builder_new(struct mt_arena *arena, const struct mt_symbols *symbols,
                            const struct mt_timeline *axis, bool by_event,
                            const struct mt_bytes *start, struct mt_history_builder **builder);

/* Each event of the window gets a column of its own. Windows are ascending and do not overlap;
 * there are at most 4. Must precede the first event. */
void mt_history_add_window(struct mt_history_builder *builder,
                           const struct mt_history_window *window);
void mt_history_builder_release(struct mt_history_builder *builder);

/* Sets the cuts: events after which a step or a phase begins or ends. The state there is the
 * instant of a column, so the changes between two cuts are exact. `events` is in the arena of the
 * history, ascending. Must precede the first event. */
void mt_history_set_cuts(struct mt_history_builder *builder, uint64_t *events, uint32_t count);

/* Returns the column whose instant is the state after an event of the cuts, -1 if nothing precedes
 * the event, or MT_HISTORY_NO_CUT. O(columns). */
#define MT_HISTORY_NO_CUT (-2)
int64_t mt_history_cut_column(const struct mt_history *history, uint64_t event);

/* Interns a text in the builder, so that equal texts have equal pointers. */
const char *mt_history_word(struct mt_history_builder *builder, const char *text);

/* A block is allocated or freed. Live blocks have different numbers. `group` has words of the
 * builder. at_start: the event describes the state at the start of the trace. */
void mt_history_birth(struct mt_history_builder *builder, uint32_t block,
                      const struct mt_history_group *group, uint64_t bytes, bool at_start);
void mt_history_death(struct mt_history_builder *builder, uint32_t block, uint64_t bytes,
                      bool at_start);

/* State after an event, following its allocations and frees; in order. Blocks that begin before the
 * first event are the state at the start. */
void mt_history_state(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                      int32_t phase, const struct mt_bytes *bytes);

/* The model, not reduced, in the arena. The builder must still be released. */
void mt_history_finish(struct mt_history_builder *builder, struct mt_history **history);

#endif
