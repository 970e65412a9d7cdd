/* The history of a device as columns of changes, built by history_model.h. */
#ifndef MT_ANALYZER_HISTORY_H
#define MT_ANALYZER_HISTORY_H

#include "arena.h"
#include "counters.h"
#include "symbols.h"
#include "timeline_bins.h"

/* What the blocks of a group have in common. */
enum mt_history_detail {
    MT_HISTORY_BY_SIZE,  /* stack, phase and role, and the size of each */
    MT_HISTORY_BY_STACK, /* of several sizes */
    MT_HISTORY_BY_SITE,  /* of several stacks with one site */
    MT_HISTORY_BY_ROLE   /* all small blocks of a role */
};

/* Holders of memory. Equal words are equal pointers; they live as long as the history's arena. */
struct mt_history_group {
    const char *site;     /* as in `memtrace live`; "" = several */
    const char *phase;    /* name, at allocation; "" = none; NULL = several */
    uint32_t stack;       /* of several: their common part, MT_NO_ID = none */
    uint64_t block_bytes; /* of each, 0 = of several sizes */
    enum mt_role role;
    enum mt_history_detail detail;
    bool is_initial;     /* alive when the trace began */
    bool is_backward;    /* without a stack: the autograd engine's */
    uint64_t most_bytes; /* maximum at the instants of all columns, or more */
};

struct mt_history_change {
    uint32_t group;
    int64_t bytes, blocks;
};

struct mt_history_column {
    uint64_t begin_t_ns;  /* its start */
    uint64_t begin_event; /* the first event in it, or after it */
    uint64_t t_ns, event; /* of its fullest instant: after this event */
    int32_t phase;        /* innermost at that instant */
    struct mt_bytes bytes;
    uint32_t first_change, change_count; /* since the instant of the previous column */
};

struct mt_history {
    struct mt_arena *arena;
    bool by_event; /* columns have equally many events, not equal time */
    const struct mt_symbols *symbols;
    struct mt_timeline axis; /* its spans: where time is folded; no bins */
    struct mt_history_column *columns;
    uint32_t column_count;
    struct mt_history_group *groups;
    uint32_t group_count;
    struct mt_history_change *changes; /* of each column by group */
    uint32_t change_count;
    uint64_t small_bytes; /* groups with less may have been merged; 0 = none */
};

#endif
