/* What findings share: text, advice by framework, patterns of stacks, settings of the allocator,
 * replays with other lifetimes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "ascii.h"
#include "finding.h"
#include "foreign_text.h"
#include "frame_judge.h"
#include "grow.h"
#include "heaps.h"
#include "process_memory.h"
#include "report.h"
#include "report_query.h"
#include "sorted.h"
#include "status.h"
#include "symbols.h"
#include "util.h"

/* Files of the frameworks that pass modules to XLA, in the stack of every request. */
static const struct {
    const char *folder;
    enum mt_framework framework;
} folders[] = {
    {"jax/_src/", MT_FRAMEWORK_JAX},
    {"tensorflow/python/", MT_FRAMEWORK_TENSORFLOW},
};

bool mt_file_is_in_frames(const struct mt_symbols *symbols, const char *file)
{
    for (uint32_t i = 0; i < symbols->frame_count; i++)
        if (mt_path_has(mt_symbols_text(symbols, symbols->frames[i].file), file))
            return true;
    return false;
}

static enum mt_framework named_in_stacks(const struct mt_symbols *symbols)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(folders); i++)
        if (mt_file_is_in_frames(symbols, folders[i].folder))
            return folders[i].framework;
    return MT_FRAMEWORK_UNKNOWN;
}

/* A recording without Python frames: jax.jit names a module after the function. */
static enum mt_framework named_in_modules(const struct mt_xla_runs *runs)
{
    static const char prefix[] = "jit_";

    for (uint32_t i = 0; i < runs->modules.count; i++)
        if (strncmp(runs->modules.texts[i], prefix, sizeof prefix - 1) == 0)
            return MT_FRAMEWORK_JAX;
    return MT_FRAMEWORK_UNKNOWN;
}

enum mt_framework mt_framework_of(const struct mt_finding_search *search)
{
    const struct mt_source *source = search->analysis->source;

    if (!search->analysis->report->is_driver_level)
        return strcmp(mt_heap_name(&source->symbols, source->view.heap), "pytorch") == 0
                   ? MT_FRAMEWORK_TORCH
                   : MT_FRAMEWORK_UNKNOWN;
    if (!search->analysis->survey.phases.xla_modules)
        return MT_FRAMEWORK_UNKNOWN;
    enum mt_framework named = named_in_stacks(&source->symbols);
    return named ? named : named_in_modules(&search->analysis->survey.xla.runs);
}

const char *mt_framework_text(const struct mt_finding_search *search,
                              const struct mt_framework_texts *texts)
{
    const char *text = texts->of[mt_framework_of(search)];

    return text ? text : texts->of[MT_FRAMEWORK_UNKNOWN];
}

/* The first that is in the stacks. DeepSpeed's configuration replaces the optimizer of the others.
 */
static const struct {
    const char *file;
    struct mt_loop_words words;
} loops[] = {
    {"deepspeed/runtime/engine.py",
     {NULL,
      "an optimizer with less state (8-bit Adam of bitsandbytes, Adafactor), or "
      "\"offload_optimizer\": {\"device\": \"cpu\"} in \"zero_optimization\" of DeepSpeed's "
      "configuration",
      NULL}},
    {"transformers/trainer.py",
     {"gradient_checkpointing=True in TrainingArguments",
      "optim=\"adamw_bnb_8bit\" or optim=\"adafactor\" in TrainingArguments",
      "fsdp=... or deepspeed=... in TrainingArguments"}},
    {"lightning/pytorch/",
     {NULL, "bitsandbytes.optim.AdamW8bit, Adafactor or SGD in configure_optimizers()",
      "strategy=\"fsdp\" of the Trainer"}},
    {"pytorch_lightning/",
     {NULL, "bitsandbytes.optim.AdamW8bit, Adafactor or SGD in configure_optimizers()",
      "strategy=\"fsdp\" of the Trainer"}},
    {"accelerate/optimizer.py",
     {NULL, "an optimizer with less state (8-bit Adam of bitsandbytes, Adafactor, SGD)",
      "FSDP or DeepSpeed in accelerate config"}},
};

static const struct mt_loop_words own_loop = {
    NULL, "an optimizer with less state (8-bit Adam of bitsandbytes, Adafactor, SGD)",
    "ZeroRedundancyOptimizer, FSDP"};

struct mt_loop_words mt_loop_words_of(const struct mt_symbols *symbols)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(loops); i++)
        if (mt_file_is_in_frames(symbols, loops[i].file))
            return loops[i].words;
    return own_loop;
}

bool mt_run_is_sharded(const struct mt_finding_search *search)
{
    static const char *const files[] = {"torch/distributed/fsdp/",
                                        "torch/distributed/_composable/fsdp",
                                        "_fsdp_collectives.py",
                                        "zero_redundancy_optimizer.py",
                                        "deepspeed/",
                                        "fairscale/"};

    if (search->analysis->report->device_count > 1)
        return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(files); i++)
        if (mt_file_is_in_frames(&search->analysis->source->symbols, files[i]))
            return true;
    return false;
}

/* "train", "train_step" and "Task.training_step", but not "constrain". */
static bool names_training(const char *function)
{
    static const char *const words[] = {"train", "training"};

    for (const char *at = function; *at; at++) {
        if (at > function && mt_is_letter(at[-1]))
            continue;
        for (size_t i = 0; i < MT_ARRAY_LEN(words); i++) {
            const size_t length = strlen(words[i]);

            if (strncmp(at, words[i], length) == 0 && !mt_is_letter(at[length]))
                return true;
        }
    }
    return false;
}

bool mt_run_trains(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const enum mt_phase_kind kind = mt_phase_kind_of(report->phases[i].name);

        if (kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER || kind == MT_PHASE_ZERO_GRAD)
            return true;
    }
    for (uint32_t i = 0; i < symbols->frame_count; i++) {
        const struct mt_frame *frame = &symbols->frames[i];

        if (mt_path_has(mt_symbols_text(symbols, frame->file), "torch/optim/") ||
            names_training(mt_symbols_text(symbols, frame->function)))
            return true;
    }
    return report->saw_backward;
}

/* Parents come before their children, so one pass in order of ids is enough. */
static void mark_stacks(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                        const uint8_t *frames)
{
    for (uint32_t id = 0; id < symbols->stack_count; id++) {
        const struct mt_stack *stack = &symbols->stacks[id];
        uint8_t own = stack->frame < symbols->frame_count ? frames[stack->frame] : 0;

        if (!own && stack->parent < id)
            own = marks->stacks[stack->parent];
        marks->stacks[id] = own;
    }
    marks->count = symbols->stack_count;
}

void mt_stack_marks_make(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                         mt_frame_judge *judge)
{
    if (marks->count == symbols->stack_count)
        return;
    mt_stack_marks_release(marks);
    uint8_t *frames = mt_memory_new((size_t)symbols->frame_count + 1);
    marks->stacks = mt_memory_new((size_t)symbols->stack_count + 1);
    for (uint32_t id = 0; id < symbols->frame_count; id++)
        frames[id] = judge(symbols, &symbols->frames[id]);
    mark_stacks(marks, symbols, frames);
    free(frames);
}

void mt_stack_marks_release(struct mt_stack_marks *marks)
{
    free(marks->stacks);
    memset(marks, 0, sizeof *marks);
}

const struct mt_setting mt_settings[MT_SETTING_COUNT] = {
    {"pytorch:", "the allocator's defaults", "unset PYTORCH_CUDA_ALLOC_CONF"},
    {"pytorch:expandable_segments:True", "expandable segments",
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
};

bool mt_setting_is_own(const struct mt_report *report, const struct mt_setting *setting)
{
    const char *own = report->policy;

    return strcmp(own, setting->policy) == 0 ||
           (strcmp(own, "pytorch") == 0 && strcmp(setting->policy, "pytorch:") == 0);
}

const struct mt_setting *mt_setting_of(const char *policy)
{
    for (int i = 0; i < MT_SETTING_COUNT; i++)
        if (strcmp(mt_settings[i].policy, policy) == 0)
            return &mt_settings[i];
    return NULL;
}

bool mt_finding_replayable(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const struct mt_replay_result *replay = &search->device->replay;

    return !report->is_driver_level && !report->what_if && !report->pytorch_difference &&
           replay->verify.wanted && replay->verify.exact && replay->recorded_addresses &&
           !replay->pools_inferred && !search->device->has_failure &&
           strncmp(report->policy, "pytorch", 7) == 0;
}

const char *mt_finding_path(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const char *path =
        mt_shell_path(&search->analysis->report->arena, *report->path ? report->path : "TRACE");

    return path ? path : "TRACE"; /* memory ran out, which the arena remembers */
}

const char *mt_finding_command(const struct mt_finding_search *search, const char *policy,
                               uint64_t limit_bytes)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *path = mt_finding_path(search), *value = mt_shell_value(arena, policy);

    if (!value)
        return NULL;
    if (!limit_bytes)
        return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p %s", path, value);
    return mt_arena_printf(arena, "memtrace replay %s -p pytorch -p %s --limit %llu", path, value,
                           (unsigned long long)limit_bytes);
}

/* A recorded command line has blanks between its words, so words with blanks are lost, and it is
 * cut after this many bytes. */
enum { MAX_COMMAND_BYTES = 2000 };

static bool is_typed_as_recorded(const char *command)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                " ./_-=:,+@%";

    return *command && strlen(command) < MAX_COMMAND_BYTES && !strstr(command, " -c ") &&
           strspn(command, plain) == strlen(command);
}

/* Returns the shell command that makes a change on paper. NULL: the command of the run is not
 * known, or was that of one of several ranks. */
static const char *on_paper(const struct mt_finding_search *search, const char *change)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_trace_header *header = &search->analysis->source->header;
    const char *command = search->analysis->options->command;

    if (!command && header->command && header->world_size <= 1 &&
        is_typed_as_recorded(header->command))
        command = header->command;
    const char *value = command ? mt_shell_value(arena, change) : NULL;
    return value ? mt_arena_printf(arena, "memtrace dry-run --apply %s -- %s", value, command)
                 : NULL;
}

enum mt_status mt_finding_replay(struct mt_finding_search *search, const char *policy,
                                 uint64_t limit_bytes, uint64_t most_reserved_bytes,
                                 struct mt_replay_summary *summary)
{
    uint64_t most[MT_MAX_DEVICES] = {0};
    const struct mt_replay_options options = {
        .policy = policy, .limit_bytes = limit_bytes, .most_reserved_bytes = most};

    most[search->device->device] = most_reserved_bytes;
    return mt_read_again_replay(search->analysis, &options, summary);
}

void mt_finding_mark_role(struct mt_finding_search *search, enum mt_role role)
{
    const struct mt_device_report *device = search->device;

    search->scope.roles |= 1u << role;
    for (uint32_t i = 0; device->instant_count && i < device->instants[0].holding_count; i++)
        if (device->instants[0].holdings[i].role == role)
            mt_finding_mark(search, i);
}

void mt_finding_set_evidence(struct mt_finding *finding, const char **evidence, uint32_t count)
{
    finding->evidence = evidence;
    finding->evidence_count = count;
}

void mt_finding_publish(struct mt_finding_search *search, const struct mt_finding *finding)
{
    const uint32_t count = finding->evidence_count;
    struct mt_finding *kept = mt_finding_add(search);
    const char **evidence =
        mt_arena_array(&search->analysis->report->arena, count + 1u, sizeof *evidence);

    if (!kept)
        return;
    for (uint32_t i = 0; i < count; i++)
        evidence[i] = finding->evidence[i];
    *kept = *finding;
    if (kept->change && !kept->proved_by)
        kept->proved_by = on_paper(search, kept->change);
    mt_finding_set_evidence(kept, evidence, count);
}

static void add(struct mt_retime *retime, uint16_t device, uint64_t before,
                const struct mt_life *life, uint8_t kind)
{
    const struct mt_event event = {.seq = before,
                                   .addr = life->addr,
                                   .size_bytes = life->requested_bytes,
                                   .stack = life->stack,
                                   .name = MT_NO_ID,
                                   .stream = life->stream,
                                   .device = device,
                                   .heap = life->heap,
                                   .pool = life->pool,
                                   .kind = kind};

    mt_grow_to(&retime->events, &retime->capacity, retime->count + 1, sizeof *retime->events);
    retime->events[retime->count] = (struct mt_retimed){{before, event}, retime->count};
    retime->count++;
}

void mt_retime_free(struct mt_retime *retime, uint16_t device, uint64_t before,
                    const struct mt_life *life)
{
    add(retime, device, before, life, MT_EVENT_FREE_REQUESTED);
    add(retime, device, before, life, MT_EVENT_FREE_COMPLETED);
}

void mt_retime_alloc(struct mt_retime *retime, uint16_t device, uint64_t before,
                     const struct mt_life *life)
{
    add(retime, device, before, life, MT_EVENT_ALLOC);
}

void mt_retime_release(struct mt_retime *retime)
{
    free(retime->events);
    memset(retime, 0, sizeof *retime);
}

MT_DEFINE_ORDER(by_place, struct mt_retimed, MT_ASCENDING(at.before) || MT_ASCENDING(number))

/* Merges the existing overlay with these changes; among two events at one place, the source's come
 * first. */
static void merge(const struct mt_retime *retime, const struct mt_overlay *old,
                  struct mt_overlay *merged)
{
    size_t i = 0, j = 0, count = 0;

    merged->events = mt_memory_zeroed(old->count + retime->count + 1, sizeof *merged->events);
    while (i < old->count || j < retime->count) {
        bool is_old = j == retime->count ||
                      (i < old->count && old->events[i].before <= retime->events[j].at.before);
        merged->events[count++] = is_old ? old->events[i++] : retime->events[j++].at;
    }
    merged->count = merged->capacity = count;
    merged->hides_ranges = old->hides_ranges;
    merged->chosen = true;
}

enum mt_status mt_retime_replay(struct mt_retime *retime, struct mt_finding_search *search,
                                struct mt_retimed_peaks *peaks)
{
    struct mt_analysis *analysis = search->analysis;
    struct mt_source *source = analysis->source;
    uint64_t most_reserved_bytes[MT_MAX_DEVICES] = {0}; /* other devices do not matter */
    /* The comparison with the recording is meaningless here, so nothing is inferred from it. */
    const struct mt_replay_options options = {.policy = analysis->report->policy,
                                              .limit_bytes =
                                                  mt_least_limit_bytes(&search->device->replay),
                                              .no_inferred_limit = true,
                                              .no_inferred_pools = true,
                                              .most_reserved_bytes = most_reserved_bytes};
    struct mt_replay_summary *trial = mt_memory_zeroed(1, sizeof *trial);
    struct mt_overlay old = source->overlay;
    struct mt_overlay merged = {0};

    memset(peaks, 0, sizeof *peaks);
    most_reserved_bytes[search->device->device] =
        retime->within_reserved ? search->device->reserved_peak.bytes : UINT64_MAX;
    if (retime->count)
        qsort(retime->events, retime->count, sizeof *retime->events, by_place);
    merge(retime, &old, &merged);
    source->overlay = merged;
    enum mt_status status = mt_read_again_replay(analysis, &options, trial);
    mt_overlay_release(&source->overlay);
    source->overlay = old;
    for (uint32_t i = 0; status == MT_OK && i < trial->device_count; i++) {
        const struct mt_replay_result *result = &trial->devices[i];
        if (result->device == search->device->device && !result->failed_requests &&
            !result->given_up)
            *peaks = (struct mt_retimed_peaks){true, result->counters.allocated.peak,
                                               result->counters.reserved.peak};
    }
    free(trial);
    return status;
}
