/* The trace up to the tape's last commit is copied event by event to a new file with the same
 * symbols, so that the tape's events can follow. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drain.h"
#include "io.h"
#include "recover.h"
#include "ring.h"
#include "status.h"
#include "tape.h"
#include "tape_file.h"
#include "temporary_file.h"
#include "trace.h"
#include "util.h"

#define ANY_COUNT UINT64_MAX

enum { PERMISSIONS = 0777 };

static enum mt_status fail_errno(struct mt_error *error, const char *what)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

enum mt_status mt_replacement_begin(struct mt_replacement *self, const char *path,
                                    struct mt_unfinished *list, struct mt_error *error)
{
    struct mt_error why = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_temporary_open(&self->file, path, 0600, list, &why);

    self->path = path;
    return status == MT_OK ? MT_OK
                           : mt_fail(error, status, MT_NO_OFFSET,
                                     "cannot create a file beside the trace: %s", why.text);
}

void mt_replacement_release(struct mt_replacement *self)
{
    mt_temporary_discard(&self->file);
}

static enum mt_status check_counts(const struct mt_integrity *found, uint64_t events, bool ended,
                                   struct mt_error *error)
{
    if (found->frames_damaged)
        return mt_fail(error, MT_ERR_FORMAT, found->first_error.offset, "%.200s",
                       found->first_error.text);
    if (found->events_invalid || found->events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%llu events cannot be read",
                       (unsigned long long)found->events_invalid + found->events_unknown);
    if (ended && (!found->closed || found->cut))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "its end is missing");
    if (events != ANY_COUNT && found->events_read != events)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "it holds %llu of %llu events",
                       (unsigned long long)found->events_read, (unsigned long long)events);
    return MT_OK;
}

/* Reads the trace that is open as `fd` to its end. Returns MT_OK if nothing is damaged and it has
 * `events` events (ANY_COUNT: any number). `ended` requires an end record and an index. */
static enum mt_status trace_read_back(int fd, uint64_t events, bool ended, struct mt_error *error)
{
    struct mt_event_batch batch;
    struct mt_source *source;
    enum mt_status status = mt_trace_open_fd(fd, UINT64_MAX, &source, error);

    if (status != MT_OK)
        return status;
    while ((status = mt_source_next(source, &batch, error)) == MT_OK)
        continue;
    if (status == MT_END)
        status = check_counts(&source->integrity, events, ended, error);
    mt_source_close(source);
    return status;
}

/* If root replaces the file of another user, the owner stays the same. */
static enum mt_status take_over(struct mt_replacement *self, const struct stat *old,
                                struct mt_error *error)
{
    if (!old)
        return MT_OK;
    if (geteuid() == 0 && fchown(self->file.fd, old->st_uid, old->st_gid))
        return fail_errno(error, "the new trace cannot be given to the owner of the old one");
    if (fchmod(self->file.fd, old->st_mode & PERMISSIONS))
        return fail_errno(error, "the new trace cannot get the mode of the old one");
    return MT_OK;
}

/* Returns whether the file at the path is still the one that was read. */
static bool is_unchanged(const char *path, const struct stat *old)
{
    struct stat now;

    if (lstat(path, &now))
        return !old && errno == ENOENT;
    return old && now.st_dev == old->st_dev && now.st_ino == old->st_ino;
}

enum mt_status mt_replacement_finish(struct mt_replacement *self,
                                     const struct mt_replacement_facts *facts,
                                     struct mt_error *error)
{
    struct mt_error found = {.offset = MT_NO_OFFSET};
    enum mt_status status = trace_read_back(self->file.fd, facts->events, facts->ended, &found);

    if (status != MT_OK)
        return mt_fail(error, status, found.offset, "%s: %.180s",
                       status == MT_ERR_FORMAT ? "the new trace is not valid"
                                               : "the new trace cannot be read back",
                       found.text);
    status = take_over(self, facts->old, error);
    if (status != MT_OK)
        return status;
    if (!mt_io_synchronize(self->file.fd))
        return fail_errno(error, "the new trace could not be written");
    if (!is_unchanged(self->path, facts->old))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "another file has taken its place in the meantime: nothing was replaced");
    if (!mt_temporary_rename(&self->file, self->path))
        return fail_errno(error, "the new trace could not be put in place");
    (void)mt_temporary_close(&self->file); /* fsync has reported all possible errors */
    return mt_synchronize_folder_of(self->path)
               ? MT_OK
               : fail_errno(error, "the new trace is in place, but may not be on the disk yet");
}

/* The trace that a tape is added to. Any process that can write to the folder can put another file
 * there, and the trace may have been replaced after its tape was left behind. So the file is opened
 * once, never through a symbolic link, and is used only if the tape names it. It is never written
 * to. */

struct old_trace {
    int fd; /* -1 = there is no such file, and the tape does not expect one */
    struct stat facts;
    bool is_complete;         /* the tape was added to it before */
    struct mt_source *source; /* of the part that was certainly written; NULL = nothing was */
};

#define OF_ANOTHER_RECORDING                                                                       \
    "its tape is of another recording: neither is changed; move the tape away if you do not need " \
    "it"

static enum mt_status refuse(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s", why);
}

/* `may_lack`: a missing file is not an error; old->fd is -1 then. */
static enum mt_status open_file(const char *path, bool may_lack, struct old_trace *old,
                                struct mt_error *error)
{
    old->fd = mt_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (old->fd < 0 && errno == ENOENT && may_lack)
        return MT_OK;
    if (old->fd < 0 && errno == ELOOP)
        return refuse(error, "is a symbolic link: name the file that it points to");
    if (old->fd < 0 || fstat(old->fd, &old->facts))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the trace cannot be read: %s",
                       strerror(errno));
    return S_ISREG(old->facts.st_mode) ? MT_OK : refuse(error, "is not a regular file");
}

/* Returns whether it is the file that the tape's process created, and begins like a trace. */
static bool is_file_of(const struct mt_tape *tape, const struct old_trace *old)
{
    unsigned char bytes[16];
    ssize_t count = mt_io_pread_full(old->fd, bytes, sizeof bytes, 0);

    return (uint64_t)old->facts.st_dev == tape->trace_device &&
           (uint64_t)old->facts.st_ino == tape->trace_inode &&
           (count == 0 || (count > 0 && mt_trace_probe(bytes, (size_t)count)));
}

static bool is_host_error(enum mt_status status)
{
    return status == MT_ERR_MEMORY || status == MT_ERR_IO;
}

/* Checks that the trace belongs to the tape, and whether there is anything left to do. */
static enum mt_status identify(struct old_trace *old, const struct mt_tape *tape, bool written,
                               struct mt_error *error)
{
    struct mt_source *source = NULL;
    enum mt_status status = mt_trace_open_fd(old->fd, UINT64_MAX, &source, error);
    uint64_t id = source ? source->header.recording_id : 0;

    /* a file that is incomplete may not be a trace yet */
    if (status != MT_OK && (written || is_host_error(status)))
        return status;
    old->is_complete = source && source->header.tape_added;
    mt_source_close(source);
    if (id == tape->recording_id || (!id && is_file_of(tape, old)))
        return MT_OK;
    return refuse(error, OF_ANOTHER_RECORDING);
}

/* Opens the trace at `path` up to `trace_bytes`, the length that its process had certainly written
 * (0: nothing). Its `recording_id` must be the tape's; if its header cannot be read, it must be the
 * file that the tape's process created. MT_ERR_FORMAT if it is another file, MT_ERR_IO if it cannot
 * be read. In either case *old can be closed. */
static enum mt_status old_trace_open(const char *path, const struct mt_tape *tape,
                                     uint64_t trace_bytes, struct old_trace *old,
                                     struct mt_error *error)
{
    enum mt_status status = open_file(path, !trace_bytes, old, error);

    if (status == MT_OK && old->fd >= 0)
        status = identify(old, tape, trace_bytes != 0, error);
    if (status != MT_OK || old->is_complete || !trace_bytes)
        return status;
    if ((uint64_t)old->facts.st_size < trace_bytes)
        return mt_fail(error, MT_ERR_FORMAT, (uint64_t)old->facts.st_size,
                       "the trace is shorter than its tape says");
    return mt_trace_open_fd(old->fd, trace_bytes, &old->source, error);
}

static void old_trace_close(struct old_trace *old)
{
    mt_source_close(old->source);
    if (old->fd >= 0)
        close(old->fd);
    *old = (struct old_trace){.fd = -1};
}

struct job {
    const char *path;
    struct mt_unfinished *unfinished;
    char tape_path[PATH_MAX], part_path[PATH_MAX]; /* part_path: TRACE.part of a ring */
    struct mt_tape *tape;
    struct stat tape_file;
    struct mt_tape_commit commit;
    struct old_trace old;
    /* The file of a ring that is not the current part. Its source is NULL unless it is the part
     * before and can be used. */
    struct old_trace other;
    bool is_ring; /* the trace has several parts */
    struct mt_ring_copy ring;
    struct mt_symbols own_symbols; /* used if the trace has no contents yet */
    struct mt_drain *drain;
    struct mt_writer *writer;
    struct mt_replacement made;
    uint64_t copied;
    char *lacks; /* text of the header that was made last; from malloc */
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
    return status == MT_OK ? MT_OK : mt_fail_status(error, status);
}

static struct mt_symbols *symbols_of(struct job *job)
{
    return job->old.source ? &job->old.source->symbols : &job->own_symbols;
}

/* Adds a line to what the trace lacks, unless it is there. If memory runs out, nothing is added. */
static void add_lack(struct job *job, struct mt_trace_header *header, const char *lack)
{
    char *both;

    if (!header->not_recorded) {
        header->not_recorded = lack;
    } else if (!strstr(header->not_recorded, lack) &&
               asprintf(&both, "%s\n%s", header->not_recorded, lack) > 0) {
        free(job->lacks);
        header->not_recorded = job->lacks = both;
    }
}

static void make_header(struct job *job, struct mt_trace_header *header)
{
    *header = job->old.source ? job->old.source->header
                              : (struct mt_trace_header){.rank = -1, .world_size = -1};
    if (job->drain) {
        mt_drain_header(job->drain, header);
        header->tape_added = true;
    }
    header->ring_part = 0;
    header->ring_left_out = job->ring.left_out;
    header->starts_in_middle =
        job->commit.began_t_ns || (job->ring.begun ? job->ring.left_out > 0 : job->is_ring);
    if (job->commit.began_t_ns == MT_TAPE_IDLE)
        add_lack(job, header, mt_tape_never_begun(job->tape));
    if (job->ring.begun)
        header->start_t_ns = job->ring.first_t_ns;
}

static enum mt_status open_writer(struct job *job, const char *path, struct mt_error *error)
{
    const struct mt_writer_options options = {.header_bytes = MT_TAPE_HEADER_BYTES};
    struct mt_trace_header header;
    enum mt_status status = mt_replacement_begin(&job->made, path, job->unfinished, error);

    make_header(job, &header);
    return status == MT_OK ? mt_writer_new(job->made.file.fd, &header, symbols_of(job), &options,
                                           &job->writer, error)
                           : status;
}

static enum mt_status open_new(struct job *job, struct mt_error *error)
{
    enum mt_status status = open_drain(job, symbols_of(job), error);

    return status == MT_OK ? open_writer(job, job->path, error) : status;
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

/* The part before cannot be used, and the current one is shorter than the ring. */
static bool is_part_lost(const struct job *job)
{
    const uint64_t from_t_ns = job->ring.covers_t_ns, until_t_ns = job->commit.last_t_ns;

    return job->is_ring && !job->other.source &&
           until_t_ns - mt_min_u64(until_t_ns, from_t_ns) < job->tape->ring_ns;
}

/* The facts that are known only after the parts were copied. A header without room keeps what it
 * has: it says that the trace starts in the middle. */
static enum mt_status tell_ring(struct job *job, struct mt_error *error)
{
    struct mt_trace_header header;

    make_header(job, &header);
    if (is_part_lost(job))
        add_lack(job, &header,
                 "a part of the ring: it is damaged or missing, so less than the requested time is "
                 "kept");
    enum mt_status status = mt_writer_set_header(job->writer, &header, error);
    return status == MT_ERR_USAGE ? MT_OK : status;
}

/* Reads only the last of the parts before the current one. */
static enum mt_status copy_before(struct job *job, struct mt_error *error)
{
    struct mt_ring_copy *ring = &job->ring;
    enum mt_status status = MT_OK;

    if (job->other.source)
        status = mt_ring_copy_source(ring, job->other.source, true, error);
    ring->left_out =
        job->commit.events_before -
        mt_min_u64(job->commit.events_before, ring->kept + (ring->held.kind && !ring->begun));
    return status;
}

/* Copies the last two parts of a ring, and leaves out what is older than its time. */
static enum mt_status copy_parts(struct job *job, struct mt_error *error)
{
    struct mt_ring_copy *ring = &job->ring;

    ring->writer = job->writer;
    ring->alive = mt_alive_state_new(symbols_of(job));
    ring->from_t_ns = job->commit.last_t_ns - mt_min_u64(job->commit.last_t_ns, job->tape->ring_ns);
    if (!ring->alive)
        return mt_fail_memory(error);
    enum mt_status status = copy_before(job, error);
    if (status == MT_OK)
        status = mt_ring_copy_source(ring, job->old.source, !job->other.source, error);
    job->copied = ring->read;
    if (status == MT_OK)
        status = check_old(job, error);
    return status == MT_OK ? mt_ring_copy_end(ring, job->commit.last_t_ns, error) : status;
}

/* An error of the writer (order, bounds) comes from the contents of a file, not from wrong use. */
static enum mt_status blame(const char *what, enum mt_status status, struct mt_error *error)
{
    struct mt_error refused = error ? *error : (struct mt_error){.status = status};

    return status == MT_ERR_USAGE ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                                            "%s is damaged: %.180s", what, refused.text)
                                  : status;
}

static enum mt_status copy_ring(struct job *job, struct mt_error *error)
{
    enum mt_status status = blame("a part of the ring", copy_parts(job, error), error);

    if (status == MT_OK)
        status = tell_ring(job, error);
    if (status == MT_OK && job->drain)
        mt_drain_renumber(job->drain, job->ring.next_seq);
    job->copied = job->ring.next_seq;
    return status;
}

static enum mt_status copy_old(struct job *job, struct mt_error *error)
{
    if (!job->old.source)
        return MT_OK;
    if (job->is_ring)
        return copy_ring(job, error);
    enum mt_status status =
        mt_writer_copy(job->writer, job->old.source, false, &job->copied, error);
    return status == MT_OK ? check_old(job, error) : status;
}

static enum mt_status add_tape(struct job *job, struct mt_drain_result *result,
                               struct mt_error *error)
{
    enum mt_status status = mt_drain_pass(job->drain, job->writer, MT_DRAIN_DEAD, result, error);

    if (status == MT_OK)
        status = mt_writer_finish(job->writer, error);
    return blame("the tape", status, error);
}

/* The file that the new trace replaces. */
static const struct stat *facts_of_trace(const struct job *job)
{
    const struct old_trace *old = job->commit.part & 1 ? &job->other : &job->old;

    return old->fd >= 0 ? &old->facts : NULL;
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
    facts.old = facts_of_trace(job);
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
    enum mt_status status = trace_read_back(job->old.fd, events, true, &found);

    return status == MT_OK ? MT_OK
                           : mt_fail(error, status, found.offset,
                                     "the trace is not what its process wrote: %.120s; its tape is "
                                     "kept",
                                     found.text);
}

/* Reads the part before the current one, to know whether it can be used. The symbols of the current
 * part include its symbols. */
static bool is_usable(const struct job *job, struct mt_source *source)
{
    struct mt_integrity found = {0};
    struct mt_error ignored;

    return source->header.ring_part == job->commit.part &&
           mt_ring_read_symbols(source, &found, &ignored) == MT_OK && !found.frames_damaged &&
           !found.events_invalid && !found.events_unknown &&
           found.events_read == job->commit.part_before_events &&
           mt_ring_same_symbols(&source->symbols, &job->old.source->symbols);
}

/* The file may be absent, or the beginning of a part that was not committed: then there is no part
 * before. TRACE.part may be any file. TRACE is refused if it is not of this recording, because the
 * new trace replaces it. */
static enum mt_status open_other(struct job *job, struct mt_error *error)
{
    const bool is_replaced = job->commit.part & 1;
    struct old_trace *other = &job->other;
    struct mt_error ignored;
    enum mt_status status = open_file(is_replaced ? job->path : job->part_path, true, other,
                                      is_replaced ? error : &ignored);

    if (status != MT_OK)
        return is_replaced ? status : MT_OK;
    if (other->fd < 0)
        return MT_OK;
    status = mt_trace_open_fd(other->fd, UINT64_MAX, &other->source, &ignored);
    if (status != MT_OK)
        other->source = NULL;
    if (status == MT_ERR_MEMORY)
        return mt_fail_memory(error);
    if (is_replaced && !mt_ring_is_part(job->path, other->fd, job->tape->recording_id, true))
        return refuse(error, OF_ANOTHER_RECORDING);
    if (other->source && !is_usable(job, other->source)) {
        mt_source_close(other->source);
        other->source = NULL;
    }
    return MT_OK;
}

/* An earlier recovery may have put the parts together in TRACE. Otherwise TRACE is a part. */
static enum mt_status find_complete(struct job *job, struct mt_error *error)
{
    struct mt_error ignored;
    enum mt_status status = old_trace_open(job->path, job->tape, 0, &job->old, &ignored);

    if (status == MT_ERR_MEMORY)
        return mt_fail_memory(error);
    if (status != MT_OK || !job->old.is_complete)
        old_trace_close(&job->old);
    return MT_OK;
}

/* Opens the current part as `old`, and the part before as `other`. */
static enum mt_status open_parts(struct job *job, struct mt_error *error)
{
    struct mt_integrity found;
    char path[PATH_MAX];

    job->is_ring = job->tape->ring_ns && job->commit.part;
    if (!mt_ring_part_path(job->path, job->commit.part, path, sizeof path) ||
        !mt_ring_part_path(job->path, 1, job->part_path, sizeof job->part_path))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the path is too long");
    if (!job->is_ring)
        return old_trace_open(job->path, job->tape, job->commit.trace_bytes, &job->old, error);
    enum mt_status status = find_complete(job, error);
    if (status != MT_OK || job->old.is_complete)
        return status;
    status = old_trace_open(path, job->tape, job->commit.trace_bytes, &job->old, error);
    if (status == MT_OK && !job->old.source) /* a part to which a tape was added */
        status = refuse(error, "the tape is damaged: it names a part that is complete");
    if (status == MT_OK)
        status = mt_ring_read_symbols(job->old.source, &found, error);
    return status == MT_OK ? open_other(job, error) : status;
}

static enum mt_status complete(struct job *job, struct mt_recovery *recovery,
                               struct mt_error *error)
{
    enum mt_status status = open_parts(job, error);

    if (status != MT_OK)
        return status;
    if (job->old.is_complete) { /* an earlier recovery could not remove the tape */
        recovery->was_closed = true;
        recovery->events_on_tape = 0;
        return check_whole(job, ANY_COUNT, error);
    }
    if (!job->is_ring && is_whole(job->tape, &job->commit))
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
    old_trace_close(&job->other);
    mt_alive_state_free(job->ring.alive);
    mt_replacement_release(&job->made);
    mt_writer_free(job->writer);
    mt_drain_free(job->drain);
    old_trace_close(&job->old);
    mt_symbols_release(&job->own_symbols);
    mt_tape_unmap(job->tape);
    free(job->lacks);
}

enum mt_status mt_recover(const char *path, struct mt_unfinished *unfinished,
                          struct mt_recovery *recovery, struct mt_error *error)
{
    struct job job = {
        .path = path, .unfinished = unfinished, .old.fd = -1, .other.fd = -1, .made.file.fd = -1};
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
    if (status == MT_OK && job.tape->ring_ns)
        (void)mt_ring_make_way(path, true); /* a file of somebody else stays */
    if (status == MT_OK && !mt_tape_remove(job.tape_path, &job.tape_file))
        status = mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the tape cannot be removed: %s",
                         strerror(errno));
    release(&job);
    return status;
}

static enum mt_status save(struct job *job, const char *target, struct mt_error *error)
{
    struct mt_replacement_facts facts = {.ended = true};
    enum mt_status status = open_parts(job, error);

    if (status == MT_OK && !job->old.source)
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                         job->old.is_complete ? "its process has ended" : "it is empty");
    if (status == MT_OK)
        status = open_writer(job, target, error);
    if (status == MT_OK)
        status = copy_ring(job, error);
    if (status == MT_OK)
        status = mt_writer_finish(job->writer, error);
    facts.events = job->copied + 1;
    return status == MT_OK ? mt_replacement_finish(&job->made, &facts, error) : status;
}

enum mt_status mt_ring_save(const char *path, const char *target, struct mt_unfinished *unfinished,
                            struct mt_error *error)
{
    struct job job = {
        .path = path, .unfinished = unfinished, .old.fd = -1, .other.fd = -1, .made.file.fd = -1};
    struct mt_tape tape;
    enum mt_status status = mt_tape_peek(path, &tape, error);

    if (status == MT_OK) {
        job.tape = &tape;
        job.commit = *mt_tape_last_commit(&tape);
        status = save(&job, target, error);
    }
    job.tape = NULL;
    release(&job);
    return status;
}
