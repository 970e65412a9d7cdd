/* The memtrace trace file: reader and writer. docs/trace-format.md is the
 * specification; this header only says how to use the code. */
#ifndef MT_TRACE_TRACE_H
#define MT_TRACE_TRACE_H

#include <stdio.h>
#include <sys/types.h>

#include "source.h"

/* Does the file begin (first `length` bytes, 4 suffice) like a trace? */
bool mt_trace_probe(const void *bytes, size_t length);

/* Does a file that begins like this hold a trace that was imported from a snapshot? A recording
 * does not, nor does a copy of one. Needs the whole header: 64 KiB are enough for all but hostile
 * ones. */
bool mt_trace_is_imported(const void *bytes, size_t length);

/* Opens a trace. `path` is read with O_RDONLY; "-" is standard input (read
 * into memory, since a trace is read more than once). On success *source is
 * the caller's, closed with mt_source_close. A damaged or cut file opens as
 * long as one frame of it can be read; see source->integrity. */
enum mt_status mt_trace_open(const char *path, struct mt_source **source,
                             struct mt_error *error) MT_MUST_USE;

/* As above for a regular file that is open already, as if it ended after
 * `limit_bytes`. `fd` stays the caller's. */
enum mt_status mt_trace_open_fd(int fd, uint64_t limit_bytes, struct mt_source **source,
                                struct mt_error *error) MT_MUST_USE;

/* As above from memory that stays valid until close. */
enum mt_status mt_trace_open_memory(const void *bytes, size_t length, struct mt_source **source,
                                    struct mt_error *error) MT_MUST_USE;

/* As above, but the source takes over malloc'd memory: it is freed on close, or
 * at once if this fails. */
enum mt_status mt_trace_open_owned(void *bytes, size_t length, struct mt_source **source,
                                   struct mt_error *error) MT_MUST_USE;

struct mt_writer;

struct mt_writer_options {
    int compression_level; /* zstd; 0 = default (3) */
    size_t frame_bytes;    /* raw bytes a frame, 0 = default, at most 1 MiB */
    size_t header_bytes;   /* room for a header that grows later (mt_writer_set_header),
                              at most 64 KiB; 0 = none */
};

/* Where a trace goes if a plain descriptor does not do. Both functions work like
 * pwrite(2): they return the number of bytes written, or -1 and set errno. They
 * are called again for the rest after a short write, and after EINTR. */
struct mt_trace_output {
    /* At the end of the file; `offset` is the length of the file so far. */
    ssize_t (*append)(void *context, const void *bytes, size_t length, uint64_t offset);
    /* Over what is there: the header. */
    ssize_t (*overwrite)(void *context, const void *bytes, size_t length, uint64_t offset);
    void *context; /* borrowed */
};

/* Writes header and frames to `output`. Symbols that events refer to are written
 * before first use: the writer reads them from `symbols` (borrowed, only grows)
 * as it goes. */
enum mt_status mt_writer_new_output(const struct mt_trace_output *output,
                                    const struct mt_trace_header *header,
                                    const struct mt_symbols *symbols,
                                    const struct mt_writer_options *options,
                                    struct mt_writer **writer, struct mt_error *error) MT_MUST_USE;

/* The same to `fd`, which stays the caller's and may be a pipe. */
enum mt_status mt_writer_new(int fd, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols,
                             const struct mt_writer_options *options, struct mt_writer **writer,
                             struct mt_error *error) MT_MUST_USE;

/* Replaces the header where it stands; needs options.header_bytes and a `fd` that
 * can be written at a place of choice. MT_ERR_USAGE if the facts have outgrown the room: the old
 * header stays. A crash in between damages the header, never the events. */
enum mt_status mt_writer_set_header(struct mt_writer *writer, const struct mt_trace_header *header,
                                    struct mt_error *error) MT_MUST_USE;

/* Length of the file so far, up to the last flush. */
uint64_t mt_writer_bytes(const struct mt_writer *writer);

/* Events must come in order of seq; t_ns never decreases. <= 60 ns an event. */
enum mt_status mt_writer_add(struct mt_writer *writer, const struct mt_event *event,
                             struct mt_error *error) MT_MUST_USE;

/* Adds the events that are left in `source`, with or without END events, and counts those that it
 * added in *events. MT_OK at the end of the source; the writer is not finished. */
enum mt_status mt_writer_copy(struct mt_writer *writer, struct mt_source *source, bool keeps_end,
                              uint64_t *events, struct mt_error *error) MT_MUST_USE;

/* Ends the current frame and hands it to the operating system: what was added
 * so far survives the end of the process. */
enum mt_status mt_writer_flush(struct mt_writer *writer, struct mt_error *error) MT_MUST_USE;

/* Adds the END event if the last one is not one, writes index and seek table. */
enum mt_status mt_writer_finish(struct mt_writer *writer, struct mt_error *error) MT_MUST_USE;

void mt_writer_free(struct mt_writer *writer); /* NULL is fine; does not finish */

struct mt_zstd_frame_info {
    uint64_t offset, compressed_bytes, raw_bytes;
    uint64_t first_seq, event_count, first_t_ns;
};

/* Frames of an open trace source, in order. Valid until close. To decode in
 * parallel, let each thread open a source of its own and seek to the first_seq
 * of the frames that it takes: that costs the definitions before them, no
 * events. */
enum mt_status mt_trace_frames(struct mt_source *source, const struct mt_zstd_frame_info **frames,
                               size_t *count, struct mt_error *error) MT_MUST_USE;

#endif
