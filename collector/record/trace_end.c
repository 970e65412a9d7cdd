/* Completes a trace after its process has ended; redacts it. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "child_run.h"
#include "finalize.h"
#include "grow.h"
#include "header.h"
#include "heaps.h"
#include "output_file.h"
#include "process_end.h"
#include "process_memory.h"
#include "recover.h"
#include "redacted_source.h"
#include "redaction.h"
#include "source.h"
#include "status.h"
#include "tape_file.h"
#include "temporary_file.h"
#include "trace.h"
#include "trace_end.h"
#include "util.h"
#include "xla_names.h"

/* Sums live blocks by address. Each heap has its own address space. */

/* The sum to which an event of a heap belongs. */
enum account { NOTHING, DEVICE, RESERVED, BLOCKS, ACCOUNT_COUNT };

struct alive {
    struct mt_map entries; /* address in its space -> index of sizes */
    uint64_t *sizes;
    size_t capacity, used;
    uint32_t *unused; /* free indexes */
    size_t unused_capacity, unused_count;
};

struct summing {
    struct mt_source *source;
    struct alive alive;
    uint64_t now_bytes[ACCOUNT_COUNT], peak_bytes[ACCOUNT_COUNT];
    bool seen[ACCOUNT_COUNT];
    uint64_t xla_modules, device_allocations; /* runs of modules; requests to the driver */
    enum account *blocks;                     /* by heap id: the account of its blocks */
    size_t heaps_capacity, heaps;
    struct mt_lost_events lost;
    uint64_t out_of_memory; /* bit N: device N, since its last allocation */
};

static void alive_release(struct alive *alive)
{
    mt_map_release(&alive->entries);
    free(alive->sizes);
    free(alive->unused);
}

static enum mt_status alive_add(struct alive *alive, uint64_t key, uint64_t size_bytes)
{
    uint32_t index;

    if (alive->unused_count)
        index = alive->unused[--alive->unused_count];
    else if (alive->used < UINT32_MAX - 1)
        index = (uint32_t)alive->used++;
    else
        return MT_ERR_MEMORY;
    if (alive->used > alive->capacity &&
        mt_grow(&alive->sizes, &alive->capacity, alive->used, sizeof *alive->sizes) != MT_OK)
        return MT_ERR_MEMORY;
    alive->sizes[index] = size_bytes;
    return mt_map_set(&alive->entries, key, index);
}

/* Returns the size of the block; 0 if it is not known to be alive. */
static enum mt_status alive_take(struct alive *alive, uint64_t key, uint64_t *size_bytes)
{
    uint32_t index = mt_map_take(&alive->entries, key);

    *size_bytes = 0;
    if (index == MT_MAP_NONE)
        return MT_OK;
    *size_bytes = alive->sizes[index];
    if (alive->unused_count == alive->unused_capacity &&
        mt_grow(&alive->unused, &alive->unused_capacity, alive->unused_count + 1,
                sizeof *alive->unused) != MT_OK)
        return MT_ERR_MEMORY;
    alive->unused[alive->unused_count++] = index;
    return MT_OK;
}

static enum account account_of_heap(const struct mt_symbols *symbols, size_t heap)
{
    const char *name = mt_symbols_text(symbols, symbols->heaps[heap].name);

    if (mt_heap_class_of(name).is_device_memory)
        return DEVICE;
    return strcmp(name, "pytorch") == 0 ? BLOCKS : NOTHING;
}

/* Heaps may be defined while events are read. */
static enum mt_status learn_heaps(struct summing *summing)
{
    const struct mt_symbols *symbols = &summing->source->symbols;

    if (summing->heaps >= symbols->heap_count)
        return MT_OK;
    if (mt_grow(&summing->blocks, &summing->heaps_capacity, symbols->heap_count,
                sizeof *summing->blocks) != MT_OK)
        return MT_ERR_MEMORY;
    for (; summing->heaps < symbols->heap_count; summing->heaps++)
        summing->blocks[summing->heaps] = account_of_heap(symbols, summing->heaps);
    return MT_OK;
}

static enum account account_of(const struct summing *summing, const struct mt_event *event)
{
    enum account blocks = event->heap < summing->heaps ? summing->blocks[event->heap] : NOTHING;

    if (!mt_event_is_segment(event))
        return blocks;
    return blocks == BLOCKS ? RESERVED : NOTHING;
}

static void grow_account(struct summing *summing, enum account account, uint64_t size_bytes)
{
    uint64_t *now = &summing->now_bytes[account];

    summing->seen[account] = true;
    if (!mt_add_ok(*now, size_bytes, now))
        *now = UINT64_MAX;
    summing->peak_bytes[account] = mt_max_u64(summing->peak_bytes[account], *now);
}

static void shrink_account(struct summing *summing, enum account account, uint64_t size_bytes)
{
    summing->now_bytes[account] -= mt_min_u64(summing->now_bytes[account], size_bytes);
}

/* Distinguishes blocks and segments of a heap, heaps, and devices. */
static uint64_t key_of(const struct mt_event *event)
{
    uint64_t space = (uint64_t)event->heap << 17 | (uint64_t)event->device << 1 |
                     (uint64_t)(mt_event_is_segment(event) != 0);

    return event->addr ^ mt_hash_u64(space);
}

static void note_oom(struct summing *summing, const struct mt_event *event)
{
    uint64_t device = event->device < 64 ? UINT64_C(1) << event->device : 0;

    if (event->kind == MT_EVENT_OOM)
        summing->out_of_memory |= device;
    else if (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_SEGMENT_ALLOC ||
             event->kind == MT_EVENT_SEGMENT_MAP)
        summing->out_of_memory &= ~device;
}

static enum mt_status add_event(struct summing *summing, const struct mt_event *event)
{
    enum account account = account_of(summing, event);
    uint64_t size_bytes = event->size_bytes;
    enum mt_status status;

    if (account == NOTHING)
        return MT_OK;
    note_oom(summing, event);
    switch (event->kind) {
    case MT_EVENT_ALLOC:
        grow_account(summing, account, size_bytes);
        return alive_add(&summing->alive, key_of(event), size_bytes);
    case MT_EVENT_FREE_REQUESTED:
    case MT_EVENT_FREE_COMPLETED: /* has no effect after a request */
        status = alive_take(&summing->alive, key_of(event), &size_bytes);
        shrink_account(summing, account, size_bytes);
        return status;
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_MAP: grow_account(summing, account, event->size_bytes); break;
    case MT_EVENT_SEGMENT_FREE:
    case MT_EVENT_SEGMENT_UNMAP: shrink_account(summing, account, event->size_bytes); break;
    default: break;
    }
    return MT_OK;
}

static void count_xla(struct summing *summing, const struct mt_event *event)
{
    const char *module;
    size_t length;

    if (event->kind == MT_EVENT_PHASE_PUSH)
        summing->xla_modules +=
            mt_xla_range_of(mt_symbols_text(&summing->source->symbols, event->name), &module,
                            &length) == MT_XLA_MODULE;
    else if (event->kind == MT_EVENT_ALLOC)
        summing->device_allocations += account_of(summing, event) == DEVICE;
}

static enum mt_status add_batch(struct summing *summing, const struct mt_event_batch *batch,
                                struct mt_trace_summary *summary)
{
    enum mt_status status = learn_heaps(summing);

    if (!summary->events)
        summary->begin_ns = batch->events[0].t_ns;
    for (size_t i = 0; i < batch->count && status == MT_OK; i++) {
        mt_lost_events_add(&summing->lost, &batch->events[i]);
        count_xla(summing, &batch->events[i]);
        status = add_event(summing, &batch->events[i]);
    }
    summary->events += batch->count;
    summary->end_ns = batch->events[batch->count - 1].t_ns;
    return status;
}

/* A reason with 0 events means that names are missing. */
static void name_lost(const struct summing *summing, struct mt_trace_summary *summary)
{
    const struct mt_lost_events *lost = &summing->lost;
    const size_t most = MT_ARRAY_LEN(summary->lost);

    summary->lost_count = mt_min_u64(lost->count, most);
    for (size_t i = 0; i < lost->count; i++) {
        struct mt_lost_text *text = &summary->lost[mt_min_u64(i, most - 1)];
        const char *why =
            i < most ? mt_lost_events_why(lost, i, &summing->source->symbols) : "other reasons";
        text->events += lost->reasons[i].events;
        snprintf(text->why, sizeof text->why, "%s", why ? why : "");
    }
}

static void finish(const struct summing *summing, struct mt_trace_summary *summary)
{
    const struct mt_source *source = summing->source;
    const char *sources = source->header.sources, *missed = source->header.not_recorded;

    summary->bytes = source->input_bytes;
    summary->process_id = source->header.process_id;
    summary->rank = source->header.rank;
    summary->ring_ns = source->header.ring_ns;
    summary->ring_began_t_ns = source->header.ring_began_t_ns;
    summary->ring_left_out = source->header.ring_left_out;
    summary->device_known = summing->seen[DEVICE];
    summary->reserved_known = summing->seen[RESERVED];
    summary->blocks_known = summing->seen[BLOCKS];
    summary->device_peak_bytes = summing->peak_bytes[DEVICE];
    summary->reserved_peak_bytes = summing->peak_bytes[RESERVED];
    summary->died_of_oom = summing->out_of_memory != 0;
    summary->blocks_rounded = source->header.sizes_rounded;
    summary->blocks_peak_bytes = summing->peak_bytes[BLOCKS];
    summary->xla_requests_missing =
        mt_xla_serves_itself(summing->xla_modules, summing->device_allocations);
    summary->dropped = source->integrity.events_dropped;
    summary->damaged = source->integrity.frames_damaged + source->integrity.events_invalid;
    summary->closed = source->integrity.closed && !source->integrity.cut;
    name_lost(summing, summary);
    snprintf(summary->sources, sizeof summary->sources, "%s", sources ? sources : "");
    snprintf(summary->not_recorded, sizeof summary->not_recorded, "%s", missed ? missed : "");
}

enum mt_status mt_trace_summarize(const char *path, struct mt_trace_summary *summary,
                                  struct mt_error *error)
{
    struct summing summing = {0};
    struct mt_event_batch batch;

    memset(summary, 0, sizeof *summary);
    enum mt_status status = mt_trace_open(path, &summing.source, error);
    if (status != MT_OK)
        return status;
    while ((status = mt_source_next(summing.source, &batch, error)) == MT_OK) {
        status = add_batch(&summing, &batch, summary);
        if (status != MT_OK) {
            mt_fail_status(error, status);
            break;
        }
    }
    if (status == MT_END)
        finish(&summing, summary);
    alive_release(&summing.alive);
    free(summing.blocks);
    mt_source_close(summing.source);
    return status == MT_END ? MT_OK : status;
}

/* Redacts a trace that has ended (redaction.h). */

static enum mt_status copy_events(struct mt_source *source, struct mt_writer *writer,
                                  struct mt_error *error)
{
    uint64_t events;
    enum mt_status status = mt_writer_copy(writer, source, true, &events, error);

    if (status != MT_OK)
        return status;
    if (source->integrity.frames_damaged || source->integrity.events_invalid ||
        source->integrity.events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "it is damaged; use 'memtrace import --redact' to write a redacted copy");
    return source->integrity.closed ? mt_writer_finish(writer, error)
                                    : mt_writer_flush(writer, error);
}

static enum mt_status write_redacted(struct mt_source *source, int fd, struct mt_error *error)
{
    struct mt_writer *writer = NULL;
    enum mt_status status =
        mt_writer_new(fd, &source->header, &source->symbols, NULL, &writer, error);

    if (status == MT_OK)
        status = copy_events(source, writer, error);
    mt_writer_free(writer);
    return status;
}

/* Replaces the trace at `path` by a redacted one in one step and keeps its mode. On failure the
 * file stays unchanged, unredacted. A damaged trace is an error, and so is a trace with a tape
 * beside it (MT_ERR_USAGE). A truncated trace stays truncated. `unfinished` (may be NULL) lists the
 * new file while it is written. Reads and writes the trace once. Memory grows with the number of
 * symbols. */
static enum mt_status trace_redact(const char *path, const struct mt_redaction *redaction,
                                   struct mt_unfinished *unfinished, struct mt_error *error)
{
    const struct mt_output_rules rules = {.is_private = true,
                                          .is_durable = true,
                                          .kind = "a trace",
                                          .is_own = mt_trace_probe,
                                          .unfinished = unfinished};
    struct mt_output output;
    struct mt_source *source = NULL;

    if (mt_recover_is_needed(path))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "its tape is not merged into it: run 'memtrace recover' first");
    enum mt_status status = mt_trace_open(path, &source, error);
    if (status != MT_OK)
        return status;
    source = mt_redacted_source(source, redaction);
    if (!source)
        return mt_fail_memory(error);
    status = mt_output_open(&output, path, &rules, error);
    if (status == MT_OK) {
        status = write_redacted(source, output.fd, error);
        if (status == MT_OK)
            status = mt_output_finish(&output, error);
        else
            mt_output_abandon(&output);
    }
    mt_source_close(source);
    return status;
}

enum { LOOK_AGAIN_MS = 20, NAMES_LIMIT_S = 24 * 60 * 60 };

static void sleep_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

/* Adds the contents of the tape, if there is one. MT_ERR_USAGE: its process is running. */
static enum mt_status recover(struct mt_trace_end *end, const struct mt_trace_end_options *options)
{
    enum mt_status status;

    for (unsigned waited_ms = 0;; waited_ms += LOOK_AGAIN_MS) {
        if (!mt_recover_is_needed(end->path))
            return MT_OK; /* the trace may have been closed during the wait */
        status = mt_recover(end->path, options->unfinished, &end->recovery, &end->error);
        if (status == MT_OK)
            end->state = end->recovery.was_closed ? MT_TRACE_WHOLE : MT_TRACE_RECOVERED;
        if (status != MT_ERR_USAGE || waited_ms >= options->patience_ms)
            break;
        sleep_ms(LOOK_AGAIN_MS);
    }
    /* The process may have closed its trace between the two checks. */
    return status != MT_OK && !mt_recover_is_needed(end->path) ? MT_OK : status;
}

/* The status that the launcher received has priority. Otherwise the trace's own status is used, if
 * the process closed its trace: a process that called exit and left a tape died after that, perhaps
 * in a destructor. */
static bool set_ending(const struct mt_trace_end *end, const struct mt_trace_end_options *options,
                       struct mt_trace_header *header, char text[MT_ENDING_TEXT])
{
    const struct mt_process_end *process = options->process;

    if (process && process->process_id == header->process_id) {
        header->ended = mt_ending_text(process->ending, process->number, text);
        header->ended_t_ns = process->t_ns;
        return true;
    }
    if (end->state != MT_TRACE_RECOVERED)
        return false;
    header->ended =
        mt_ending_text(options->timed_out ? MT_ENDED_TIMEOUT : MT_ENDED_UNKNOWN, 0, text);
    header->ended_t_ns = 0;
    return true;
}

/* If the header cannot be read or has no room, it stays unchanged, because only one fact is
 * lost. */
static void tell_ending(const struct mt_trace_end *end, const struct mt_trace_end_options *options)
{
    struct mt_trace_header header;
    struct mt_arena arena = {0};
    struct mt_error ignored;
    char text[MT_ENDING_TEXT];

    if (mt_trace_read_header(end->path, &arena, &header, &ignored) == MT_OK &&
        set_ending(end, options, &header, text))
        (void)!mt_trace_replace_header(end->path, &header, &ignored);
    mt_arena_release(&arena);
}

struct naming {
    const char *path;
    struct mt_finalize_options options;
};

struct named {
    struct mt_finalize_result result;
    struct mt_error error;
    bool memory_failed;
};

#if defined(__GLIBC__)
static void remove_unfinished(int status, void *list)
{
    (void)status;
    mt_unfinished_unlink(list);
}
#endif

/* libdw calls exit if memory runs out. musl has no on_exit: there such a file stays. */
static void remove_at_exit(struct mt_unfinished *list)
{
#if defined(__GLIBC__)
    if (list)
        (void)on_exit(remove_unfinished, list);
#else
    (void)list;
#endif
}

/* Runs in a process with its own group, which does not get signals to the group of memtrace. */
static void name_frames(const void *subject, void *answer)
{
    const struct naming *naming = subject;
    struct named *named = answer;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    remove_at_exit(naming->options.unfinished);
    named->error.offset = MT_NO_OFFSET;
    named->error.status =
        mt_trace_finalize(naming->path, &naming->options, &named->result, &named->error);
    named->memory_failed = mt_memory_has_failed();
}

/* libdw ends the process if memory runs out, and debug information may be malformed, so names are
 * resolved in a separate process. If that dies, frames keep their addresses. */
static void resolve_names(struct mt_trace_end *end, const struct mt_trace_end_options *options)
{
    const struct naming naming = {end->path, {.unfinished = options->unfinished}};
    struct named named;
    const struct mt_child_call call = {name_frames, &naming, &named, sizeof named, NAMES_LIMIT_S};
    struct mt_error *error = &end->native_error;
    int number;

    switch (mt_child_run(&call, &number)) {
    case MT_CHILD_ANSWERED:
        end->native = named.result;
        *error = named.error;
        if (named.memory_failed)
            mt_memory_failed();
        return;
    case MT_CHILD_DIED:
        error->status =
            number
                ? mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                          "the process that looks up names was killed (signal %d)", number)
                : mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                          "the process that looks up names ended early; memory may have run out");
        return;
    case MT_CHILD_LATE:
        error->status =
            mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the process that looks up names did not end");
        return;
    case MT_CHILD_IMPOSSIBLE:
        error->status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                                "the process that looks up names could not start");
    }
}

/* Without a tape, the process has left no other data. Reports a trace that is damaged or has no
 * end. */
static void judge(struct mt_trace_end *end)
{
    const struct mt_trace_summary *summary = &end->summary;

    if (summary->damaged)
        mt_fail(&end->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                "damaged: %llu frames or events cannot be read",
                (unsigned long long)summary->damaged);
    else if (!summary->closed)
        mt_fail(&end->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                "its end is missing, and there is no tape beside it: events that the process had "
                "not written are lost");
    else
        return;
    end->state = MT_TRACE_INCOMPLETE;
}

bool mt_trace_end_is_complete(const struct mt_trace_end *end)
{
    return (end->state == MT_TRACE_WHOLE || end->state == MT_TRACE_RECOVERED) &&
           !end->summary.dropped && !*end->summary.not_recorded;
}

bool mt_trace_end_is_lost(const struct mt_trace_end *end)
{
    return end->has_process && end->state == MT_TRACE_FAILED &&
           end->error.status != MT_ERR_MEMORY && !(end->has_trace && end->has_tape);
}

/* A tape belongs to the original trace, so only a trace without a tape is redacted. */
static void redact(struct mt_trace_end *end, const struct mt_trace_end_options *options)
{
    struct mt_error *error = &end->redaction_error;

    if (!options->redaction)
        return;
    if (end->state == MT_TRACE_RUNNING || end->state == MT_TRACE_FAILED)
        error->status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                                "its recording has not ended or could not be recovered; after "
                                "'memtrace recover', redact it with 'memtrace import --redact'");
    else
        error->status = trace_redact(end->path, options->redaction, options->unfinished, error);
}

void mt_trace_end(struct mt_trace_end *end, const char *path,
                  const struct mt_trace_end_options *options)
{
    struct mt_tape tape;
    struct stat facts;

    memset(end, 0, sizeof *end);
    end->path = path;
    end->error.offset = end->native_error.offset = end->redaction_error.offset = MT_NO_OFFSET;
    end->state = MT_TRACE_WHOLE;
    enum mt_status status = recover(end, options);
    if (status == MT_ERR_USAGE) {
        end->state = MT_TRACE_RUNNING;
        end->is_idle = mt_tape_is_running(path, &tape) &&
                       mt_tape_last_commit(&tape)->began_t_ns == MT_TAPE_IDLE;
    } else if (status != MT_OK)
        end->state = MT_TRACE_FAILED;
    else {
        tell_ending(end, options);
        resolve_names(end, options);
    }
    redact(end, options);
    if (status == MT_OK) {
        status = mt_trace_summarize(path, &end->summary, &end->error);
        end->state = status == MT_OK ? end->state : MT_TRACE_FAILED;
    }
    if (status == MT_OK)
        judge(end);
    else if (end->state == MT_TRACE_FAILED)
        end->error.status = status;
    end->has_process = options->process != NULL;
    end->has_trace = lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
    end->has_tape = mt_recover_is_needed(path);
}
