/* Writes events to a file. Events gather in memory; a full block (or a flush) becomes one zstd
 * frame, passed to the operating system in one write. Written data is never changed, except the
 * header, so a killed writer leaves a readable file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "check.h"
#include "codec.h"
#include "container.h"
#include "grow.h"
#include "util.h"

enum {
    DEFAULT_LEVEL = 3,
    DEFAULT_EVENTS = 32768, /* as many as a block of the encoder holds */
    MIN_EVENTS = 16,
    RAW_BYTES_PER_EVENT = 6, /* typical; converts frame_bytes to a number of events */
    DEFINITIONS_PER_BLOCK = MT_BLOCK_MAX_BYTES / 4,
    MAX_HEADER_ROOM = 65536
};

struct mt_writer {
    struct mt_trace_output output;
    const struct mt_symbols *symbols;
    struct mt_encoder *encoder;
    ZSTD_CCtx *zstd;
    struct mt_event *events;
    size_t event_count, max_events, frame_bytes;
    struct mt_definitions_written written;
    struct mt_buf definitions, raw, compressed;
    struct mt_index_entry *frames;
    size_t frame_count, frame_capacity;
    size_t header_room;
    uint64_t header_bytes, offset; /* offset: of the next frame in the file */
    uint64_t next_seq, last_t_ns;
    uint64_t events_added, events_written;
    bool ended;  /* an END event was added */
    bool failed; /* a frame could not be written: the file may end with half of it */
    bool finished;
};

static enum mt_status write_all(struct mt_writer *writer, const void *bytes, size_t length,
                                struct mt_error *error)
{
    const char *at = bytes;

    while (length) {
        ssize_t done = writer->output.append(writer->output.context, at, length, writer->offset);
        if (done > 0) {
            at += done;
            length -= (size_t)done;
            writer->offset += (uint64_t)done;
        } else if (done < 0 && errno == EINTR) {
            continue;
        } else {
            return mt_fail(error, MT_ERR_OUTPUT, writer->offset, "%s",
                           done ? strerror(errno) : "nothing was written");
        }
    }
    return MT_OK;
}

static enum mt_status write_header(struct mt_writer *writer, const struct mt_trace_header *header,
                                   struct mt_error *error)
{
    struct mt_buf out = {0};

    mt_header_write(header, writer->header_room, &out);
    writer->header_bytes = out.length;
    enum mt_status status =
        out.failed ? mt_fail_memory(error) : write_all(writer, out.data, out.length, error);
    mt_buf_release(&out);
    return status;
}

static enum mt_status overwrite(struct mt_writer *writer, const struct mt_buf *bytes,
                                struct mt_error *error)
{
    size_t done = 0;

    while (done < bytes->length) {
        ssize_t got = writer->output.overwrite(writer->output.context, bytes->data + done,
                                               bytes->length - done, done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return mt_fail(error, MT_ERR_OUTPUT, done, "%s",
                           got ? strerror(errno) : "nothing was written");
        done += (size_t)got;
    }
    return MT_OK;
}

enum mt_status mt_writer_set_header(struct mt_writer *writer, const struct mt_trace_header *header,
                                    struct mt_error *error)
{
    struct mt_buf out = {0};
    enum mt_status status;

    mt_header_write(header, writer->header_room, &out);
    if (out.failed)
        status = mt_fail_memory(error);
    else if (out.length != writer->header_bytes)
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "no room for the new header");
    else
        status = overwrite(writer, &out, error);
    mt_buf_release(&out);
    return status;
}

uint64_t mt_writer_bytes(const struct mt_writer *writer)
{
    return writer->offset;
}

static enum mt_status set_up(struct mt_writer *writer, const struct mt_writer_options *options)
{
    int level = options && options->compression_level ? options->compression_level : DEFAULT_LEVEL;
    size_t frame_bytes = options ? options->frame_bytes : 0;

    writer->header_room = options ? mt_min_u64(options->header_bytes, MAX_HEADER_ROOM) : 0;
    writer->max_events = DEFAULT_EVENTS;
    writer->frame_bytes = MT_BLOCK_MAX_BYTES;
    if (frame_bytes && frame_bytes < MT_BLOCK_MAX_BYTES) {
        size_t events = frame_bytes / RAW_BYTES_PER_EVENT;
        writer->frame_bytes = frame_bytes;
        writer->max_events = events < MIN_EVENTS ? MIN_EVENTS : events;
        if (writer->max_events > MT_ENCODER_MAX_EVENTS)
            writer->max_events = MT_ENCODER_MAX_EVENTS;
    }
    writer->encoder = mt_encoder_new(writer->max_events);
    writer->events = malloc(writer->max_events * sizeof *writer->events);
    writer->zstd = ZSTD_createCCtx();
    if (!writer->encoder || !writer->events || !writer->zstd)
        return MT_ERR_MEMORY;
    if (ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
        return MT_ERR_USAGE;
    return MT_OK;
}

enum mt_status mt_writer_new_output(const struct mt_trace_output *output,
                                    const struct mt_trace_header *header,
                                    const struct mt_symbols *symbols,
                                    const struct mt_writer_options *options, struct mt_writer **out,
                                    struct mt_error *error)
{
    struct mt_writer *writer = calloc(1, sizeof *writer);

    if (!writer)
        return mt_fail_memory(error);
    writer->output = *output;
    writer->symbols = symbols;
    enum mt_status status = set_up(writer, options);
    if (status == MT_OK)
        status = write_header(writer, header, error);
    else
        mt_fail_status(error, status);
    if (status != MT_OK) {
        mt_writer_free(writer);
        return status;
    }
    *out = writer;
    return MT_OK;
}

enum mt_status mt_writer_restart(struct mt_writer *writer, const struct mt_trace_header *header,
                                 struct mt_error *error)
{
    writer->event_count = writer->frame_count = 0;
    writer->max_events = DEFAULT_EVENTS;
    writer->written = (struct mt_definitions_written){0};
    mt_buf_reset(&writer->definitions);
    writer->offset = writer->next_seq = writer->last_t_ns = 0;
    writer->events_added = writer->events_written = 0;
    writer->ended = writer->failed = writer->finished = false;
    return write_header(writer, header, error);
}

void mt_writer_free(struct mt_writer *writer)
{
    if (!writer)
        return;
    mt_encoder_free(writer->encoder);
    ZSTD_freeCCtx(writer->zstd);
    mt_buf_release(&writer->definitions);
    mt_buf_release(&writer->raw);
    mt_buf_release(&writer->compressed);
    free(writer->events);
    free(writer->frames);
    free(writer);
}

static enum mt_status remember_frame(struct mt_writer *writer, const struct mt_event *first,
                                     size_t count)
{
    if (mt_grow(&writer->frames, &writer->frame_capacity, writer->frame_count + 1,
                sizeof *writer->frames))
        return MT_ERR_MEMORY;
    writer->frames[writer->frame_count++] =
        (struct mt_index_entry){.info = {.offset = writer->offset,
                                         .compressed_bytes = writer->compressed.length,
                                         .raw_bytes = writer->raw.length,
                                         .first_seq = first->seq,
                                         .event_count = count,
                                         .first_t_ns = first->t_ns},
                                .definition_bytes = (uint32_t)writer->definitions.length};
    return MT_OK;
}

/* Writes writer->raw as a frame of the file. */
static enum mt_status write_frame(struct mt_writer *writer, const struct mt_event *first,
                                  size_t count, struct mt_error *error)
{
    size_t bound = ZSTD_compressBound(writer->raw.length);

    mt_buf_reset(&writer->compressed);
    char *room = mt_buf_reserve(&writer->compressed, bound);
    if (!room)
        return mt_fail_memory(error);
    size_t length = ZSTD_compress2(writer->zstd, room, bound, writer->raw.data, writer->raw.length);
    if (ZSTD_isError(length))
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(length));
    writer->compressed.length = length;
    MT_CHECK(error, length > 0 && length <= bound);
    if (remember_frame(writer, first, count) != MT_OK)
        return mt_fail_memory(error);
    writer->events_written += count;
    return write_all(writer, room, length, error);
}

/* Encodes events[0..count) into writer->raw. */
static enum mt_status encode(struct mt_writer *writer, const struct mt_event *events, size_t count,
                             struct mt_error *error)
{
    const char *reason = NULL;

    mt_buf_reset(&writer->raw);
    enum mt_status status = mt_event_block_encode(writer->encoder, writer->symbols, events, count,
                                                  &writer->definitions, &writer->raw, &reason);
    if (status != MT_OK)
        return mt_fail(error, status, MT_NO_OFFSET, "%s (event %llu and later)", reason,
                       (unsigned long long)events[0].seq);
    return MT_OK;
}

/* Writes definitions that do not fit beside events as blocks of their own, before them; the rest
 * stays in writer->definitions. */
static enum mt_status write_large_definitions(struct mt_writer *writer, struct mt_error *error)
{
    for (;;) {
        mt_buf_reset(&writer->definitions);
        writer->written.file_bytes = writer->offset;
        bool complete = mt_definitions_write(writer->symbols, &writer->written,
                                             DEFINITIONS_PER_BLOCK, &writer->definitions);
        if (writer->definitions.failed)
            return mt_fail_memory(error);
        if (complete)
            return MT_OK;
        enum mt_status status = encode(writer, writer->events, 0, error);
        if (status == MT_OK)
            status = write_frame(writer, writer->events, 0, error);
        if (status != MT_OK)
            return status;
    }
}

static bool is_too_large(const struct mt_writer *writer)
{
    return writer->raw.length > MT_BLOCK_MAX_BYTES ||
           writer->raw.length - writer->definitions.length > writer->frame_bytes;
}

/* Events that vary more than in any real trace may exceed a frame's size. Smaller blocks are then
 * used for these and all later events. */
static enum mt_status write_events(struct mt_writer *writer, struct mt_error *error)
{
    size_t done = 0;

    MT_ASSERT(writer->event_count <= MT_ENCODER_MAX_EVENTS);
    while (done < writer->event_count) {
        size_t count = mt_min_u64(writer->event_count - done, writer->max_events);
        enum mt_status status = encode(writer, writer->events + done, count, error);
        if (status != MT_OK)
            return status;
        if (is_too_large(writer) && count > MIN_EVENTS) {
            writer->max_events = count / 2;
            continue;
        }
        status = write_frame(writer, writer->events + done, count, error);
        if (status != MT_OK)
            return status;
        mt_buf_reset(&writer->definitions);
        done += count;
    }
    MT_ASSERT(done == writer->event_count);
    writer->event_count = 0;
    return MT_OK;
}

enum mt_status mt_writer_flush(struct mt_writer *writer, struct mt_error *error)
{
    if (writer->failed)
        return mt_fail(error, MT_ERR_OUTPUT, writer->offset, "an earlier write failed");
    if (!writer->event_count)
        return MT_OK;
    enum mt_status status = write_large_definitions(writer, error);
    if (status == MT_OK)
        status = write_events(writer, error);
    writer->failed = status != MT_OK;
    return status;
}

enum mt_status mt_writer_add(struct mt_writer *writer, const struct mt_event *event,
                             struct mt_error *error)
{
    if (writer->failed)
        return mt_fail(error, MT_ERR_OUTPUT, writer->offset, "an earlier write failed");
    if (event->seq < writer->next_seq || event->t_ns < writer->last_t_ns || writer->finished)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "event %llu is out of order",
                       (unsigned long long)event->seq);
    if (event->seq > MT_MAX_SEQ)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "event %llu: sequence numbers end below 2^62",
                       (unsigned long long)event->seq);
    MT_ASSERT(writer->event_count < MT_ENCODER_MAX_EVENTS);
    writer->events_added++;
    writer->next_seq = event->seq + 1;
    writer->last_t_ns = event->t_ns;
    writer->ended = event->kind == MT_EVENT_END;
    writer->events[writer->event_count++] = *event;
    return writer->event_count < writer->max_events ? MT_OK : mt_writer_flush(writer, error);
}

static enum mt_status copy_batch(struct mt_writer *writer, const struct mt_event_batch *batch,
                                 bool keeps_end, uint64_t *events, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < batch->count && status == MT_OK; i++) {
        if (batch->events[i].kind == MT_EVENT_END && !keeps_end)
            continue;
        status = mt_writer_add(writer, &batch->events[i], error);
        *events += status == MT_OK;
    }
    return status;
}

enum mt_status mt_writer_copy(struct mt_writer *writer, struct mt_source *source, bool keeps_end,
                              uint64_t *events, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    *events = 0;
    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        status = copy_batch(writer, &batch, keeps_end, events, error);
        if (status != MT_OK)
            return status;
    }
    return status == MT_END ? MT_OK : status;
}

/* End of the last frame for the index. */
static uint64_t end_of_frames(const struct mt_writer *writer)
{
    if (!writer->frame_count)
        return writer->header_bytes;
    const struct mt_zstd_frame_info *last = &writer->frames[writer->frame_count - 1].info;
    return last->offset + last->compressed_bytes;
}

enum mt_status mt_writer_finish(struct mt_writer *writer, struct mt_error *error)
{
    const struct mt_event end = {.seq = writer->next_seq,
                                 .t_ns = writer->last_t_ns,
                                 .stack = MT_NO_ID,
                                 .name = MT_NO_ID,
                                 .kind = MT_EVENT_END};
    struct mt_buf tail = {0};
    enum mt_status status = MT_OK;

    if (!writer->ended)
        status = mt_writer_add(writer, &end, error);
    if (status == MT_OK)
        status = mt_writer_flush(writer, error);
    if (status != MT_OK)
        return status;
    MT_CHECK(error, writer->events_written == writer->events_added);
    MT_CHECK(error, end_of_frames(writer) == writer->offset);
    MT_ASSERT(writer->event_count == 0);
    mt_index_write(writer->frames, writer->frame_count, writer->header_bytes, &tail);
    status = tail.failed ? mt_fail_memory(error) : write_all(writer, tail.data, tail.length, error);
    writer->finished = status == MT_OK;
    mt_buf_release(&tail);
    return status;
}

static ssize_t append_to_fd(void *context, const void *bytes, size_t length, uint64_t offset)
{
    (void)offset; /* a pipe has no offset */
    return write((int)(intptr_t)context, bytes, length);
}

static ssize_t overwrite_in_fd(void *context, const void *bytes, size_t length, uint64_t offset)
{
    return pwrite((int)(intptr_t)context, bytes, length, (off_t)offset);
}

enum mt_status mt_writer_new(int fd, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols,
                             const struct mt_writer_options *options, struct mt_writer **writer,
                             struct mt_error *error)
{
    const struct mt_trace_output output = {append_to_fd, overwrite_in_fd,
                                           (void *)(intptr_t)fd /* NOLINT */};

    return mt_writer_new_output(&output, header, symbols, options, writer, error);
}
