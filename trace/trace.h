/* The memtrace trace file: reader and writer. docs/internals/trace-format.md is the specification;
 * this header describes how to use the code. */
#ifndef MT_TRACE_TRACE_H
#define MT_TRACE_TRACE_H

#include <stdio.h>
#include <sys/types.h>

#include "source.h"

/* Whether the first bytes of a file (4 suffice) look like a trace. */
bool mt_trace_probe(const void *bytes, size_t length);

/* Whether a file that begins like this is a trace imported from a snapshot. Recordings and copies
 * of them are not. Needs the whole header: 64 KiB suffice for all except hostile ones. */
bool mt_trace_is_imported(const void *bytes, size_t length);

/* Opens a trace. `path` is read with O_RDONLY; "-" is standard input (read into memory, since a
 * trace is read more than once). On success the caller closes *source with mt_source_close. A
 * damaged or truncated file opens if at least one frame can be read; see source->integrity. */
enum mt_status mt_trace_open(const char *path, struct mt_source **source,
                             struct mt_error *error) MT_MUST_USE;

/* The same for an open regular file that is treated as ending after `limit_bytes`. The caller keeps
 * `fd`. */
enum mt_status mt_trace_open_fd(int fd, uint64_t limit_bytes, struct mt_source **source,
                                struct mt_error *error) MT_MUST_USE;

/* The same for memory that stays valid until close. */
enum mt_status mt_trace_open_memory(const void *bytes, size_t length, struct mt_source **source,
                                    struct mt_error *error) MT_MUST_USE;

/* The same, but the source takes ownership of malloc'd memory and frees it on close, or immediately
 * on failure. */
enum mt_status mt_trace_open_owned(void *bytes, size_t length, struct mt_source **source,
                                   struct mt_error *error) MT_MUST_USE;

/* For a trace that an importer made from another file: adds what is wrong with that file
 * (records_damaged, cut, first_error) to the integrity of every reading. */
void mt_trace_set_input_damage(struct mt_source *source, const struct mt_integrity *damage);

struct mt_writer;

struct mt_writer_options {
    int compression_level; /* zstd; 0 = default (3) */
    size_t frame_bytes;    /* raw bytes per frame, 0 = default, at most 1 MiB */
    size_t header_bytes;   /* room for a header that grows later (mt_writer_set_header), at most 64
                              KiB; 0 = none */
};

/* Output of a trace that is not a plain descriptor. Both functions work like pwrite(2): they return
 * the number of bytes written, or -1 and set errno. They are called again for the rest after a
 * short write, and after EINTR. */
struct mt_trace_output {
    /* Appends at the end of the file; `offset` is the current length of the file. */
    ssize_t (*append)(void *context, const void *bytes, size_t length, uint64_t offset);
    /* Overwrites existing bytes: the header. */
    ssize_t (*overwrite)(void *context, const void *bytes, size_t length, uint64_t offset);
    void *context; /* borrowed */
};

/* Writes header and frames to `output`. Symbols are written before the first event that refers to
 * them. The writer reads them from `symbols` (borrowed, only grows) as it goes. */
enum mt_status mt_writer_new_output(const struct mt_trace_output *output,
                                    const struct mt_trace_header *header,
                                    const struct mt_symbols *symbols,
                                    const struct mt_writer_options *options,
                                    struct mt_writer **writer, struct mt_error *error) MT_MUST_USE;

/* The same for a descriptor. `fd` may be a pipe, and the caller keeps it. */
enum mt_status mt_writer_new(int fd, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols,
                             const struct mt_writer_options *options, struct mt_writer **writer,
                             struct mt_error *error) MT_MUST_USE;

/* Begins another file at offset 0 of the same output, which the caller has exchanged, with the same
 * symbols and the memory of the last file. Unwritten events are discarded. */
enum mt_status mt_writer_restart(struct mt_writer *writer, const struct mt_trace_header *header,
                                 struct mt_error *error) MT_MUST_USE;

/* Replaces the header in place. Requires options.header_bytes and a seekable `fd`. Returns
 * MT_ERR_USAGE and keeps the old header if the facts no longer fit. A crash during the write
 * damages the header, never the events. */
enum mt_status mt_writer_set_header(struct mt_writer *writer, const struct mt_trace_header *header,
                                    struct mt_error *error) MT_MUST_USE;

/* Length of the file so far, up to the last flush. */
uint64_t mt_writer_bytes(const struct mt_writer *writer);

/* Adds an event. Events must come in order of seq, and t_ns must not decrease. Costs at most 60 ns
 * per event. */
enum mt_status mt_writer_add(struct mt_writer *writer, const struct mt_event *event,
                             struct mt_error *error) MT_MUST_USE;

/* Adds the remaining events of `source`, including END events only if `keeps_end`, and counts them
 * in *events. Returns MT_OK at the end of the source. Does not finish the writer. */
enum mt_status mt_writer_copy(struct mt_writer *writer, struct mt_source *source, bool keeps_end,
                              uint64_t *events, struct mt_error *error) MT_MUST_USE;

/* Ends the current frame and passes it to the operating system: events added so far survive the end
 * of the process. */
enum mt_status mt_writer_flush(struct mt_writer *writer, struct mt_error *error) MT_MUST_USE;

/* Adds the END event if it is missing, and writes index and seek table. */
enum mt_status mt_writer_finish(struct mt_writer *writer, struct mt_error *error) MT_MUST_USE;

void mt_writer_free(struct mt_writer *writer); /* accepts NULL; does not finish */

struct mt_zstd_frame_info {
    uint64_t offset, compressed_bytes, raw_bytes;
    uint64_t first_seq, event_count, first_t_ns;
};

/* The frames of an open trace source, in order. Valid until close. To decode in parallel, each
 * thread opens its own source and seeks to the first_seq of its frames. This costs the definitions
 * before them, but no events. */
enum mt_status mt_trace_frames(struct mt_source *source, const struct mt_zstd_frame_info **frames,
                               size_t *count, struct mt_error *error) MT_MUST_USE;

#endif
