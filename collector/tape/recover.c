/* See recover.h. The trace up to the tape's last commit is copied event by event
 * into a new file, with the same symbols, so that the tape's events can follow. */
#include "recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drain.h"
#include "tape_file.h"

struct job {
    const char *path;
    char *tape_path, *new_path;
    struct mt_tape *tape;
    struct mt_tape_commit commit;
    struct mt_source *old; /* NULL: nothing of the trace is there yet */
    struct mt_symbols own_symbols;
    struct mt_drain *drain;
    struct mt_writer *writer;
    int fd;
};

static char *with_suffix(const char *path, const char *suffix)
{
    size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *text = malloc(bytes);

    if (text)
        (void)snprintf(text, bytes, "%s%s", path, suffix);
    return text;
}

bool mt_recover_is_needed(const char *path)
{
    char *tape = with_suffix(path, MT_TAPE_SUFFIX);
    bool needed = tape && access(tape, F_OK) == 0;

    free(tape);
    return needed;
}

static enum mt_status fail_errno(struct mt_error *error, enum mt_status status, const char *what)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

/* Everything taken is in the trace, which has its end. */
static bool is_whole(const struct mt_tape *tape, const struct mt_tape_commit *commit)
{
    return atomic_load(&tape->closed) && atomic_load(&tape->next_seq) == commit->next_raw &&
           atomic_load(&tape->dropped_events) == commit->dropped_written;
}

/* The trace as far as the tape says that it was written. */
static enum mt_status open_old(struct job *job, struct mt_error *error)
{
    struct stat facts;

    if (!job->commit.trace_bytes)
        return MT_OK;
    if (stat(job->path, &facts))
        return fail_errno(error, MT_ERR_IO, "the trace cannot be read");
    if ((uint64_t)facts.st_size < job->commit.trace_bytes)
        return mt_fail(error, MT_ERR_FORMAT, (uint64_t)facts.st_size,
                       "the trace is shorter than its tape says");
    if (truncate(job->path, (off_t)job->commit.trace_bytes))
        return fail_errno(error, MT_ERR_OUTPUT, "the trace cannot be cut");
    return mt_trace_open(job->path, &job->old, error);
}

static enum mt_status open_new(struct job *job, struct mt_error *error)
{
    struct mt_symbols *symbols = job->old ? &job->old->symbols : &job->own_symbols;
    struct mt_trace_header header = {.rank = -1, .world_size = -1};
    bool changed;
    enum mt_status status = job->old ? MT_OK : mt_symbols_init(symbols);

    if (status == MT_OK)
        status = mt_drain_new(job->tape, symbols, &job->commit, &job->drain, error);
    if (status == MT_OK && mt_drain_definitions(job->drain, &changed) != MT_OK)
        status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    if (status != MT_OK)
        return status;
    if (job->old)
        header = job->old->header;
    mt_drain_header(job->drain, &header);
    job->fd = open(job->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (job->fd < 0)
        return fail_errno(error, MT_ERR_OUTPUT, "a file beside the trace cannot be made");
    return mt_writer_new(job->fd, &header, symbols, NULL, &job->writer, error);
}

static enum mt_status copy_old(struct job *job, struct mt_recovery *recovery,
                               struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;
    size_t i;

    while (job->old && (status = mt_source_next(job->old, &batch, error)) == MT_OK) {
        for (i = 0; i < batch.count; i++) {
            if (batch.events[i].kind == MT_EVENT_END)
                continue; /* more follows */
            status = mt_writer_add(job->writer, &batch.events[i], error);
            if (status != MT_OK)
                return status;
            recovery->events_written++;
        }
    }
    return status == MT_END ? MT_OK : status;
}

static enum mt_status add_tape(struct job *job, struct mt_recovery *recovery,
                               struct mt_error *error)
{
    struct mt_drain_result result;
    enum mt_status status = mt_drain_pass(job->drain, job->writer, MT_DRAIN_DEAD, &result, error);

    recovery->events_recovered = result.events;
    recovery->events_missing = result.missing;
    return status == MT_OK ? mt_writer_finish(job->writer, error) : status;
}

static enum mt_status rewrite(struct job *job, struct mt_recovery *recovery, struct mt_error *error)
{
    enum mt_status status = open_old(job, error);

    if (status == MT_OK)
        status = open_new(job, error);
    if (status == MT_OK)
        status = copy_old(job, recovery, error);
    if (status == MT_OK)
        status = add_tape(job, recovery, error);
    if (job->fd >= 0 && close(job->fd) && status == MT_OK)
        status = fail_errno(error, MT_ERR_OUTPUT, "the new trace could not be written");
    if (status == MT_OK && rename(job->new_path, job->path))
        status = fail_errno(error, MT_ERR_OUTPUT, "the new trace could not be put in place");
    if (status != MT_OK && job->fd >= 0)
        (void)unlink(job->new_path);
    return status;
}

static void release(struct job *job)
{
    mt_writer_free(job->writer);
    mt_drain_free(job->drain);
    mt_source_close(job->old);
    mt_symbols_release(&job->own_symbols);
    mt_tape_unmap(job->tape);
    free(job->tape_path);
    free(job->new_path);
}

enum mt_status mt_recover(const char *path, struct mt_recovery *recovery, struct mt_error *error)
{
    struct job job = {.path = path, .fd = -1};
    enum mt_status status;

    *recovery = (struct mt_recovery){0};
    job.tape_path = with_suffix(path, MT_TAPE_SUFFIX);
    job.new_path = with_suffix(path, ".recovered");
    if (!job.tape_path || !job.new_path)
        status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    else
        status = mt_tape_open(job.tape_path, &job.tape, error);
    if (status == MT_OK) {
        job.commit = job.tape->commits[atomic_load(&job.tape->current_commit) & 1u];
        recovery->was_closed = atomic_load(&job.tape->closed);
        recovery->events_dropped = atomic_load(&job.tape->dropped_events);
        if (is_whole(job.tape, &job.commit))
            recovery->events_written = job.commit.events_written;
        else
            status = rewrite(&job, recovery, error);
    }
    if (status == MT_OK && unlink(job.tape_path))
        status = fail_errno(error, MT_ERR_OUTPUT, "the tape cannot be removed");
    release(&job);
    return status;
}
