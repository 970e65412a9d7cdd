/* The pass `run`: an observer of the replay that determines peaks, the use of each phase on each
 * device, OOMs and pauses, and a role code per allocation. Memory: live state, phases, and
 * alloc_log.h. */
#ifndef MT_ANALYZER_SURVEY_H
#define MT_ANALYZER_SURVEY_H

#include "alloc_log.h"
#include "analyze_options.h"
#include "highs.h"
#include "pool_ledger.h"
#include "replay.h"
#include "report.h"
#include "retry_marks.h"
#include "roles.h"
#include "xla_roles.h"

enum { MT_HIGH_REQUESTED, MT_HIGH_ALLOCATED, MT_HIGH_ACTIVE, MT_HIGH_RESERVED, MT_HIGH_COUNT };

#define MT_SURVEY_USES (1u << 21) /* maximum of phases times devices */
#define MT_SURVEY_PACE (1u << 16) /* events between two progress reports */
#define MT_SURVEY_GAPS 32
#define MT_SURVEY_OOMS 256 /* the first ones, and the last */

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
    struct mt_highs high[MT_HIGH_COUNT];
    struct mt_phase_use *uses;        /* parallel to phases, use_capacity of them */
    struct mt_survey_before *befores; /* parallel to phases, use_capacity of them */
    uint32_t use_capacity;
    uint64_t events, allocations, frees, ooms, live_blocks, live_blocks_peak;
    uint64_t worst_unused, worst_unused_t_ns;
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
    const struct mt_source *source; /* for progress reports */
    struct mt_analyze_progress progress;
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
