/* See recover.h. The trace up to the tape's last commit is copied event by event to a new file with
 * the same symbols, so that the tape's events can follow. */
#include "recover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drain.h"
#include "old_trace.h"
#include "replacement.h"
#include "tape_file.h"

struct job {
    const char *path;
    struct mt_unfinished *unfinished;
    char tape_path[PATH_MAX];
    struct mt_tape *tape;
    struct stat tape_file;
    struct mt_tape_commit commit;
    struct mt_old_trace old;
    struct mt_symbols own_symbols; /* used if the trace has no contents yet */
    struct mt_drain *drain;
    struct mt_writer *writer;
    struct mt_replacement made;
    uint64_t copied;
};

static bool name_tape(const char *path, char tape[PATH_MAX])
{
    int length = snprintf(tape, PATH_MAX, "%s%s", path, MT_TAPE_SUFFIX);

    return length > 0 && length < PATH_MAX;
}

bool mt_recover_is_needed(const char *path)
{
    char tape[PATH_MAX];
    struct stat facts;

    return name_tape(path, tape) && lstat(tape, &facts) == 0;
}

/* All taken events are in the trace, which has its end. */
static bool is_whole(const struct mt_tape *tape, const struct mt_tape_commit *commit)
{
    return atomic_load(&tape->closed) && atomic_load(&tape->next_seq) == commit->next_raw &&
           atomic_load(&tape->dropped_events) == commit->dropped_written;
}

static enum mt_status open_drain(struct job *job, struct mt_symbols *symbols,
                                 struct mt_error *error)
{
    bool changed;
    enum mt_status status =
        job->old.source ? MT_OK : mt_symbols_init(symbols); /* a source has its own symbols */

    if (status == MT_OK)
        status = mt_drain_new(job->tape, symbols, &job->commit, &job->drain, error);
    if (status == MT_OK)
        status = mt_drain_definitions(job->drain, &changed);
    return status == MT_OK ? MT_OK : mt_fail(error, status, MT_NO_OFFSET, "out of memory");
}

static enum mt_status open_new(struct job *job, struct mt_error *error)
{
    struct mt_symbols *symbols = job->old.source ? &job->old.source->symbols : &job->own_symbols;
    const struct mt_writer_options options = {.header_bytes = MT_TAPE_HEADER_BYTES};
    struct mt_trace_header header = {.rank = -1, .world_size = -1};
    enum mt_status status = open_drain(job, symbols, error);

    if (status != MT_OK)
        return status;
    if (job->old.source)
        header = job->old.source->header;
    mt_drain_header(job->drain, &header);
    header.tape_added = true;
    status = mt_replacement_begin(&job->made, job->path, job->unfinished, error);
    return status == MT_OK
               ? mt_writer_new(job->made.file.fd, &header, symbols, &options, &job->writer, error)
               : status;
}

/* Anything lost here would be lost permanently, because the tape has only the events that
 * follow. */
static enum mt_status check_old(const struct job *job, struct mt_error *error)
{
    const struct mt_integrity *found = &job->old.source->integrity;

    /* the tape has the header's facts */
    if (found->frames_damaged == found->header_damaged && !found->events_invalid &&
        job->copied == job->commit.events_written)
        return MT_OK;
    return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                   "the trace is damaged, %llu of the %llu events that were written can be read "
                   "(%.80s): neither it nor its tape is changed",
                   (unsigned long long)job->copied, (unsigned long long)job->commit.events_written,
                   found->first_error.status != MT_OK ? found->first_error.text
                                                      : "the rest is missing");
}

static enum mt_status copy_old(struct job *job, struct mt_error *error)
{
    enum mt_status status;

    if (!job->old.source)
        return MT_OK;
    status = mt_writer_copy(job->writer, job->old.source, false, &job->copied, error);
    return status == MT_OK ? check_old(job, error) : status;
}

/* An error of the writer (order, bounds) comes from the contents of the tape, not from wrong
 * use. */
static enum mt_status blame_tape(enum mt_status status, struct mt_error *error)
{
    struct mt_error refused = error ? *error : (struct mt_error){.status = status};

    return status == MT_ERR_USAGE ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                                            "the tape is damaged: %.180s", refused.text)
                                  : status;
}

static enum mt_status add_tape(struct job *job, struct mt_drain_result *result,
                               struct mt_error *error)
{
    enum mt_status status = mt_drain_pass(job->drain, job->writer, MT_DRAIN_DEAD, result, error);

    if (status == MT_OK)
        status = mt_writer_finish(job->writer, error);
    return blame_tape(status, error);
}

static enum mt_status rewrite(struct job *job, struct mt_recovery *recovery, struct mt_error *error)
{
    struct mt_replacement_facts facts = {.ended = true};
    struct mt_drain_result result;
    enum mt_status status = open_new(job, error);

    if (status == MT_OK)
        status = copy_old(job, error);
    if (status == MT_OK)
        status = add_tape(job, &result, error);
    if (status != MT_OK)
        return status;
    facts.old = job->old.fd >= 0 ? &job->old.facts : NULL;
    facts.events = job->copied + result.events + 1;
    status = mt_replacement_finish(&job->made, &facts, error);
    if (status != MT_OK)
        return status;
    recovery->events_recovered = result.events;
    recovery->events_missing = result.missing;
    return MT_OK;
}

/* The trace needs nothing from the tape. It is read again before the tape is removed: the contents
 * of a damaged frame exist nowhere else. */
static enum mt_status check_whole(struct job *job, uint64_t events, struct mt_error *error)
{
    struct mt_error found = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_trace_read_back(job->old.fd, events, true, &found);

    return status == MT_OK ? MT_OK
                           : mt_fail(error, status, found.offset,
                                     "the trace is not what its process wrote: %.120s; its tape is "
                                     "kept",
                                     found.text);
}

static enum mt_status complete(struct job *job, struct mt_recovery *recovery,
                               struct mt_error *error)
{
    enum mt_status status =
        mt_old_trace_open(job->path, job->tape, job->commit.trace_bytes, &job->old, error);

    if (status != MT_OK)
        return status;
    if (job->old.is_complete) { /* an earlier recovery could not remove the tape */
        recovery->was_closed = true;
        recovery->events_on_tape = 0;
        return check_whole(job, MT_ANY_COUNT, error);
    }
    if (is_whole(job->tape, &job->commit))
        return check_whole(job, job->commit.events_written + 1, error);
    return rewrite(job, recovery, error);
}

static void note_tape(struct job *job, struct mt_recovery *recovery)
{
    const struct mt_tape *tape = job->tape;
    uint64_t next_seq = atomic_load(&tape->next_seq);

    job->commit = tape->commits[atomic_load(&tape->current_commit) & 1u];
    recovery->has_tape = true;
    recovery->was_closed = atomic_load(&tape->closed);
    recovery->events_written = job->commit.events_written;
    recovery->events_dropped = atomic_load(&tape->dropped_events);
    if (next_seq > job->commit.next_raw)
        recovery->events_on_tape = next_seq - job->commit.next_raw;
}

static void release(struct job *job)
{
    mt_replacement_release(&job->made);
    mt_writer_free(job->writer);
    mt_drain_free(job->drain);
    mt_old_trace_close(&job->old);
    mt_symbols_release(&job->own_symbols);
    mt_tape_unmap(job->tape);
}

enum mt_status mt_recover(const char *path, struct mt_unfinished *unfinished,
                          struct mt_recovery *recovery, struct mt_error *error)
{
    struct job job = {.path = path, .unfinished = unfinished, .old.fd = -1, .made.file.fd = -1};
    enum mt_status status;

    *recovery = (struct mt_recovery){0};
    if (!name_tape(path, job.tape_path))
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the path is too long");
    else
        status = mt_tape_open(job.tape_path, &job.tape, &job.tape_file, error);
    if (status == MT_OK) {
        note_tape(&job, recovery);
        status = complete(&job, recovery, error);
    }
    if (status == MT_OK && !mt_tape_remove(job.tape_path, &job.tape_file))
        status = mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the tape cannot be removed: %s",
                         strerror(errno));
    release(&job);
    return status;
}
