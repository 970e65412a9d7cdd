/* A finding is a plug-in: a file, or a part of the file of its family, and one line in the table of
 * findings.c. Below are functions that several findings use. */
#ifndef MT_ANALYZER_FINDING_H
#define MT_ANALYZER_FINDING_H

#include <stdbool.h>

#include "analysis.h"
#include "arena.h"
#include "block_watches.h"
#include "module_table.h"
#include "report.h"
#include "site.h"
#include "status.h"
#include "symbols.h"
#include "trend.h"
#include "util.h"

struct mt_analysis;

/* Marks of stacks. A stack has the mark of its innermost frame that has a mark. Each frame and each
 * stack is judged once. */

/* Zeroed memory is an empty table. */
struct mt_stack_marks {
    uint8_t *stacks;
    uint32_t count;
};

/* Returns the mark of a frame, 0 = none. */
typedef uint8_t mt_frame_judge(const struct mt_symbols *symbols, const struct mt_frame *frame);

/* Marks all stacks; does nothing if the table is complete. O(frames + stacks), at any depth. */
void mt_stack_marks_make(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                         mt_frame_judge *judge);
void mt_stack_marks_release(struct mt_stack_marks *marks);

/* Returns 0 for a stack that is not in the table. */
static inline uint8_t mt_stack_mark(const struct mt_stack_marks *marks, uint32_t stack)
{
    return stack < marks->count ? marks->stacks[stack] : 0;
}

/* Maximum number of findings of one kind on one device. */
#define MT_FINDINGS_MAX 4

/* Maximum number of findings of one device that mark blocks. */
#define MT_FINDINGS_MARKED 24

/* Blocks that the change of a finding may remove, at any instant: more than it may is safe. */
struct mt_finding_scope {
    uint32_t roles;                      /* bits; 0 = none */
    uint32_t stackless_roles;            /* bits: blocks of these roles without a stack */
    uint64_t each_bytes;                 /* requested; 0 = any */
    const struct mt_stack_marks *stacks; /* NULL: all blocks */
    uint32_t marks;                      /* bits: only stacks with one of these marks */
};

/* What findings share; marks of stacks are made on first use. */
struct mt_finding_marks {
    struct mt_stack_marks loss, foreach, softmax, checkpoint;
    struct mt_finding_scope (*scopes)[MT_FINDINGS_MARKED]; /* by device of the report and by bit */
};

/* Input of a finding. */
struct mt_finding_search {
    struct mt_analysis *analysis; /* its report is complete; in `ask`, it has only the facts */
    const struct mt_device_report *device;    /* the current device */
    struct mt_live_blocks_device *held;       /* requested from the pass `blocks` */
    struct mt_finding_marks *marks;           /* shared by all devices; NULL in `ask` */
    struct mt_finding found[MT_FINDINGS_MAX]; /* texts: of the report's arena */
    uint32_t count;
    bool *marked; /* by holding of the allocated peak; see mt_finding_mark */
    bool has_marked;
    struct mt_finding_scope scope; /* with marks: blocks like the marked ones at other instants */
    struct mt_growth growth;       /* see mt_device_report; set by the finding that judges it */
};

struct mt_finding_ops {
    /* Called before the pass `blocks`: requests the data that the finding needs. NULL = no
     * request. */
    void (*ask)(struct mt_finding_search *search);
    /* Adds the findings of one device (mt_finding_publish). */
    enum mt_status (*find)(struct mt_finding_search *search);
};

/* A block that outlives its step, with that step and the line that allocated it. */
struct mt_line_life {
    const struct mt_life *life;
    uint32_t line, step;
};

static inline struct mt_line_life mt_line_life(const struct mt_analysis *analysis,
                                               const struct mt_lives *lives,
                                               const struct mt_life *life)
{
    return (struct mt_line_life){life,
                                 mt_site_table_site(&analysis->attribution.sites, life->stack),
                                 mt_lives_step(lives, life->birth_event)};
}

/* Returns true if a replay can show the effect of a change. It must fully explain the allocator of
 * the run. */
bool mt_finding_replayable(const struct mt_finding_search *search);

/* Returns the path of the trace as a word for a shell. */
const char *mt_finding_path(const struct mt_finding_search *search);

/* Returns the shell command that replays the run as it was and under the policy, with a limit if it
 * is not 0. In the report's arena. */
const char *mt_finding_command(const struct mt_finding_search *search, const char *policy,
                               uint64_t limit_bytes);

/* Replays under the policy, on the current device; see mt_replay_options. */
enum mt_status mt_finding_replay(struct mt_finding_search *search, const char *policy,
                                 uint64_t limit_bytes, uint64_t most_reserved_bytes,
                                 struct mt_replay_summary *summary) MT_MUST_USE;

/* Returns the smallest saving worth reporting for a given peak. Smaller ones are noise between
 * runs. */
static inline uint64_t mt_finding_least(uint64_t peak_bytes)
{
    return mt_max_u64(64 * MT_MIB, peak_bytes / 20);
}

static inline bool mt_finding_matters(uint64_t bytes, uint64_t peak_bytes)
{
    return bytes >= mt_finding_least(peak_bytes);
}

/* Sets the evidence of a finding of the report: `count` lines that live as long as the report. */
void mt_finding_set_evidence(struct mt_finding *finding, const char **evidence, uint32_t count);

/* Adds a copy of a finding and of its evidence, in the report's arena, if there is room. */
void mt_finding_publish(struct mt_finding_search *search, const struct mt_finding *finding);

/* Returns the place for one more finding, or NULL if there is no room. */
static inline struct mt_finding *mt_finding_add(struct mt_finding_search *search)
{
    return search->count < MT_FINDINGS_MAX ? &search->found[search->count++] : NULL;
}

/* Marks a holding of the allocated peak, number `holding` of instants[0], whose bytes the finding
 * counts and its change may remove. The search publishes one finding. */
static inline void mt_finding_mark(struct mt_finding_search *search, uint32_t holding)
{
    search->marked[holding] = search->has_marked = true;
}

/* Marks all holdings of a role, and adds the role to the scope. */
void mt_finding_mark_role(struct mt_finding_search *search, enum mt_role role);

/* Bounds what findings with marks may save. Reads the source again if there are any. */
enum mt_status mt_savings_bound(struct mt_analysis *analysis,
                                const struct mt_finding_marks *marks) MT_MUST_USE;

/* Sorts the findings of a device, see mt_findings_fill. Bytes that several findings mark count only
 * for the first of them. */
void mt_findings_rank(struct mt_arena *arena, struct mt_device_report *device);

/* Advice in the terms of the recorded framework. */

enum mt_framework {
    MT_FRAMEWORK_UNKNOWN, /* no framework, or one that is not named */
    MT_FRAMEWORK_TORCH,
    MT_FRAMEWORK_JAX,
    MT_FRAMEWORK_TENSORFLOW,
    MT_FRAMEWORK_COUNT
};

/* Returns the framework whose requests are analyzed. PyTorch is identified by its allocator. JAX
 * and TensorFlow are identified by names in stacks or modules of a program that runs modules of
 * XLA. O(frames + modules). */
enum mt_framework mt_framework_of(const struct mt_finding_search *search);

/* One text for each framework; NULL: uses the first one, which names no framework. */
struct mt_framework_texts {
    const char *of[MT_FRAMEWORK_COUNT];
};

const char *mt_framework_text(const struct mt_finding_search *search,
                              const struct mt_framework_texts *texts);

/* Advice in the words of the library that drives the training loop. */
struct mt_loop_words {
    const char *checkpoint; /* how to recompute activations of models of transformers; or NULL */
    const char *optimizer;  /* how to keep less state of the optimizer */
    const char *shard;      /* how to shard it; NULL: the library has no words of its own */
};

/* Whether a file is in the frames of the recording; see mt_path_has. O(frames). */
bool mt_file_is_in_frames(const struct mt_symbols *symbols, const char *file);

/* Returns the words of the library whose frames are in the stacks, otherwise PyTorch's own.
 * O(frames). */
struct mt_loop_words mt_loop_words_of(const struct mt_symbols *symbols);

/* Whether more sharding is no advice for the run: stacks name a library that shards (FSDP, ZeRO),
 * or one process has the model on several devices. O(frames). */
bool mt_run_is_sharded(const struct mt_finding_search *search);

/* Whether the program trains, even if no backward pass was recorded: parts of a step, or the
 * functions in its stacks, say so. O(frames + phases). */
bool mt_run_trains(const struct mt_finding_search *search);

/* The settings of PyTorch's allocator that findings try: its defaults, and expandable segments. */

struct mt_setting {
    const char *policy; /* as for mt_replay_options */
    const char *what;   /* in words */
    const char *advice; /* a shell command */
};

enum { MT_SETTING_COUNT = 2 };
extern const struct mt_setting mt_settings[MT_SETTING_COUNT];

/* Returns true if the run used this setting. */
bool mt_setting_is_own(const struct mt_report *report, const struct mt_setting *setting);

/* Returns the setting with that policy, or NULL. */
const struct mt_setting *mt_setting_of(const char *policy);

/* Replays the run with other lifetimes: blocks that end earlier, or are absent for a while. The
 * changes are inserted into the source like inferred ranges (source.h), and the run's own policy
 * and limit are replayed.
 *
 *     mt_retime_free(&retime, device, before, life);    it ends there, and its own end is ignored
 *     mt_retime_alloc(&retime, device, before, life);   it is requested again
 *     mt_retime_replay(&retime, search, &peaks); */

/* Zeroed memory is ready. */
struct mt_retime {
    struct mt_retimed {
        struct mt_overlay_event at;
        size_t number; /* order in which the changes were added, which breaks ties */
    } * events;
    size_t count, capacity;
    bool within_reserved; /* give up if more is reserved than in the run */
};

struct mt_retimed_peaks {
    /* False if a request failed that did not fail in the run, or if the replay was given up. */
    bool known;
    uint64_t allocated_bytes, reserved_bytes;
};

/* Returns how much less is reserved in that replay. */
static inline uint64_t mt_reserved_saving(const struct mt_finding_search *search,
                                          const struct mt_retimed_peaks *after)
{
    const uint64_t before = search->device->reserved_peak.bytes;

    return before - mt_min_u64(after->reserved_bytes, before);
}

/* Ends the block before event number `before`. */
void mt_retime_free(struct mt_retime *retime, uint16_t device, uint64_t before,
                    const struct mt_life *life);

/* Requests the block again before that event; its own end then ends the new block. */
void mt_retime_alloc(struct mt_retime *retime, uint16_t device, uint64_t before,
                     const struct mt_life *life);

/* Reads the source from its start. Costs a replay. */
enum mt_status mt_retime_replay(struct mt_retime *retime, struct mt_finding_search *search,
                                struct mt_retimed_peaks *peaks) MT_MUST_USE;
void mt_retime_release(struct mt_retime *retime);

/* Findings: suggested changes of the program or its settings, each with evidence, and with the
 * replay that proves the saving. */

/* Call it before the pass `blocks`: requests the data that findings need. */
void mt_findings_begin(struct mt_analysis *analysis);

/* Fills devices[].findings: the cause of the run's end first, then what ends the run if it
 * continues, then by what each saves beyond those before it. Reads the source again, from its
 * start, if a finding requires it: call it last. */
enum mt_status mt_findings_fill(struct mt_analysis *analysis) MT_MUST_USE;

/* Text for a device without findings: what was examined, and what could not be. */

/* Returns one sentence without a period, in the arena, for a run in which no request is known to
 * have been refused. */
const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device);

/* Findings about activations at the peak: those that wait for backward, those of the loss, and
 * matrices of attention. */

/* Advice on recomputing activations instead of keeping them, in terms of the library in use. */

/* Returns the code to write, in the arena: the library's own call if it has one
 * ("model.gradient_checkpointing_enable()"), otherwise torch.utils.checkpoint around the layers
 * that repeat, or around a module that holds most of the activations. Without such layers or module
 * it is no function that recomputes: around the whole model, backward needs as much as before.
 * `modules` is NULL if they were not examined. */
const char *mt_checkpoint_advice(struct mt_arena *arena, const struct mt_symbols *symbols,
                                 struct mt_site site, const struct mt_modules *modules);

/* Returns the change of `dry-run --apply` that does this: "checkpoint=Block,Other". NULL: no class
 * is known. */
const char *mt_checkpoint_change(struct mt_arena *arena, const struct mt_modules *modules);

/* Buffers that each step replaces by a longer one, x = torch.cat([x, new]). The evidence is a line
 * of the program whose blocks outlive their step and end in the next step, which leaves more bytes
 * behind. Batches of growing length also leave more bytes behind. A replacement differs from them:
 * it is allocated while the old block exists. It is longer by the size of a block that the step
 * allocated before, or by a constant fraction of that size (a third, for keys and values that were
 * computed together). */

#define MT_MAX_REPLACED 8 /* lines; the largest */

struct mt_replaced {
    uint32_t frame, stack;   /* the line, and one stack of it */
    uint32_t first_step;     /* first step that left blocks; each later step left more */
    uint32_t blocks, stacks; /* blocks that the last step left, and the number of their stacks */
    bool even;               /* the additional bytes are the same in each step */
    uint64_t old_bytes, new_bytes; /* bytes that the step before `begin` and the last step left */
};

/* Searches the steps [begin, end) of `lives` for such buffers; begin > 0. mt_replaced_find reads
 * the source from its start to its end only if some lines leave more in each step, in total at
 * least `least_bytes`. `lines` has room for MT_MAX_REPLACED. */
struct mt_replaced_question {
    const struct mt_device_report *device;
    const struct mt_lives *lives;
    uint32_t begin, end;
    uint64_t least_bytes;
};
enum mt_status mt_replaced_find(struct mt_analysis *analysis,
                                const struct mt_replaced_question *question,
                                struct mt_replaced *lines, uint32_t *count) MT_MUST_USE;

#endif
