/* The report: all input of text, JSON, pictures and documents. It is plain data in one arena, final
 * when mt_analyze returns.
 *
 * Indices instead of pointers: `phase` is an index into report->phases, -1 = outside of all phases;
 * `step` is the number in the step's own name (MT_NO_STEP = none); stacks and names are symbol ids.
 * Times are Unix time in nanoseconds as in the trace, `event` is a sequence number. */
#ifndef MT_ANALYZER_REPORT_H
#define MT_ANALYZER_REPORT_H

#include <stdint.h>

#include "arena.h"
#include "header.h"
#include "holding.h"
#include "phase.h"
#include "question.h"
#include "replay_result.h"
#include "source.h"

/* What each pass of an analysis read and cost: for developers of memtrace, not part of results. */

#define MT_MAX_PASS_COSTS 48

/* The cost of one part of the analysis. Excludes nested parts that have entries of their own. */
struct mt_pass_cost {
    const char *name;
    uint64_t readings, events; /* of the source, as counted by mt_source */
    uint64_t time_ns;
    uint64_t memory_bytes; /* still allocated when it ends, as far as it is counted; 0 = unknown */
};

/* In order of their start. */
struct mt_pass_log {
    struct mt_pass_cost costs[MT_MAX_PASS_COSTS];
    uint32_t count;
};

/* The models behind charts, and the model that summaries of ranks use. Everything about a model
 * outside its own files is generated from its line here:
 *
 *   MT_MODEL_TIMELINE                   the bit that requests it (mt_analyze_options.models)
 *   struct mt_timeline *timeline        its part of a device's report
 *   mt_model_timeline                   its operations (model_feed.h)
 *
 * The struct is in timeline_model.h; that of population is below. */

/* In the order in which they begin, receive events, and finish. */
#define MT_MODELS(ROW)                                                                             \
    ROW(TIMELINE, timeline)                                                                        \
    ROW(FLAMECHART, flamechart)                                                                    \
    ROW(BLOCKS, blocks)                                                                            \
    ROW(POPULATION, population)                                                                    \
    ROW(ADDRESS, address)                                                                          \
    ROW(HISTORY, history)                                                                          \
    ROW(MODULES, modules)                                                                          \
    ROW(LEVEL_OVER_TIME, level_over_time)

/* Indices in the list. */
#define MT_MODEL_AT(NAME, name) MT_MODEL_AT_##NAME,
enum mt_model_at { MT_MODELS(MT_MODEL_AT) MT_MODEL_COUNT };
#undef MT_MODEL_AT

/* Sets of models. */
#define MT_MODEL_BIT(NAME, name) MT_MODEL_##NAME = 1 << MT_MODEL_AT_##NAME,
enum mt_model_bit { MT_MODELS(MT_MODEL_BIT) };
#undef MT_MODEL_BIT

struct mt_symbols;    /* symbols.h */
struct mt_module_row; /* module_table.h */

/* One phase on one device. */
struct mt_phase_use {
    struct mt_bytes enter, exit, peak; /* peak: largest of each, in the phase */
    uint64_t peak_allocated_t_ns, peak_allocated_event;
    uint64_t allocations, frees; /* including nested phases */
    bool raises_peak;            /* the running maximum of allocated bytes rose in it */
};

/* Bytes of a role that exist before a phase begins and after it ends. */
struct mt_idle_use {
    int32_t phase; /* among main phases of one name: the one with the highest peak */
    enum mt_role role;
    uint64_t bytes;
    uint64_t movable_bytes; /* of these: not used in the phase (block_watches.h) */
};

struct mt_peak {
    uint64_t bytes, t_ns, event;
    int64_t step;
    int32_t phase;        /* innermost */
    struct mt_bytes then; /* all four at that instant */
};

/* Sum over holdings with the same site (site.h), name of the phase of allocation, and role. */
struct mt_site_use {
    const char *site;  /* "forward train.py:47", or a placeholder if there is no stack: "autograd
                          engine (no Python stack)" */
    uint32_t stack;    /* one representative stack, MT_NO_ID */
    const char *phase; /* name of the phase of allocation, "" = none */
    enum mt_role role;
    uint64_t bytes, blocks;
};

/* One row of "why did it change": a site that contributes to the difference. */
struct mt_contribution {
    const char *site;
    const char *phase;
    int64_t step; /* of allocation, MT_NO_STEP */
    enum mt_role role;
    int64_t bytes, blocks; /* signed */
};

enum mt_instant_kind {
    MT_INSTANT_PEAK_ALLOCATED,
    MT_INSTANT_PEAK_RESERVED,
    MT_INSTANT_OOM,
    MT_INSTANT_PHASE_PEAK, /* of a phase that raised the maximum */
    MT_INSTANT_PHASE_END,  /* of a phase that left memory behind */
    MT_INSTANT_STEP_PEAK,
    MT_INSTANT_ASKED /* of a question */
};

struct mt_instant {
    enum mt_instant_kind kind;
    uint64_t t_ns, event;
    int32_t phase; /* peaks and OOMs: the innermost phase; otherwise the phase in question */
    int64_t step;
    struct mt_bytes bytes;
    struct mt_holding *holdings;
    uint32_t holding_count;
    /* For peaks and OOMs, else NULL: the holders as in peak_sites, largest first, the last ones as
     * one entry; sums to allocated. */
    struct mt_contribution *holders;
    uint32_t holder_count;
};

/* Blocks alive at the instant of a question, grouped as requested. */
struct mt_live_row {
    const char *label;     /* of the group: a site, a stack, a role, a phase */
    const char *site;      /* of its largest blocks */
    const char *operation; /* the operation that made those blocks: the innermost frame that is not
                              plumbing; NULL = none, or the site itself */
    uint32_t stack;        /* of its largest blocks, MT_NO_ID = none recorded */
    uint32_t tied;         /* and the stack of their owner: see mt_holding */
    enum mt_tie tie;
    const char *phase; /* name of the phase of allocation, "" = none, NULL = several */
    int64_t step;      /* of allocation, MT_NO_STEP = none or several */
    enum mt_role role; /* of its largest blocks */
    bool several_roles;
    uint64_t block_bytes; /* of each block; 0 = several sizes */
    uint64_t bytes, requested_bytes, blocks;
    const struct mt_module_row *module; /* by module (module_table.h); otherwise NULL */
};

enum mt_no_answer {
    MT_ANSWERED,
    MT_NO_OOM,         /* of this device */
    MT_NO_SUCH_PHASE,  /* no instance has that path */
    MT_NOT_IN_HISTORY, /* the phase ended before the recorded history of the device */
    MT_BEYOND_END      /* later than the last event */
};

/* Segments of one pool and stream that are all empty, or all not. */
struct mt_free_use {
    const char *label;        /* "free in large segments", "empty small segments, stream 3" */
    uint64_t segments, bytes; /* bytes: free ones */
};

/* Blocks alive on a device at the instant of a question. Bytes come from the replay and rows from
 * the blocks: rows sum to allocated; allocated and waiting blocks sum to active; requested bytes of
 * both sum to requested. */
struct mt_answer {
    const struct mt_question *question; /* borrowed from the caller */
    enum mt_no_answer missing;
    struct mt_instant instant; /* MT_INSTANT_ASKED */
    int32_t selected_phase;    /* PHASE: of the instances of the path, that with the largest peak */
    uint32_t selected_number,
        selected_count;      /* index of selected_phase among these instances, and their number */
    uint64_t waiting_blocks; /* freed, but other streams may still use them */
    uint64_t waiting_bytes, waiting_requested_bytes;
    struct mt_live_row *rows; /* by bytes descending */
    uint32_t row_count;
    uint32_t told_count; /* number of rows that get a line of their own in a table */
    /* If mt_analyze_options.by_segment is set: unused memory. The rows sum to it. */
    struct mt_free_use *free_uses;
    uint32_t free_use_count;
};

enum mt_explanation_kind {
    MT_WHY_PHASE_RAISED_PEAK, /* running maximum rose in the phase */
    MT_WHY_PHASE_LEFT_MORE,   /* memory is higher after the phase than before */
    MT_WHY_STEP_PEAK_ROSE     /* the step's peak is above that of the step before */
};

struct mt_explanation {
    enum mt_explanation_kind kind;
    int32_t phase;       /* or the phase of the step */
    int32_t other_phase; /* compared with this one; MT_NO_PHASE: with its own start, or with the
                            maximum so far */
    int64_t step, other_step;
    uint64_t from_bytes, to_bytes;         /* allocated */
    struct mt_contribution *contributions; /* largest first; they sum to the difference, the rest is
                                              one row with site NULL */
    uint32_t contribution_count;
};

#define MT_NO_LOOP UINT32_MAX

struct mt_step_use {
    int64_t step;
    uint32_t loop; /* index in the report's loops, MT_NO_LOOP */
    int32_t phase; /* the range of the step */
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    struct mt_bytes enter, exit, peak;
    uint64_t peak_allocated_t_ns, peak_allocated_event;
};

/* A loop of the program whose turns are steps. */
struct mt_loop_use {
    const char *name; /* "train.py:41" */
    uint32_t steps;
};

struct mt_oom {
    uint64_t t_ns, event, request_bytes, device_free_bytes;
    int32_t phase;
    int64_t step;
    uint32_t stack;
    bool fatal; /* only frees followed */
    struct mt_bytes then;
};

/* Requests for which the allocator emptied its cache and tried again; one mark covers several if
 * the run had many. */
struct mt_retry_mark {
    uint64_t t_ns, event; /* of the first retry */
    uint64_t retries;
};

/* Why the request that ended the run was not served. */
enum mt_oom_cause {
    MT_OOM_DEMAND,        /* too large even if all unused memory were one piece */
    MT_OOM_FRAGMENTATION, /* it would have fit in one piece */
    MT_OOM_EITHER,        /* depends on the value of the limit within its bounds */
    MT_OOM_ADDRESS_SPACE  /* the driver refused address space, not memory */
};

/* A setting with which the run could have continued, according to replays. */
struct mt_oom_way {
    const char *policy; /* as for `memtrace fit`; the first way is the run's own */
    bool fits;          /* under some limit; otherwise the rest is 0 */
    /* fit_bytes: the smallest limit at and above which the run continues, past the request that
     * ended it, in every order of addresses that was tried (fit.h). low_bytes: the smallest over
     * these orders. smaller_fit_bytes: a smaller limit that also works although larger ones do not,
     * or 0. */
    uint64_t fit_bytes, low_bytes, smaller_fit_bytes;
    uint32_t order_count;
    bool same_limit; /* also fits under the smallest limit that the run may have had */
    /* Addresses decide between equal free blocks, and they differ from the run's because the
     * setting differs, or because the cache was emptied at another time. */
    bool approximate;
};
#define MT_OOM_WAYS 3

/* Remedies for a run that ended out of memory. */
struct mt_oom_answer {
    const struct mt_oom *oom;
    enum mt_oom_cause cause;
    uint64_t unused_bytes; /* reserved, but not in a block */
    /* Bounds of the memory that the allocator could use. Equal if it is known. */
    uint64_t least_limit_bytes, most_limit_bytes;
    struct mt_oom_way ways[MT_OOM_WAYS];
    uint32_t way_count; /* 0: not replayed */
};

/* Memory that a device must have for the run: the smallest limit under which the allocator of the
 * report serves it, by replays (fit.h). */
struct mt_need {
    uint64_t bytes;     /* in every order of addresses that was tried: the safe value */
    uint64_t low_bytes; /* in the best order */
    /* For both: what expandable segments map beyond that limit. PyTorch compares the limit with the
     * requested size, and then maps whole pages of 2 or 20 MiB. */
    uint64_t above_limit_bytes;
    uint32_t order_count;   /* also 1 if addresses decided nothing */
    bool is_one_of_many;    /* addresses decide, and only one order was tried */
    bool depends_on_memory; /* the run reached its memory limit: with another limit it may request
                               other memory */
};

/* Peaks of a dry run over its own order of addresses and the other orders that were tried
 * (needs.h). */
struct mt_peak_orders {
    uint32_t order_count; /* orders tried; 1: addresses decided nothing */
    uint64_t reserved_low_bytes, reserved_high_bytes;
    uint64_t allocated_low_bytes, allocated_high_bytes;
};

/* The default arena of XLA and TensorFlow, as the requests of a run would have used it, by a
 * replay. JAX's memory_stats() has peak_pool_bytes, peak_bytes_in_use and num_allocs for it. */
struct mt_xla_arena {
    const char *policy; /* as for `memtrace replay -p` */
    bool preallocated;  /* otherwise it grows */
    uint64_t pool_bytes, in_use_bytes, requests;
    uint64_t failures;     /* requests that it could not serve */
    uint64_t address_ties; /* see struct mt_replay_result */
};
#define MT_XLA_ARENAS 2

/* XLA on a device, in a trace without an allocator above the driver. */
struct mt_xla_use {
    /* The program itself used such an arena, so the trace shows how the arena grew, but no requests
     * to it. The rest is then 0. Otherwise the requests to the driver's pool are XLA's. */
    bool requests_missing;
    struct mt_xla_arena arenas[MT_XLA_ARENAS];
    uint32_t arena_count;
};

/* A pause without events: a candidate for folding the time axis. */
struct mt_gap {
    uint64_t begin_t_ns, end_t_ns;
};

/* Driver memory of the process on one device, at an instant. */
struct mt_driver_level {
    uint64_t bytes;           /* of all heaps that are memory of the device */
    uint64_t framework_bytes; /* of these: segments of the framework */
    uint64_t pool_bytes;      /* of these: segments of private pools; only in `then` of a report */
    uint64_t t_ns, event;
    int32_t phase;
};

/* Memory outside of the framework, by owner. */
struct mt_owner_use {
    const char *library;  /* "NCCL"; the file of an unknown library; NULL: native frames of the call
                             were not recorded */
    const char *what;     /* "communicator", "handle", NULL */
    const char *call;     /* "ncclCommInitRankConfig", NULL = unknown */
    const char *site;     /* where the program called it, as in struct mt_site_use */
    int32_t communicator; /* of NCCL: 0, 1, ... in order of creation; MT_NO_COMMUNICATOR */
    uint64_t bytes, blocks;
};
#define MT_NO_COMMUNICATOR (-1)

/* A communicator of the process, as NCCL reports it. */
struct mt_communicator_use {
    int32_t communicator; /* as in struct mt_owner_use; MT_NO_COMMUNICATOR: it has an id, but the
                             call that made it is unknown */
    uint64_t id;          /* 0 = unknown */
    uint64_t ranks, rank; /* ranks: 0 = both are unknown */
    uint64_t registered_peak_bytes; /* of buffers that the program registered; 0: none */
};

/* One heap on one device, other than the framework's own. */
struct mt_heap_use {
    const char *name, *what; /* "driver:async", "stream-ordered allocations" or "" */
    bool is_device_memory;   /* included in mt_driver_level */
    uint64_t allocations, frees, failures;
    uint64_t live_blocks, live_bytes; /* at the end */
    uint64_t peak_bytes, peak_t_ns, peak_event;
};

/* A pool of PyTorch's allocator: the default one, or a private one of CUDA graphs or MemPools. */
struct mt_pool_use {
    uint64_t id[2];   /* PyTorch's (a, b); (0, 0) = the default pool */
    bool is_inferred; /* inferred: the trace does not name it, and it has no id */
    uint64_t reserved_bytes, allocated_bytes; /* at the end */
    uint64_t reserved_peak_bytes, allocated_peak_bytes;
    uint64_t segments; /* at the end, without expandable ones */
    uint64_t allocations;
    uint64_t first_event, first_t_ns; /* of its first block */
    uint32_t first_stack;             /* of the first block with a stack; MT_NO_ID: none */
    const char *site;                 /* which allocated that block, NULL = unknown */
};

/* A request that the driver refused. The program may have continued. */
struct mt_driver_failure {
    uint16_t device, heap;
    uint64_t t_ns, event, request_bytes;
    uint64_t held_bytes; /* live then in the same heap */
    uint32_t stack;
    int32_t phase;
};

/* What "used by process" is compared with to get the residual. */
enum mt_tracked {
    MT_TRACKED_SEGMENTS, /* no driver calls were recorded: the framework's segments */
    MT_TRACKED_DRIVER
};
enum { MT_TRACKED_COUNT = MT_TRACKED_DRIVER + 1 };

/* NVML's measurement of the process, and the part that no allocation explains: the context,
 * modules, rounding by the driver. */
struct mt_residual {
    enum mt_tracked tracked_from;
    uint64_t samples, unknown_samples;  /* unknown: NVML reported no value */
    uint64_t t_ns, event;               /* of the sample of largest use */
    uint64_t used_bytes, tracked_bytes; /* at that sample */
    int64_t least_bytes, most_bytes;    /* over all samples: used - tracked */
    /* Used - tracked at the sample nearest in time to the framework's allocated peak, among those
     * that show at least the tracked bytes. */
    bool has_peak_sample;
    uint64_t peak_t_ns, peak_event, peak_bytes;
};

/* Memory of a device outside of the framework's heap. */
struct mt_driver_report {
    uint16_t device;
    bool has_calls;              /* driver calls were recorded */
    struct mt_driver_level peak; /* of its bytes */
    /* At the framework's allocated peak, if there is a framework: memory outside of it by site,
     * largest first; sums to then.bytes - then.framework_bytes. */
    bool has_then;
    struct mt_driver_level then;
    struct mt_site_use *outside_sites;
    uint32_t outside_site_count;
    struct mt_owner_use *owners; /* the same bytes by library, largest first */
    uint32_t owner_count;
    uint32_t communicator_count; /* made by the process according to NCCL's ranges; 0 = unknown */
    struct mt_communicator_use *communicators; /* those with further reports by NCCL */
    uint32_t told_communicator_count;
    struct mt_heap_use *heaps; /* in order of first appearance */
    uint32_t heap_count;
    struct mt_residual residual;
    struct mt_driver_failure *failures; /* the first ones */
    uint32_t failure_count;
    uint64_t failures_in_all;
    /* The first refused request for device memory after which nothing was granted, or NULL. */
    const struct mt_driver_failure *fatal;
    /* The first refusal of address space, or NULL: a range of its size was granted before, but none
     * since, and the framework served no request since. */
    const struct mt_driver_failure *no_space;
    uint64_t no_space_oom; /* event of the last OOM after such a refusal; 0 = none */
};

/* Parts of a device's memory while a model serves: every byte belongs to one part. */
enum mt_device_part {
    MT_DEVICE_WEIGHTS,
    MT_DEVICE_KV_CACHE,
    MT_DEVICE_ACTIVATIONS, /* including temporaries and inputs */
    MT_DEVICE_GRAPHS,      /* segments of private pools, except weights, KV cache and workspaces */
    MT_DEVICE_WORKSPACES,
    MT_DEVICE_OTHER,     /* blocks of no known role */
    MT_DEVICE_UNUSED,    /* framework segments without a block */
    MT_DEVICE_LIBRARIES, /* driver memory outside of the segments */
    MT_DEVICE_CONTEXT,   /* not explained by any allocation, at NVML's sample nearest to the peak */
    MT_DEVICE_FREE       /* the rest: free, in use by other processes, or not seen */
};
enum { MT_DEVICE_PART_COUNT = MT_DEVICE_FREE + 1 };

/* "weights", "KV cache", ... */
const char *mt_device_part_name(enum mt_device_part part);

/* At the allocated peak. The parts sum to total_bytes. */
struct mt_device_parts {
    uint64_t total_bytes;
    uint64_t parts[MT_DEVICE_PART_COUNT];
    bool context_is_known;                /* NVML was sampled */
    uint64_t context_t_ns, context_event; /* of the sample it comes from */
    uint64_t samples;                     /* number of samples, of which that is the nearest */
    bool died;                            /* of an OOM: the further requests are not in the trace */
    uint64_t spare_bytes; /* free at every instant: at most the part MT_DEVICE_FREE, and less if the
                             driver's peak is not the allocated peak, or if the context was larger
                             at the sample of largest use */
};

/* How the saving of a finding is known. */
enum mt_saving {
    MT_SAVING_UNKNOWN,
    MT_SAVING_EXACT,    /* a replay of the change */
    MT_SAVING_AT_LEAST, /* a replay of less than the change */
    MT_SAVING_AT_MOST,  /* a bound of allocated memory: no replay */
    MT_SAVING_ESTIMATED /* a replay of about the change */
};

/* "exact", "at least", "at most", "estimated"; NULL: unknown. */
const char *mt_saving_name(enum mt_saving saving);

/* A suggested change (analyzer/findings). */
struct mt_finding {
    const char *id;          /* of the kind: "pinned-segments" */
    const char *severity;    /* "error", "warning", "info" (findings.c) */
    uint64_t bytes;          /* saved by the change, or concerned by the finding */
    uint64_t bytes_per_step; /* for growth; otherwise 0 */
    const char *title;       /* one line: the cause and the bytes */
    const char **evidence;   /* one line each */
    uint32_t evidence_count;
    const char *advice;    /* what to change */
    const char *cost;      /* what the change costs, NULL = unknown */
    const char *proved_by; /* the command that shows the saving, NULL = none */
    const char *change;    /* of `dry-run --apply`, which does what is advised; NULL = none */
    /* How much less memory the device must have after the change: the difference of the needs
     * (mt_need) if both are known, of the reserved peaks in other replays. AT_MOST is of allocated
     * memory: how far the allocated peak can fall, or what the finding counts if it sets the bound
     * itself. 0 if unknown. */
    enum mt_saving saving;
    uint64_t saves_bytes;
    bool saves_need; /* saves_bytes is a difference of needs (mt_need), else of reserved peaks */
    uint64_t counted_before_bytes; /* of `bytes`, what the findings before it also count */
    uint32_t mark;                 /* its bit in marks of the device; 0 = has none */
};

/* Memory that each step leaves behind: one estimate for the finding, the gate and the picture. */
struct mt_growth {
    /* False: fewer than MT_GROWTH_MIN_STEPS steps were recorded, or too many blocks outlive their
     * step to examine. The rest is then 0. */
    bool judged;
    uint32_t steps; /* number of steps in the average */
    /* From blocks allocated at one line in consecutive steps and alive when the last step begins. 0
     * = no line leaves any, or memory does not rise by as much (trend.h). */
    uint64_t bytes_per_step;
    uint32_t stack; /* a stack of the line that leaves most; MT_NO_ID: none, or unknown */
};

/* A set of blocks selected over time, not at one instant. */
struct mt_population {
    enum mt_population_of of;
    bool missing; /* there are not enough steps, or the step or phase does not exist */
    /* Allocated in [from_event, until_event), and alive after alive_event. */
    uint64_t from_event, until_event, alive_event;
    int64_t first_step, last_step; /* MT_NO_STEP: not selected by steps */
    int32_t phase;                 /* ALLOCATED: only in this phase, or MT_NO_PHASE */
    struct mt_holding *holdings;   /* unsorted; `phase` is one with its name */
    uint32_t holding_count;
    uint64_t bytes, requested_bytes, blocks;
};

#define MT_MODEL_STRUCT(NAME, name) struct mt_##name;
#define MT_MODEL_MEMBER(NAME, name) struct mt_##name *name;

MT_MODELS(MT_MODEL_STRUCT)

/* Blocks that the program named: PyTorch's user_metadata and annotations. */
struct mt_tag_use {
    const char *tag;
    uint64_t bytes, requested_bytes, blocks;
    bool names_role; /* `role` comes from the tag; otherwise the roles of its blocks are inferred */
    enum mt_role role;
};

struct mt_device_report {
    uint16_t device;
    const char *name; /* "NVIDIA H200", NULL = not recorded */
    uint64_t total_memory_bytes;
    struct mt_replay_result replay;
    uint64_t events, allocations, frees, segments_peak, ooms, retries;
    uint64_t refusals; /* requests that failed, without what was free then: not among `ooms` */
    bool complete;     /* starts from an empty allocator, nothing dropped */
    struct mt_peak requested_peak, allocated_peak, active_peak, reserved_peak;
    /* Under a policy or limit other than the recorded one: the first request that it could not
     * serve. Later events would not have happened like this. */
    struct mt_oom first_failure;
    bool has_failure;
    uint64_t worst_unused_bytes, worst_unused_t_ns; /* max reserved - allocated, before teardown */
    struct mt_bytes start, end;                     /* before the first, after the last event */

    struct mt_phase_use *phase_uses; /* parallel to report->phases */
    struct mt_step_use *steps;
    uint32_t step_count;
    struct mt_step_use *loop_steps; /* of several loops: of the one that takes most time; or NULL */
    uint32_t loop_step_count;
    /* at the allocated peak, largest first; for JSON, rules and baselines: the text and the page
     * print the holders of `instants` */
    struct mt_site_use *peak_sites;
    uint32_t peak_site_count;
    uint64_t peak_role_bytes[MT_ROLE_COUNT], peak_recorded_role_bytes[MT_ROLE_COUNT];
    struct mt_tag_use *peak_tags; /* by the program's own names, largest first */
    uint32_t peak_tag_count;
    /* alive when the trace began, without a stack; the role is inferred from sizes and lifetimes */
    uint64_t peak_start_role_bytes;
    struct mt_instant *instants; /* [0] is the allocated peak if there are events */
    uint32_t instant_count;
    struct mt_explanation *explanations;
    uint32_t explanation_count;
    struct mt_oom *oom_list;
    uint32_t oom_count;
    /* The default pool first, then by first block. Only for the run as it was, if it has private
     * pools. */
    struct mt_pool_use *pools;
    uint32_t pool_count;
    struct mt_retry_mark
        *retry_marks; /* in order; they sum to `retries` if no device was left out */
    uint32_t retry_mark_count;
    struct mt_idle_use *idle; /* by phase, then role */
    uint32_t idle_count;
    struct mt_gap *gaps; /* the longest pauses, by time */
    uint32_t gap_count;
    /* For blocks without a stack, at the peak: the total, and by owner; [MT_TIE_NONE]: no known
     * owner. */
    uint64_t frameless_peak_bytes, tie_peak_bytes[MT_TIE_COUNT];
    uint64_t first_t_ns, last_t_ns, first_event, last_event;

    struct mt_xla_use *xla;     /* NULL: no module of XLA ran, or its requests are the driver's */
    const struct mt_need *need; /* NULL: not requested, unknown, or the run ended out of memory */
    const struct mt_peak_orders *peak_orders; /* NULL: as above, or not a dry run */
    struct mt_oom_answer *oom_answer;         /* NULL: did not end out of memory, or what-if */
    struct mt_finding *findings;              /* see mt_findings_fill */
    uint32_t finding_count;
    uint32_t *marks; /* by holding of instants[0]: bits of the findings that count it; or NULL */
    const char
        *no_finding; /* why there are none; NULL: there are some, or requests were refused, or this
                        is the driver's level, or the settings are not the program's */
    struct mt_growth growth;
    struct mt_device_parts
        *device_parts; /* NULL: no KV cache, driver calls not recorded, or contradictory numbers */

    struct mt_answer *answer; /* NULL unless there is a question */
    /* timeline, flamechart, ...: the models of MT_MODELS. NULL if not requested, or if there is
     * nothing to show. */
    MT_MODELS(MT_MODEL_MEMBER)
};

#undef MT_MODEL_STRUCT
#undef MT_MODEL_MEMBER

struct mt_report {
    struct mt_arena arena;
    /* input */
    const char *path, *name; /* name: file name without its extensions */
    const char *format;      /* "memtrace/1", "pytorch-snapshot" */
    const char *framework, *options;
    const char *not_recorded;  /* lines, or NULL */
    int32_t world_size;        /* of the distributed run; -1 = unknown */
    bool is_dry_run;           /* no device: times and values are meaningless */
    struct mt_dry_run dry_run; /* the simulated device of a dry run */
    char sha256[65];           /* of the file, "" if it was a pipe */
    struct mt_integrity integrity;
    const char *doubt; /* why the program may need more than the trace shows: its dry run ended
                          early, or a reason set by the caller of mt_analyze; static, or NULL */
    bool starts_in_middle;
    bool is_snapshot; /* recorded by PyTorch itself */
    bool is_imported; /* a snapshot, or a file of another tool */
    /* devices with memory events that are in no table */
    uint64_t devices_left_out;     /* count: their numbers are above 63 */
    uint64_t devices_not_followed; /* bit N: there are too many phases for device N */
    uint64_t first_t_ns, last_t_ns;
    const struct mt_symbols *symbols; /* borrowed from the source */

    struct mt_phase *phases;
    bool *main_phase; /* parallel to `phases`: one of the parts that steps consist of (the outermost
                         ranges that a user named, without steps and their parents) */
    uint32_t phase_count;
    uint64_t phases_not_recorded; /* too deep or too many */
    int64_t step_count;
    struct mt_loop_use *loops; /* if steps are of several */
    uint32_t loop_count;
    bool roles_inferred;            /* of at least some blocks */
    bool has_stacks;                /* any were recorded */
    bool names_operations;          /* they are TensorFlow's operations, not call stacks */
    bool lacks_rules;               /* the file does not name those of its allocator */
    bool has_segments;              /* otherwise reserved is the sum of live blocks */
    bool saw_backward;              /* or an optimizer; otherwise roles are by call site */
    char policy[MT_POLICY_TEXT];    /* the simulated policy */
    bool what_if;                   /* requested: not the settings of the program's run */
    const char *pytorch_difference; /* why not PyTorch's rules; NULL = it is those, or another
                                       policy was requested */

    struct mt_device_report *devices; /* those with events, ascending */
    uint32_t device_count;

    /* No allocator above the driver: the analysis covers all requests to the driver. */
    bool is_driver_level;
    /* ... and no Python frame: a program without a framework, for which roles of blocks and a
     * backward pass are meaningless; it has steps only if it names them. */
    bool is_plain;
    /* Recorded traces: for each device with events other than the framework's, ascending. */
    struct mt_driver_report *drivers;
    uint32_t driver_count;

    struct mt_pass_log passes; /* how the report was made */
};

#endif
