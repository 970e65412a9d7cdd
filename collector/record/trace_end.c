/* Completes a trace after its process has ended; redacts it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "child_run.h"
#include "finalize.h"
#include "header.h"
#include "output_file.h"
#include "process_end.h"
#include "process_memory.h"
#include "recover.h"
#include "redacted_source.h"
#include "redaction.h"
#include "status.h"
#include "temporary_file.h"
#include "trace.h"
#include "trace_end.h"
#include "trace_summary.h"

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
    enum mt_status status;

    if (mt_recover_is_needed(path))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "its tape is not merged into it: run 'memtrace recover' first");
    status = mt_trace_open(path, &source, error);
    if (status != MT_OK)
        return status;
    source = mt_redacted_source(source, redaction);
    if (!source)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s", mt_status_text(MT_ERR_MEMORY));
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
    unsigned waited_ms;

    for (waited_ms = 0;; waited_ms += LOOK_AGAIN_MS) {
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
    enum mt_status status;
    struct stat facts;

    memset(end, 0, sizeof *end);
    end->path = path;
    end->error.offset = end->native_error.offset = end->redaction_error.offset = MT_NO_OFFSET;
    end->state = MT_TRACE_WHOLE;
    status = recover(end, options);
    if (status == MT_ERR_USAGE)
        end->state = MT_TRACE_RUNNING;
    else if (status != MT_OK)
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
