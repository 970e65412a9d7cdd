/* The levels of a run, collected while it is analyzed (perfetto.h). */
#ifndef MT_CLI_PERFETTO_LEVELS_H
#define MT_CLI_PERFETTO_LEVELS_H

#include "analyze_options.h"
#include "arena.h"
#include "report.h"

/* Columns of a counter: parts of the run with as many events. A device with at most one event in
 * each is exact after every event. */
enum { MT_PERFETTO_COLUMNS = 16384 };

enum { MT_PERFETTO_REQUESTED, MT_PERFETTO_ALLOCATED, MT_PERFETTO_ACTIVE, MT_PERFETTO_RESERVED };
enum { MT_PERFETTO_ROLES = MT_PERFETTO_RESERVED + 1 }; /* the first of the roles */
enum { MT_PERFETTO_SERIES = MT_PERFETTO_ROLES + MT_ROLE_COUNT };

/* All levels at the fullest instant of allocated bytes and after the last event, so that roles sum
 * to allocated bytes there; and the largest of each level. */
struct mt_perfetto_column {
    uint64_t largest[MT_PERFETTO_SERIES], full[MT_PERFETTO_SERIES], last[MT_PERFETTO_SERIES];
    struct mt_perfetto_instant {
        uint64_t t_ns, event;
    } largest_at[MT_PERFETTO_SERIES], last_at;
};

/* Calls of empty_cache; several in one mark if there are many. */
struct mt_perfetto_release {
    uint64_t t_ns, event; /* of the first one */
    uint64_t calls;
    uint32_t stack;
};

/* What is collected about a device. */
struct mt_perfetto_device {
    uint16_t device;
    struct mt_perfetto_column *columns;
    uint32_t column_count;
    uint64_t starts[MT_PERFETTO_SERIES]; /* before the first event */
    bool is_used[MT_PERFETTO_SERIES];    /* not always 0 */
    uint64_t events;
    struct mt_perfetto_release *releases;
    uint32_t release_count;
    const uint32_t *retry_stacks; /* parallel to the report's retry_marks; MT_NO_ID = none */
    /* the blocks that are live at the end, by stack */
    struct mt_holding *live;
    uint32_t live_count;
};

/* Zeroed memory is ready. */
struct mt_perfetto_levels {
    struct mt_arena arena;
    struct mt_perfetto_device *devices[MT_MAX_DEVICES];
    uint32_t device_count;
};

/* Makes an analysis fill the levels. Borrows both. */
void mt_perfetto_attach(struct mt_perfetto_levels *levels, struct mt_analyze_options *options);
void mt_perfetto_levels_release(struct mt_perfetto_levels *levels);

#endif
