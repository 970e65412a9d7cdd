#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "header.h"
#include "io.h"
#include "own_file.h"

bool mt_ring_part_path(const char *trace, uint64_t part, char *path, size_t capacity)
{
    int length = snprintf(path, capacity, "%s%s", trace, part & 1 ? MT_RING_SUFFIX : "");

    return length > 0 && (size_t)length < capacity;
}

bool mt_ring_is_part(const char *path, int fd, uint64_t recording_id, bool had_tape)
{
    struct mt_trace_header header = {0};
    struct mt_arena arena = {0};
    struct mt_error ignored;
    unsigned char bytes[16];
    bool is_readable = mt_trace_read_header(path, &arena, &header, &ignored) == MT_OK;

    mt_arena_release(&arena);
    if (is_readable)
        return header.ring_part && (!recording_id || header.recording_id == recording_id);
    ssize_t count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);
    return had_tape && (count == 0 || (count > 0 && mt_trace_probe(bytes, (size_t)count)));
}

bool mt_ring_make_way(const char *trace, bool had_tape)
{
    char path[4400];
    struct stat facts;

    if (!mt_ring_part_path(trace, 1, path, sizeof path))
        return false;
    int fd = mt_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd >= 0) {
        if (mt_ring_is_part(path, fd, 0, had_tape))
            mt_own_file_unlink(fd, AT_FDCWD, path);
        (void)mt_io_close(fd);
    }
    return lstat(path, &facts) != 0 && errno == ENOENT;
}

static enum mt_status keep(struct mt_ring_copy *copy, struct mt_event event, struct mt_error *error)
{
    copy->kept += !(event.flags & MT_EVENT_INITIAL);
    event.seq = copy->next_seq++;
    return mt_writer_add(copy->writer, &event, error);
}

/* Writes what is alive, and the event that was held. */
static enum mt_status begin(struct mt_ring_copy *copy, uint64_t t_ns, struct mt_error *error)
{
    copy->begun = true;
    copy->first_t_ns = t_ns;
    enum mt_status status =
        mt_alive_state_write(copy->alive, copy->writer, t_ns, &copy->next_seq, error);
    return status == MT_OK && copy->held.kind ? keep(copy, copy->held, error) : status;
}

static enum mt_status leave_out(struct mt_ring_copy *copy, const struct mt_event *event,
                                struct mt_error *error)
{
    enum mt_status status = mt_alive_state_add(copy->alive, event);

    copy->left_out += !(event->flags & MT_EVENT_INITIAL);
    return status == MT_OK ? MT_OK : mt_fail_status(error, status);
}

static enum mt_status copy_event(struct mt_ring_copy *copy, const struct mt_event *event,
                                 bool is_first, struct mt_error *error)
{
    const bool is_initial = event->flags & MT_EVENT_INITIAL;
    enum mt_status status = MT_OK;

    if (event->kind == MT_EVENT_END || (is_initial && !is_first))
        return MT_OK;
    if (!copy->begun && is_initial)
        return leave_out(copy, event, error);
    if (!copy->begun && event->t_ns > copy->from_t_ns)
        status = begin(copy, copy->held.kind ? copy->held.t_ns : copy->covers_t_ns, error);
    if (status != MT_OK)
        return status;
    if (copy->begun)
        return keep(copy, *event, error);
    if (copy->held.kind)
        status = leave_out(copy, &copy->held, error);
    copy->held = *event;
    return status;
}

enum mt_status mt_ring_copy_source(struct mt_ring_copy *copy, struct mt_source *source,
                                   bool is_first, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    copy->read = 0;
    while ((status = mt_source_next(source, &batch, error)) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            if (!copy->covers_t_ns)
                copy->covers_t_ns = batch.events[i].t_ns;
            status = copy_event(copy, &batch.events[i], is_first, error);
            if (status != MT_OK)
                return status;
            copy->read += batch.events[i].kind != MT_EVENT_END;
        }
    return status == MT_END ? MT_OK : status;
}

enum mt_status mt_ring_copy_end(struct mt_ring_copy *copy, uint64_t t_ns, struct mt_error *error)
{
    return copy->begun ? MT_OK : begin(copy, copy->held.kind ? copy->held.t_ns : t_ns, error);
}

enum mt_status mt_ring_read_symbols(struct mt_source *source, struct mt_integrity *found,
                                    struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK)
        continue;
    *found = source->integrity;
    return status == MT_END ? mt_source_rewind(source, error) : status;
}

static bool same_texts(const struct mt_strings *part, const struct mt_strings *later)
{
    for (uint32_t i = 0; i < part->count; i++)
        if (part->lengths[i] != later->lengths[i] ||
            memcmp(part->texts[i], later->texts[i], part->lengths[i]))
            return false;
    return true;
}

static bool same_bytes(const void *part, const void *later, uint32_t count, size_t entry_bytes)
{
    return !count || !memcmp(part, later, count * entry_bytes);
}

/* Names of threads may change; no event refers to them. */
static bool same_threads(const struct mt_symbols *part, const struct mt_symbols *later)
{
    for (uint32_t i = 0; i < part->thread_count; i++)
        if (part->threads[i].os_id != later->threads[i].os_id)
            return false;
    return true;
}

bool mt_ring_same_symbols(const struct mt_symbols *part, const struct mt_symbols *later)
{
    return part->strings.count <= later->strings.count && part->frame_count <= later->frame_count &&
           part->stack_count <= later->stack_count && part->stream_count <= later->stream_count &&
           part->pool_count <= later->pool_count && part->heap_count <= later->heap_count &&
           part->thread_count <= later->thread_count && part->device_count <= later->device_count &&
           same_texts(&part->strings, &later->strings) &&
           same_bytes(part->frames, later->frames, part->frame_count, sizeof *part->frames) &&
           same_bytes(part->stacks, later->stacks, part->stack_count, sizeof *part->stacks) &&
           same_bytes(part->streams, later->streams, part->stream_count, sizeof *part->streams) &&
           same_bytes(part->pools, later->pools, part->pool_count, sizeof *part->pools) &&
           same_bytes(part->heaps, later->heaps, part->heap_count, sizeof *part->heaps) &&
           same_threads(part, later);
}
