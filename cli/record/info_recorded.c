/* memtrace info of recorded traces: what was recorded, of one trace or of many. */
#define _GNU_SOURCE /* pipe2 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "annexes.h"
#include "buf.h"
#include "cli.h"
#include "driver_ledger.h"
#include "info_identity.h"
#include "info_recorded.h"
#include "io.h"
#include "json.h"
#include "monotonic_clock.h"
#include "outputs.h"
#include "process_memory.h"
#include "report_json.h"
#include "screen.h"
#include "source.h"
#include "units.h"
#include "util.h"

enum {
    PAUSE_MS = 5,
    PATIENCE_MS = 2000 /* time for a process to end after SIGTERM */
};

static const struct timespec pause_time = {0, PAUSE_MS * 1000000L};

static void say_missing(struct mt_recorded_summaries *summaries, const char *path, const char *why)
{
    mt_progress_end(&summaries->progress);
    if (!summaries->is_quiet)
        mt_message("'%s': no summary for 'memtrace fleet' was written: %s; to write it later, use "
                   "'memtrace fleet --summarize'",
                   path, why);
}

/* Makes SIGTERM end this process, even if SIGTERM was ignored or blocked when memtrace started.
 * Otherwise memtrace could wait for a summary forever. */
static void let_sigterm_end_this(void)
{
    struct sigaction found;
    sigset_t only;

    if (sigaction(SIGTERM, NULL, &found) == 0 && found.sa_handler == SIG_IGN) {
        (void)signal(SIGTERM, SIG_DFL);
        mt_outputs_handle_signals();
    }
    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* The last words of a process that makes a summary: memtrace itself prints a line about it. */
static void end_without_memory(void)
{
    mt_unfinished_unlink(mt_outputs_unfinished());
    _exit(MT_EXIT_INPUT);
}

/* Waits until the trace is complete. Ends this process if it never will be. */
static void wait_at_gate(void *context)
{
    const struct mt_summary_job *job = context;
    char byte;

    if (mt_io_read(job->gate[0], &byte, 1) != 1)
        _exit(MT_EXIT_OK);
}

/* Makes the summary, in a separate process. Returns the exit status of that process. */
static int work(struct mt_recorded_summaries *summaries, struct mt_summary_job *job,
                struct mt_source *source)
{
    const struct mt_summary_order order = {.trace = job->path,
                                           .force = summaries->force,
                                           .source = source,
                                           .wait = job->is_gated ? wait_at_gate : NULL,
                                           .context = job};
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (job->is_gated)
        (void)mt_io_close(job->gate[1]); /* so that the end of the parent is noticed */
    mt_memory_last_words_set(end_without_memory);
    mt_memory_return_failures(false);
    enum mt_status status = mt_annex_files->summarize(&order, &error);
    if (status != MT_OK)
        say_missing(summaries, job->path, error.text);
    return status == MT_OK ? MT_EXIT_OK : MT_EXIT_OUTPUT;
}

static size_t most_jobs(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 1 ? 1 : (size_t)mt_min_u64((uint64_t)processors, MT_SUMMARY_JOBS);
}

/* Ends a job with SIGTERM, which lets the job remove its temporary file. Sends SIGTERM repeatedly,
 * because the job may not have called let_sigterm_end_this yet. Abandons a job that survives even
 * SIGKILL, which can happen if a file system hangs. */
static void end_job(const struct mt_summary_job *job)
{
    for (unsigned waited_ms = 0; waited_ms < 2 * PATIENCE_MS; waited_ms += PAUSE_MS) {
        (void)kill(job->process, waited_ms < PATIENCE_MS ? SIGTERM : SIGKILL);
        (void)nanosleep(&pause_time, NULL);
        if (waitpid(job->process, NULL, WNOHANG) != 0)
            return;
    }
}

/* The parent also keeps the end that is read, so that it survives a job that has ended. */
static void close_gate(struct mt_summary_job *job)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(job->gate) && job->is_gated; i++)
        (void)mt_io_close(job->gate[i]);
    job->is_gated = false;
}

/* Returns true if the job has ended. Ends a job that exceeds its timeout. */
static bool has_ended(struct mt_recorded_summaries *summaries, struct mt_summary_job *job)
{
    uint64_t timeout_ms =
        summaries->timeout_ms ? summaries->timeout_ms : MT_SUMMARY_DEFAULT_TIMEOUT_MS;
    int status;
    pid_t got = waitpid(job->process, &status, WNOHANG);

    if (got == 0 && mt_now_ms() - job->started_ms < timeout_ms)
        return false;
    if (got == 0) {
        end_job(job);
        say_missing(summaries, job->path, "it would take too long");
    } else if (got > 0 && WIFSIGNALED(status)) {
        say_missing(summaries, job->path, "the process that writes it was killed");
    } else if (got > 0 && WEXITSTATUS(status) == MT_EXIT_INPUT) {
        say_missing(summaries, job->path, "memory ran out");
    }
    close_gate(job);
    job->process = 0;
    return true;
}

/* Waits until at most `most` jobs are running. Returns a free place. */
static struct mt_summary_job *wait_for(struct mt_recorded_summaries *summaries, size_t most)
{
    for (;;) {
        struct mt_summary_job *place = NULL;
        size_t running = 0;

        for (size_t i = 0; i < MT_SUMMARY_JOBS; i++) {
            struct mt_summary_job *job = &summaries->jobs[i];

            if (job->process && !has_ended(summaries, job))
                running++;
            else
                place = job;
        }
        if (running <= most && place)
            return place;
        (void)nanosleep(&pause_time, NULL);
        mt_progress_update(&summaries->progress, "writing the summary", MT_SHARE_UNKNOWN);
    }
}

static void start(struct mt_recorded_summaries *summaries, const char *path,
                  struct mt_source *source)
{
    if (!summaries->is_begun)
        mt_progress_start(&summaries->progress, summaries->is_quiet);
    summaries->is_begun = true;
    struct mt_summary_job *job = wait_for(summaries, most_jobs() - 1);
    mt_progress_end(&summaries->progress); /* the caller prints between two traces */
    *job = (struct mt_summary_job){.path = path, .started_ms = mt_now_ms()};
    job->is_gated = source && pipe2(job->gate, O_CLOEXEC) == 0;
    if (source && !job->is_gated)
        return;
    job->process = fork();
    if (job->process == 0) {
        mt_unfinished_forget(mt_outputs_unfinished());
        let_sigterm_end_this();
        summaries->progress.shown = !summaries->progress.off; /* the parent may show it */
        _exit(work(summaries, job, source));
    }
    if (job->process < 0) {
        job->process = 0;
        if (!source)
            say_missing(summaries, path, strerror(errno));
        close_gate(job);
    }
}

void mt_recorded_summaries_begin(struct mt_recorded_summaries *summaries, const char *path,
                                 struct mt_source *source)
{
    if (mt_annex_files && source->in_memory)
        start(summaries, path, source);
}

void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path)
{
    for (size_t i = 0; i < MT_SUMMARY_JOBS; i++) {
        struct mt_summary_job *job = &summaries->jobs[i];

        if (!job->is_gated || job->path != path)
            continue;
        job->started_ms = mt_now_ms();
        if (mt_io_write(job->gate[1], "", 1))
            return;
        mt_recorded_summaries_abandon(summaries);
    }
    if (mt_annex_files)
        start(summaries, path, NULL);
}

void mt_recorded_summaries_abandon(struct mt_recorded_summaries *summaries)
{
    for (size_t i = 0; i < MT_SUMMARY_JOBS; i++) {
        struct mt_summary_job *job = &summaries->jobs[i];

        if (job->process)
            end_job(job);
        close_gate(job);
        job->process = 0;
    }
}

void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries)
{
    (void)wait_for(summaries, 0);
    mt_progress_end(&summaries->progress);
}

#define MAX_THREADS       24
#define MAX_COMMUNICATORS 16

void mt_info_recorded_add(struct mt_info_recorded *recorded, const struct mt_event *event)
{
    if (mt_event_is_memory(event)) {
        recorded->has_more_heaps |= recorded->has_heap && event->heap != recorded->first_heap;
        recorded->first_heap = event->heap;
        recorded->has_heap = true;
    } else if (event->kind == MT_EVENT_MEMORY_SAMPLE) {
        recorded->samples++;
        recorded->most_used_bytes = mt_max_u64(recorded->most_used_bytes, event->size_bytes);
    } else {
        mt_lost_events_add(&recorded->lost, event);
    }
}

enum mt_status mt_info_recorded_read(struct mt_info_recorded *recorded, struct mt_source *source,
                                     struct mt_error *error)
{
    bool is_driver =
        recorded->has_heap &&
        mt_heap_class_at(&source->symbols, recorded->first_heap).level == MT_HEAP_DRIVER;

    if (!recorded->has_more_heaps && !is_driver)
        return MT_OK;
    mt_phases_init(&recorded->phases, &recorded->arena, &source->symbols);
    recorded->ledger.arena = &recorded->arena;
    recorded->ledger.phases = &recorded->phases;
    return mt_driver_ledger_read(&recorded->ledger, source, error);
}

void mt_info_recorded_release(struct mt_info_recorded *recorded)
{
    mt_driver_ledger_release(&recorded->ledger);
    mt_phases_release(&recorded->phases);
    mt_arena_release(&recorded->arena);
}

static bool is_named(const struct mt_thread_info *thread)
{
    return thread->name != MT_NO_ID;
}

static uint32_t count_named(const struct mt_symbols *symbols)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < symbols->thread_count; i++)
        count += is_named(&symbols->threads[i]);
    return count;
}

static void add_heap(struct mt_buf *out, const struct mt_driver_ledger *ledger,
                     const struct mt_symbols *symbols, const struct mt_ledger_heap *heap)
{
    const char *name = mt_heap_name(symbols, heap->heap);
    char peak[MT_UNITS_TEXT], live[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    size_t length = strlen(name);

    if (ledger->device_count > 1)
        mt_buf_printf(out, "gpu %u  ", ledger->devices[heap->device].device);
    mt_buf_add_printable(out, name, length);
    mt_buf_add_blanks(out, length < 16 ? 16 - length : 0);
    mt_buf_printf(out, "  peak %9s  end %9s  %s\n", mt_format_bytes(peak, heap->use.peak_bytes),
                  mt_format_bytes(live, heap->use.live_bytes),
                  mt_format_counted(count, heap->use.allocations, "allocation"));
}

static void add_threads(struct mt_buf *out, const struct mt_symbols *symbols)
{
    uint32_t told = 0, named = count_named(symbols);

    for (uint32_t i = 0; i < symbols->thread_count && told < MAX_THREADS; i++) {
        if (!is_named(&symbols->threads[i]))
            continue;
        mt_info_add_label(out, told++ ? "" : "threads");
        const char *name = mt_symbols_text(symbols, symbols->threads[i].name);
        mt_buf_add_printable(out, name, strlen(name));
        if (symbols->threads[i].os_id)
            mt_buf_printf(out, "  %llu", (unsigned long long)symbols->threads[i].os_id);
        mt_buf_add_char(out, '\n');
    }
    if (told < named) {
        mt_info_add_label(out, "");
        mt_buf_printf(out, "and %u more\n", named - told);
    }
}

/* "communicator 0xa4ca2addf5eba5, rank 0 of 8, 12.0 MiB of buffers registered at most" */
static void add_communicators(struct mt_buf *out, const struct mt_communicators *told)
{
    char ranks[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];

    for (size_t i = 0; i < told->count && i < MAX_COMMUNICATORS; i++) {
        const struct mt_communicator *of = &told->list[i];

        mt_info_add_label(out, i ? "" : "nccl");
        mt_buf_add_text(out, "communicator");
        if (of->id)
            mt_buf_printf(out, " 0x%llx", (unsigned long long)of->id);
        if (of->ranks)
            mt_buf_printf(out, ", rank %llu of %s", (unsigned long long)of->rank,
                          mt_format_count(ranks, of->ranks));
        if (of->registered_peak_bytes)
            mt_buf_printf(out, ", at most %s of registered buffers",
                          mt_format_bytes(bytes, of->registered_peak_bytes));
        mt_buf_add_char(out, '\n');
    }
    if (told->count > MAX_COMMUNICATORS) {
        mt_info_add_label(out, "");
        mt_buf_printf(out, "and %zu more\n", told->count - MAX_COMMUNICATORS);
    }
}

void mt_info_recorded_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols)
{
    const struct mt_driver_ledger *ledger = &recorded->ledger;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    size_t told = 0;

    for (size_t i = 0; i < ledger->heap_count; i++) {
        if (!ledger->heaps[i].use.allocations)
            continue;
        mt_info_add_label(out, told++ ? "" : "heaps");
        add_heap(out, ledger, symbols, &ledger->heaps[i]);
    }
    add_communicators(out, &ledger->communicators);
    add_threads(out, symbols);
    if (!recorded->samples)
        return;
    mt_info_add_label(out, "samples");
    mt_buf_printf(out, "%s", mt_format_count(count, recorded->samples));
    if (recorded->most_used_bytes)
        mt_buf_printf(out, ", at most %s used by the process",
                      mt_format_bytes(bytes, recorded->most_used_bytes));
    mt_buf_add_char(out, '\n');
}

void mt_info_dropped_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                          const struct mt_symbols *symbols)
{
    char count[MT_UNITS_TEXT];

    for (size_t i = 0; i < recorded->lost.count; i++) {
        const char *why = mt_lost_events_why(&recorded->lost, i, symbols);

        if (!why)
            continue;
        mt_info_add_label(out, "");
        mt_buf_printf(out, "%12s ", mt_format_count(count, recorded->lost.reasons[i].events));
        mt_buf_add_printable(out, why, strlen(why));
        mt_buf_add_char(out, '\n');
    }
}

static void json_heaps(struct mt_json *json, const struct mt_driver_ledger *ledger,
                       const struct mt_symbols *symbols)
{
    for (struct mt_json_list row = mt_json_rows(json, "heaps", ledger->heap_count);
         mt_json_next(&row);) {
        const struct mt_ledger_heap *heap = &ledger->heaps[row.i];

        mt_json_text(json, "name", mt_heap_name(symbols, heap->heap));
        mt_json_text(json, "level", mt_heap_level_name(heap->is.level));
        mt_json_bool(json, "is_device_memory", heap->is.is_device_memory);
        mt_json_u64(json, "device", ledger->devices[heap->device].device);
        mt_json_u64(json, "allocations", heap->use.allocations);
        mt_json_u64(json, "frees", heap->use.frees);
        mt_json_u64(json, "failures", heap->use.failures);
        mt_json_u64(json, "live_blocks", heap->use.live_blocks);
        mt_json_u64(json, "live_bytes", heap->use.live_bytes);
        mt_json_u64(json, "peak_bytes", heap->use.peak_bytes);
    }
}

static void json_communicators(struct mt_json *json, const struct mt_communicators *told)
{
    for (struct mt_json_list row = mt_json_rows(json, "communicators", told->count);
         mt_json_next(&row);) {
        const struct mt_communicator *of = &told->list[row.i];

        mt_json_communicator(json, of->id, of->rank, of->ranks, of->registered_peak_bytes);
    }
}

static void json_threads(struct mt_json *json, const struct mt_symbols *symbols)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "threads");
    for (uint32_t i = 0; i < symbols->thread_count; i++) {
        if (!is_named(&symbols->threads[i]) || !mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_u64(json, "thread", i);
        mt_json_text(json, "name", mt_symbols_text(symbols, symbols->threads[i].name));
        mt_json_u64(json, "os_id", symbols->threads[i].os_id);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

static void json_dropped(struct mt_json *json, const struct mt_info_recorded *recorded,
                         const struct mt_symbols *symbols)
{
    for (struct mt_json_list row = mt_json_rows(json, "dropped", recorded->lost.count);
         mt_json_next(&row);) {
        mt_json_u64(json, "events", recorded->lost.reasons[row.i].events);
        mt_json_text(json, "why", mt_lost_events_why(&recorded->lost, row.i, symbols));
    }
}

void mt_info_recorded_json(struct mt_json *json, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols)
{
    if (recorded->ledger.heap_count)
        json_heaps(json, &recorded->ledger, symbols);
    if (recorded->ledger.communicators.count)
        json_communicators(json, &recorded->ledger.communicators);
    if (count_named(symbols))
        json_threads(json, symbols);
    if (recorded->samples) {
        mt_json_object_begin(json, "samples");
        mt_json_u64(json, "count", recorded->samples);
        mt_json_u64(json, "most_used_by_process_bytes", recorded->most_used_bytes);
        mt_json_object_end(json);
    }
    if (recorded->lost.count)
        json_dropped(json, recorded, symbols);
}
