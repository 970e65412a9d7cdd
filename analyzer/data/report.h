/* The report: everything that text, JSON, pictures and documents may read. One
 * arena owns it all; it is plain data, final once mt_analyze returns.
 *
 * Indices instead of pointers: `phase` is an index into report->phases, -1 =
 * outside of any phase; `step` is the number in the step's own name
 * (MT_NO_STEP = none); stacks and names are symbol ids. Times are Unix time in
 * nanoseconds as in the trace, `event` is a sequence number. */
#ifndef MT_ANALYZER_REPORT_H
#define MT_ANALYZER_REPORT_H

#include "arena.h"
#include "dry_run.h"
#include "holding.h"
#include "integrity.h"
#include "model_list.h"
#include "pass_log.h"
#include "phase.h"
#include "question.h"
#include "replay_result.h"
#include "role.h"

struct mt_symbols;    /* symbols.h */
struct mt_module_row; /* modules_model.h */

/* What one phase was for one device. */
struct mt_phase_use {
    struct mt_bytes enter, exit, peak; /* peak: largest of each, in the phase */
    uint64_t peak_allocated_t_ns, peak_allocated_event;
    uint64_t allocations, frees; /* events directly or deeper inside */
    bool raises_peak;            /* the device's allocated maximum so far rose in it */
};

/* Bytes of a role that are there before a phase begins and after it ended. */
struct mt_idle_use {
    int32_t phase; /* of the main phases of one name: the one with the highest peak */
    enum mt_role role;
    uint64_t bytes;
    uint64_t movable_bytes; /* of them: nothing in the phase uses them (idle.h) */
};

struct mt_peak {
    uint64_t bytes, t_ns, event;
    int64_t step;
    int32_t phase;        /* innermost */
    struct mt_bytes then; /* all four at that instant */
};

/* Sum over holdings with the same site (site.h) and phase name of birth. */
struct mt_site_use {
    const char *site;  /* "forward train.py:47", or what stands for no stack:
                          "autograd engine (no Python stack)" */
    uint32_t stack;    /* one representative stack, MT_NO_ID */
    const char *phase; /* name of the phase of birth, "" = none */
    enum mt_role role; /* of most of its bytes */
    uint64_t bytes, blocks;
};

/* One line of the answer to "why did it change": who made the difference. */
struct mt_contribution {
    const char *site;
    const char *phase;
    int64_t step; /* of birth, MT_NO_STEP */
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
    int32_t phase; /* innermost for peaks and OOMs; the phase that is meant else */
    int64_t step;
    struct mt_bytes bytes;
    struct mt_holding *holdings;
    uint32_t holding_count;
    /* Of peaks and OOMs, else NULL: who holds it, largest first, finer than
     * peak_sites (also by role); sums to allocated. */
    struct mt_contribution *holders;
    uint32_t holder_count;
};

/* Blocks alive at the instant of a question that have in common what was asked for. */
struct mt_live_row {
    const char *label;     /* of the group: a site, a stack, a role, a phase */
    const char *site;      /* of its largest blocks */
    const char *operation; /* what made those: the innermost frame that is not plumbing, in words;
                              NULL = none, or the site itself */
    uint32_t stack;        /* of its largest blocks, MT_NO_ID = none recorded */
    uint32_t tied;         /* and what those belong to then: see mt_holding */
    enum mt_tie tie;
    const char *phase; /* name of the phase of birth, "" = none, NULL = several */
    int64_t step;      /* of birth, MT_NO_STEP = none or several */
    enum mt_role role; /* of its largest blocks */
    bool several_roles;
    uint64_t block_bytes; /* of each block; 0 = several sizes */
    uint64_t bytes, requested_bytes, blocks;
    const struct mt_module_row *module; /* by module (modules_model.h); else NULL */
};

enum mt_no_answer {
    MT_ANSWERED,
    MT_NO_OOM,         /* of this device */
    MT_NO_SUCH_PHASE,  /* no instance has that path */
    MT_NOT_IN_HISTORY, /* the phase was over before the recorded history of the device */
    MT_BEYOND_END      /* later than the last event */
};

/* What was alive on a device at the instant of a question. Its bytes come from
 * the replay, its rows from the blocks: rows sum to allocated; allocated and
 * what waits to active; requested of both to requested. */
struct mt_answer {
    const struct mt_question *question; /* the asker's */
    enum mt_no_answer missing;
    struct mt_instant instant;          /* MT_INSTANT_ASKED */
    int32_t asked_phase;                /* PHASE: the instance with the largest peak of those */
    uint32_t asked_number, asked_count; /* its index, and how many have that path */
    uint64_t waiting_blocks;            /* freed, but other streams may still use them */
    uint64_t waiting_bytes, waiting_requested_bytes;
    struct mt_live_row *rows; /* by bytes descending */
    uint32_t row_count;
    uint32_t told_count; /* of them deserve a line of their own in a table */
};

enum mt_explanation_kind {
    MT_WHY_PHASE_RAISED_PEAK, /* running maximum rose in the phase */
    MT_WHY_PHASE_LEFT_MORE,   /* memory is higher after the phase than before */
    MT_WHY_STEP_PEAK_ROSE     /* the step's peak is above the step's before */
};

struct mt_explanation {
    enum mt_explanation_kind kind;
    int32_t phase;       /* or the step's phase */
    int32_t other_phase; /* that it is compared with; MT_NO_PHASE: its own begin,
                            or the maximum until then */
    int64_t step, other_step;
    uint64_t from_bytes, to_bytes;         /* allocated */
    struct mt_contribution *contributions; /* largest first; sum to the
                                              difference, the rest is one line
                                              with site NULL */
    uint32_t contribution_count;
};

struct mt_step_use {
    int64_t step;
    int32_t phase; /* the range that is the step */
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    struct mt_bytes enter, exit, peak;
    uint64_t peak_allocated_t_ns, peak_allocated_event;
};

struct mt_oom {
    uint64_t t_ns, event, request_bytes, device_free_bytes;
    int32_t phase;
    int64_t step;
    uint32_t stack;
    bool fatal; /* nothing but frees followed */
    struct mt_bytes then;
};

/* Requests for which the allocator emptied its cache and tried again; several if there were many
 * of them in the run. */
struct mt_retry_mark {
    uint64_t t_ns, event; /* of the first */
    uint64_t retries;
};

/* Why the request that a run died of was not served. */
enum mt_oom_cause {
    MT_OOM_DEMAND,        /* not even if all unused memory were one piece */
    MT_OOM_FRAGMENTATION, /* it would have been, were it one piece */
    MT_OOM_EITHER         /* that depends on where within its bounds the limit was */
};

/* A setting under which the run could have gone on, by replays. */
struct mt_oom_way {
    const char *policy; /* as for `memtrace fit`; the first way is the run's own */
    bool fits;          /* under any limit; the rest is 0 if not */
    /* The smallest limit from which on the run goes on, the request that it died of
     * included, in every order of addresses that was tried (fit.h), and the least of them; a
     * smaller one that also does, although larger ones do not, or 0. */
    uint64_t fit_bytes, low_bytes, smaller_fit_bytes;
    uint32_t order_count;
    bool same_limit; /* also under the least that the limit of the run can have been */
    /* Addresses decide between equal free blocks, and they are not the run's: under
     * another setting, or because the cache was given back at another time. */
    bool approximate;
};
#define MT_OOM_WAYS 3

/* What would have helped a run that died. */
struct mt_oom_answer {
    const struct mt_oom *oom;
    enum mt_oom_cause cause;
    uint64_t unused_bytes; /* reserved, and in no block */
    /* What the allocator could have had: at least, and at most. Equal if known. */
    uint64_t least_limit_bytes, most_limit_bytes;
    struct mt_oom_way ways[MT_OOM_WAYS];
    uint32_t way_count; /* 0: not replayed */
};

/* What a device must have for the run: the smallest limit under which the allocator of the report
 * serves it, by replays (fit.h). */
struct mt_need {
    uint64_t bytes;     /* in every order of addresses that was tried: the one to rely on */
    uint64_t low_bytes; /* in the best of them */
    /* Of both: what expandable segments map above that limit. PyTorch compares the limit with the
     * size that it asks for, and then maps whole pages of 2 or 20 MiB. */
    uint64_t above_limit_bytes;
    uint32_t order_count;   /* 1 also if addresses decided nothing */
    bool is_one_of_many;    /* addresses decide, and only one order was tried */
    bool depends_on_memory; /* the run reached the limit of its memory: it may ask for other memory
                               where there is more or less of it */
};

/* Peaks of a dry run, over the order of addresses that it had and those that were tried
 * (peak_orders.h). */
struct mt_peak_orders {
    uint32_t order_count; /* tried; 1: addresses decided nothing */
    uint64_t reserved_low_bytes, reserved_high_bytes;
    uint64_t allocated_low_bytes, allocated_high_bytes;
};

/* The arena that XLA and TensorFlow have by default, as requests of a run would have met it: what
 * memory_stats() of JAX calls peak_pool_bytes, peak_bytes_in_use and num_allocs, by a replay. */
struct mt_xla_arena {
    const char *policy; /* as for `memtrace replay -p` */
    bool preallocated;  /* else it grows */
    uint64_t pool_bytes, in_use_bytes, requests;
    uint64_t failures;     /* requests that it could not serve */
    uint64_t address_ties; /* see struct mt_replay_result */
};
#define MT_XLA_ARENAS 2

/* What a trace without an allocator above the driver says about XLA on a device. */
struct mt_xla_use {
    /* The program had that arena: the driver saw it grow, and nobody saw a request. The rest is 0
     * then, else the requests to the driver's pool are XLA's. */
    bool requests_missing;
    struct mt_xla_arena arenas[MT_XLA_ARENAS];
    uint32_t arena_count;
};

/* A pause in which nothing happened: candidates for folding the time axis. */
struct mt_gap {
    uint64_t begin_t_ns, end_t_ns;
};

/* What the process held from the driver on one device, at an instant. */
struct mt_driver_level {
    uint64_t bytes;           /* of all heaps that are memory of the device */
    uint64_t framework_bytes; /* of them: where segments of the framework lie */
    uint64_t pool_bytes;      /* of them, at_allocated_peak only: segments of private pools */
    uint64_t t_ns, event;
    int32_t phase;
};

/* Memory beside the framework, by who asked the driver for it. */
struct mt_owner_use {
    const char *library;  /* "NCCL"; the file of one that is not known; NULL: native frames of the
                             call were not recorded */
    const char *what;     /* "communicator", "handle", NULL */
    const char *call;     /* "ncclCommInitRankConfig", NULL = not known */
    const char *site;     /* where the program called it, as in struct mt_site_use */
    int32_t communicator; /* of NCCL: 0, 1, ... in order of creation; MT_NO_COMMUNICATOR */
    uint64_t bytes, blocks;
};
#define MT_NO_COMMUNICATOR (-1)

/* What NCCL says of one of the process's communicators. */
struct mt_communicator_use {
    int32_t communicator;           /* as in struct mt_owner_use; MT_NO_COMMUNICATOR: it has an id,
                                       and which call made it is not known */
    uint64_t id;                    /* 0 = not known */
    uint64_t ranks, rank;           /* ranks: 0 = neither is known */
    uint64_t registered_peak_bytes; /* of buffers that the program registered; 0: none was seen */
};

/* One heap on one device, other than the framework's own. */
struct mt_heap_use {
    const char *name, *what; /* "driver:async", "stream-ordered allocations" or "" */
    bool is_device_memory;   /* counts in mt_driver_level */
    uint64_t allocations, frees, failures;
    uint64_t live_blocks, live_bytes; /* at the end */
    uint64_t peak_bytes, peak_t_ns, peak_event;
};

/* A pool of PyTorch's allocator: the default one, or a private one of CUDA graphs or MemPools. */
struct mt_pool_use {
    uint64_t id[2];                           /* PyTorch's (a, b); (0, 0) = the default pool */
    bool is_inferred;                         /* the trace does not name it: it has no id */
    uint64_t reserved_bytes, allocated_bytes; /* at the end */
    uint64_t reserved_peak_bytes, allocated_peak_bytes;
    uint64_t segments; /* at the end, without expandable ones */
    uint64_t allocations;
    uint64_t first_event, first_t_ns; /* of its first block */
    const char *site;                 /* which allocated that, NULL = not known */
};

/* A request that the driver refused; the program may have gone on. */
struct mt_driver_failure {
    uint16_t device, heap;
    uint64_t t_ns, event, request_bytes;
    uint32_t stack;
    int32_t phase;
};

/* Of what is the rest of "used by process" the rest? */
enum mt_tracked {
    MT_TRACKED_SEGMENTS, /* no calls of the driver were recorded: the framework's */
    MT_TRACKED_DRIVER
};
enum { MT_TRACKED_COUNT = MT_TRACKED_DRIVER + 1 };

/* What NVML saw of the process, and what no allocation explains: the context,
 * modules, what the driver rounds up. */
struct mt_residual {
    enum mt_tracked tracked_from;
    uint64_t samples, unknown_samples;  /* unknown: NVML did not tell */
    uint64_t t_ns, event;               /* of the sample of largest use */
    uint64_t used_bytes, tracked_bytes; /* there */
    int64_t least_bytes, most_bytes;    /* of all samples: used - tracked */
    /* Used - tracked at the sample that is nearest in time to the framework's allocated peak, of
     * those that saw at least what was tracked. */
    bool has_peak_sample;
    uint64_t peak_t_ns, peak_event, peak_bytes;
};

/* What a trace says about a device beside the framework's heap. */
struct mt_driver_report {
    uint16_t device;
    bool has_calls;              /* calls of the driver were recorded */
    struct mt_driver_level peak; /* of its bytes */
    /* At the framework's allocated peak, if there is a framework: what is not
     * the framework's, by site, largest first; sums to then.bytes - then.framework_bytes. */
    bool has_then;
    struct mt_driver_level then;
    struct mt_site_use *outside_sites;
    uint32_t outside_site_count;
    struct mt_owner_use *owners; /* the same bytes by library, largest first */
    uint32_t owner_count;
    uint32_t communicator_count; /* that the process made, NCCL's ranges say so; 0 = not known */
    struct mt_communicator_use *communicators; /* those that NCCL says more of */
    uint32_t told_communicator_count;
    struct mt_heap_use *heaps; /* in order of first sight */
    uint32_t heap_count;
    struct mt_residual residual;
    struct mt_driver_failure *failures; /* the first ones */
    uint32_t failure_count;
    uint64_t failures_in_all;
    /* The first request for memory of the device that was refused, after which it was given none.
     * NULL: there is none. */
    const struct mt_driver_failure *fatal;
};

/* What a device is full of while a model serves: every byte of it is of one part. */
enum mt_device_part {
    MT_DEVICE_WEIGHTS,
    MT_DEVICE_KV_CACHE,
    MT_DEVICE_ACTIVATIONS, /* with temporaries and inputs */
    MT_DEVICE_GRAPHS,      /* segments of private pools, without weights, KV cache, workspaces */
    MT_DEVICE_WORKSPACES,
    MT_DEVICE_OTHER,     /* blocks of no known role */
    MT_DEVICE_UNUSED,    /* segments of the framework where no block is */
    MT_DEVICE_LIBRARIES, /* what the driver gave out beside them */
    MT_DEVICE_CONTEXT,   /* what no allocation explains, at NVML's sample nearest to the peak */
    MT_DEVICE_FREE       /* the rest: free, other processes', or not seen */
};
enum { MT_DEVICE_PART_COUNT = MT_DEVICE_FREE + 1 };

/* "weights", "KV cache", ... */
const char *mt_device_part_name(enum mt_device_part part);

/* At the allocated peak. The parts sum to total_bytes. */
struct mt_device_parts {
    uint64_t total_bytes;
    uint64_t parts[MT_DEVICE_PART_COUNT];
    bool context_is_known;                /* NVML was sampled */
    uint64_t context_t_ns, context_event; /* of the sample that it is from */
    uint64_t samples;                     /* of which that is the nearest */
    bool died;                            /* of an OOM: what else it asks for is not in the trace */
    uint64_t spare_bytes; /* free at every instant: at most the part MT_DEVICE_FREE, and less if
                             the driver's peak is not the allocated peak, or if the context was
                             larger at the sample of largest use */
};

/* What is worth a change (analyzer/findings). */
struct mt_finding {
    const char *id;          /* of the kind: "pinned-segments" */
    const char *severity;    /* "error", "warning", "info" (findings.c) */
    uint64_t bytes;          /* that the change saves, or that the finding is about */
    uint64_t bytes_per_step; /* of growth; else 0 */
    const char *title;       /* one line: who, and how many bytes */
    const char **evidence;   /* a line each */
    uint32_t evidence_count;
    const char *advice;    /* what to change */
    const char *cost;      /* what the change costs, NULL = nothing that is known */
    const char *proved_by; /* the command that shows the saving, NULL = none */
    /* How much less the device must have (mt_need) after the change, by replays. Of advice that no
     * replay can follow it is not known. */
    bool has_saving;
    uint64_t saved_need_bytes;
};

/* What each step leaves behind: one estimate for the finding, the gate and the picture. */
struct mt_growth {
    /* False: there are fewer than MT_GROWTH_MIN_STEPS steps that were recorded, or too many blocks
     * outlive their step to look at. The rest is 0 then. */
    bool judged;
    uint32_t steps; /* that it is an average of */
    /* Of blocks that are still there when the last step begins, born in one step after another at
     * one line; 0 = no line leaves any, or memory does not rise by as much (trend.h). */
    uint64_t bytes_per_step;
    uint32_t stack; /* one of the line that leaves most; MT_NO_ID: none, or not known */
};

/* Blocks selected over time, not at one instant. */
struct mt_population {
    enum mt_population_of of;
    bool missing; /* there are not enough steps, or not that step or phase */
    /* Born from the first event on, before the second, and still there after the third. */
    uint64_t from_event, until_event, alive_event;
    int64_t first_step, last_step; /* MT_NO_STEP: not of steps */
    int32_t phase;                 /* ALLOCATED: in this alone, or MT_NO_PHASE */
    struct mt_holding *holdings;   /* in no order; `phase` is one of its name */
    uint32_t holding_count;
    uint64_t bytes, requested_bytes, blocks;
};

#define MT_MODEL_STRUCT(NAME, name) struct mt_##name;
#define MT_MODEL_MEMBER(NAME, name) struct mt_##name *name;

MT_MODELS(MT_MODEL_STRUCT)

/* Blocks that the program itself gave a name: PyTorch's user_metadata and annotations. */
struct mt_tag_use {
    const char *tag;
    uint64_t bytes, requested_bytes, blocks;
    bool names_role; /* `role` is what the tag says; else roles of its blocks are inferred */
    enum mt_role role;
};

struct mt_device_report {
    uint16_t device;
    const char *name; /* "NVIDIA H200", NULL = not recorded */
    uint64_t total_memory_bytes;
    struct mt_replay_result replay;
    uint64_t events, allocations, frees, segments_peak, ooms, retries;
    bool complete; /* starts from an empty allocator, nothing dropped */
    struct mt_peak requested_peak, allocated_peak, active_peak, reserved_peak;
    /* 1 - allocated/reserved at the instant of the reserved peak. */
    double fragmentation_at_reserved_peak;
    /* Under a policy or limit that is not the recorded one: the first request
     * that it could not serve; what follows it did not happen like that. */
    struct mt_oom first_failure;
    bool has_failure;
    uint64_t worst_unused_bytes, worst_unused_t_ns; /* max reserved - allocated */
    struct mt_bytes start, end;                     /* before the first, after the last event */

    struct mt_phase_use *phase_uses; /* parallel to report->phases */
    struct mt_step_use *steps;
    uint32_t step_count;
    struct mt_site_use *peak_sites; /* at the allocated peak, largest first */
    uint32_t peak_site_count;
    uint64_t peak_role_bytes[MT_ROLE_COUNT], peak_recorded_role_bytes[MT_ROLE_COUNT];
    struct mt_tag_use *peak_tags; /* what the program said, largest first */
    uint32_t peak_tag_count;
    /* alive when the trace began, without a stack; the role is told from sizes and lifetimes */
    uint64_t peak_start_role_bytes;
    struct mt_instant *instants; /* [0] is the allocated peak if any event */
    uint32_t instant_count;
    struct mt_explanation *explanations;
    uint32_t explanation_count;
    struct mt_oom *oom_list;
    uint32_t oom_count;
    /* The default pool first, then by first block. Only of a run with private pools, as it was. */
    struct mt_pool_use *pools;
    uint32_t pool_count;
    struct mt_retry_mark *retry_marks; /* in order; `retries` in all, if no device was left out */
    uint32_t retry_mark_count;
    struct mt_idle_use *idle; /* by phase, then role */
    uint32_t idle_count;
    struct mt_gap *gaps; /* the longest pauses, by time */
    uint32_t gap_count;
    /* Of blocks without a stack, at the peak: in all, and by what they belong to;
     * [MT_TIE_NONE]: to nothing that is known. */
    uint64_t frameless_peak_bytes, tie_peak_bytes[MT_TIE_COUNT];
    uint64_t first_t_ns, last_t_ns, first_event, last_event;

    struct mt_xla_use *xla;     /* NULL: no module of XLA ran, or its requests are the driver's */
    const struct mt_need *need; /* NULL: not asked for, not known, or the run died */
    const struct mt_peak_orders *peak_orders; /* NULL: likewise, or no dry run */
    struct mt_oom_answer *oom_answer;         /* NULL: did not die, or what-if */
    struct mt_finding *findings;              /* by bytes, largest first */
    uint32_t finding_count;
    const char *no_finding; /* why there is none; NULL: there are, or requests were refused, or the
                               level is the driver's, or the settings are not the program's */
    struct mt_growth growth;
    struct mt_device_parts *device_parts; /* NULL: no KV cache, not recorded with the driver's
                             calls, or numbers that contradict each other */

    struct mt_answer *answer; /* NULL unless a question was asked */
    /* timeline, flamechart, ...: all that model_list.h has. NULL unless asked for, and where
     * there is nothing to show: addresses that were not recorded. */
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
    int32_t world_size;        /* of the distributed run; -1 = not known */
    bool is_dry_run;           /* no device: times and values mean nothing */
    struct mt_dry_run dry_run; /* what was simulated then */
    char sha256[65];           /* of the file, "" if it was a pipe */
    struct mt_integrity integrity;
    const char *doubt; /* why the program may need more than the trace shows: its dry run was ended
                          early, or what the caller of mt_analyze knows and sets; static, or NULL */
    bool starts_in_middle;
    bool is_snapshot; /* recorded by PyTorch itself */
    bool is_imported; /* a snapshot, or a file of another tool */
    /* devices with memory events that are in no table */
    uint64_t devices_left_out;     /* count: their numbers are above 63 */
    uint64_t devices_not_followed; /* bit N: there are too many phases for device N */
    uint64_t first_t_ns, last_t_ns;
    const struct mt_symbols *symbols; /* borrowed from the source */

    struct mt_phase *phases;
    bool *main_phase; /* parallel: one of the parts that steps are made of (the
                         outermost ranges that a user named, without steps and
                         what contains them) */
    uint32_t phase_count;
    uint64_t phases_not_recorded; /* too deep or too many */
    int64_t step_count;
    bool roles_inferred;            /* of some blocks at least */
    bool has_stacks;                /* any were recorded */
    bool names_operations;          /* they are TensorFlow's operations, not call stacks */
    bool has_segments;              /* else reserved is the sum of what lived */
    bool saw_backward;              /* or an optimizer: else roles are by call site */
    char policy[MT_POLICY_TEXT];    /* what the replay simulated */
    bool what_if;                   /* asked for: not what the program ran under */
    const char *pytorch_difference; /* why not PyTorch's rules, NULL = they are, or
                                       another policy was asked for */

    struct mt_device_report *devices; /* those with events, ascending */
    uint32_t device_count;

    /* No allocator above the driver: what is analysed are all requests to it. */
    bool is_driver_level;
    /* ... and no Python frame: a program without a framework, to which roles of blocks and a
     * backward pass mean nothing; steps only if it names them. */
    bool is_plain;
    /* Recorded traces: of each device with events other than the framework's,
     * ascending. */
    struct mt_driver_report *drivers;
    uint32_t driver_count;

    struct mt_pass_log passes; /* how the report was made */
};

#endif
