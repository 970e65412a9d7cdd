/* The pass `run`: an observer of the replay that determines peaks, the use of each phase on each
 * device, OOMs and pauses, and a role code per allocation. Memory: live state, phases, and
 * alloc_log.h. */
#ifndef MT_ANALYZER_SURVEY_H
#define MT_ANALYZER_SURVEY_H

#include <stddef.h>
#include <stdint.h>

#include "alloc_log.h"
#include "counters.h"
#include "driver_ledger.h"
#include "report.h"
#include "roles.h"
#include "xla_roles.h"

/* Times at which an allocator emptied its cache and tried again: a list of bounded length. */

#define MT_MAX_RETRY_MARKS 256

/* Zeroed at the start. */
struct mt_retry_marks {
    struct mt_retry_mark *marks; /* in order of time */
    uint32_t count;
    uint64_t retries; /* the sum of the marks */
};

/* Takes `retries` so far, after an event; in order. O(1) on average. A full list merges pairs of
 * marks: no retry is lost. */
void mt_retry_marks_add(struct mt_retry_marks *list, uint64_t t_ns, uint64_t event,
                        uint64_t retries);
void mt_retry_marks_release(struct mt_retry_marks *list);

/* The largest value since each of many starts, in one pass: a stack of maxima, each larger than or
 * equal to those after it. O(1) per value, O(log starts) per query; the work does not depend on the
 * number of open windows. */

/* An instant with a maximum. */
struct mt_high {
    uint64_t begin; /* number of the first start that it is the maximum of */
    uint64_t value;
    uint64_t t_ns, event;
    int32_t phase; /* innermost at that time */
    struct mt_bytes then;
};

/* Zeroed memory is ready. */
struct mt_peak_windows {
    struct mt_high top; /* since the last start */
    struct mt_high *earlier;
    size_t count, capacity;
};

/* Starts window number `begin` (ascending) at an instant with a value. Uses memory only if the
 * value is below the largest since the last start. */
void mt_peak_windows_begin(struct mt_peak_windows *window, const struct mt_high *now);

/* Returns the first instant of the largest value since window `begin` started; an instant before
 * that means the start itself. */
const struct mt_high *mt_peak_windows_since(struct mt_peak_windows *window, uint64_t begin);

void mt_peak_windows_release(struct mt_peak_windows *window);

/* Takes a value after an event. If it returns true, the caller fills the other fields of top. */
static inline int mt_peak_windows_is_higher(const struct mt_peak_windows *window, uint64_t value)
{
    return value > window->top.value;
}

enum { MT_HIGH_REQUESTED, MT_HIGH_ALLOCATED, MT_HIGH_ACTIVE, MT_HIGH_RESERVED, MT_HIGH_COUNT };
#define MT_SURVEY_GAPS 32

/* Additional facts of a phase's use: the allocated maximum of the device when it began, and the
 * instant of its own maximum. */
struct mt_survey_before {
    uint64_t peak_bytes, peak_event;
    int32_t peak_phase;
    struct mt_bytes then;
    int32_t then_phase;
    bool ended;
};

struct mt_survey_device {
    uint16_t device;
    bool begun;           /* an event that is not initial state was seen */
    bool unwinding;       /* between an OOM and the next allocation */
    bool waits_for_block; /* a segment was allocated or freed: its request is not complete */
    struct mt_bytes now, start;
    const struct mt_counters *counters; /* of the replay, while INITIAL events arrive; borrowed */
    struct mt_peak_windows high[MT_HIGH_COUNT];
    struct mt_phase_use *uses;        /* parallel to phases, use_capacity of them */
    struct mt_survey_before *befores; /* parallel to phases, use_capacity of them */
    uint32_t use_capacity;            /* 0 = the report has `uses` */
    uint64_t events, allocations, frees, ooms, refusals, live_blocks, live_blocks_peak;
    struct {
        uint64_t bytes, t_ns;
    } most_unused,    /* so far */
        worst_unused; /* until the last request: the teardown does not count */
    uint64_t first_t_ns, last_t_ns, first_event, last_event;
    struct mt_gap gaps[MT_SURVEY_GAPS];
    uint32_t gap_count;
    uint64_t shortest_gap_ns;    /* of those kept */
    struct mt_oom first_failure; /* of the policy, where the trace has none */
    bool has_failure;
    struct mt_pool_ledger pools;
    struct mt_oom *oom_list;
    uint32_t oom_count, maybe_fatal; /* maybe_fatal: since this one */
    struct mt_retry_marks retries;
};

struct mt_survey {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    const struct mt_source *source;
    struct mt_phases phases;
    struct mt_role_clock roles;
    struct mt_xla_roles xla; /* roles inferred from modules of XLA */
    struct mt_alloc_log log;
    struct mt_survey_device *devices; /* in order of first appearance */
    uint32_t device_count;
    uint8_t device_slot[MT_MAX_DEVICES]; /* slot + 1 */
    uint64_t not_followed;               /* bits: devices with too many phases */
    uint64_t events, last_t_ns, first_t_ns, last_event;
    uint64_t first_event; /* first event that is not initial state */
    bool begun;           /* an event that is not initial state was seen */
    bool dropped;         /* the recorder reported lost events */
    bool infers_roles;    /* the trace does not name the role of each allocation */
};

void mt_survey_init(struct mt_survey *survey, struct mt_arena *arena,
                    const struct mt_source *source);
void mt_survey_release(struct mt_survey *survey);

/* The observer's function; context is the survey. */
void mt_survey_event(void *context, const struct mt_event *event,
                     const struct mt_replay_view *view);

/* The same, for a replay that restarts. */
void mt_survey_restart(void *context);

/* Index in devices[] of a device that has events. */
static inline uint32_t mt_survey_slot(const struct mt_survey *survey, uint16_t device)
{
    return survey->device_slot[device] - 1u;
}

/* Call it after the last event: ends phases, settles roles. */
void mt_survey_finish(struct mt_survey *survey);

#endif
