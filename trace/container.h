/* The file around the blocks: header frame, event frames, index frame, seek
 * table (docs/internals/trace-format.md, "The file"). Private to reader and writer. */
#ifndef MT_TRACE_CONTAINER_H
#define MT_TRACE_CONTAINER_H

#include "arena.h"
#include "buf.h"
#include "bytes.h"
#include "trace.h"

#define MT_OWN_FRAME_MAGIC   UINT32_C(0x184D2A5D) /* skippable frame: header, index */
#define MT_SEEK_FRAME_MAGIC  UINT32_C(0x184D2A5E) /* from zstd's seekable format */
#define MT_SEEK_FOOTER_MAGIC UINT32_C(0x8F92EAB1)
#define MT_ZSTD_MAGIC        UINT32_C(0xFD2FB528)

enum {
    MT_SKIPPABLE_HEADER_BYTES = 8, /* magic, length */
    MT_SEEK_FOOTER_BYTES = 9,
    /* No event frame is larger: ZSTD_COMPRESSBOUND(1 MiB) and a margin. */
    MT_FRAME_MAX_BYTES = (1 << 20) + (1 << 14),
    MT_HEADER_MAX_BYTES = 1 << 20
};

static inline void mt_buf_add_u32(struct mt_buf *out, uint32_t value)
{
    uint8_t bytes[4];

    mt_put_u32(bytes, value);
    mt_buf_add(out, bytes, sizeof bytes);
}

/* A frame of events as the index has it. */
struct mt_index_entry {
    struct mt_zstd_frame_info info;
    uint32_t definition_bytes; /* > 0: holds definitions */
};

/* Appends a whole frame. A fact that readers ignore pads it to `frame_bytes` (0 = no padding), so
 * that another header can replace it later. The frame is larger if its facts need more room. */
void mt_header_write(const struct mt_trace_header *header, size_t frame_bytes, struct mt_buf *out);

/* `payload` is the content of the skippable frame. Texts go into the arena. */
enum mt_status mt_header_read(const uint8_t *payload, size_t length, struct mt_arena *arena,
                              struct mt_trace_header *header, const char **reason) MT_MUST_USE;

/* Writes index frame and seek table. The frames of `entries` are contiguous and follow the header
 * frame of `header_bytes`. */
void mt_index_write(const struct mt_index_entry *entries, size_t count, uint64_t header_bytes,
                    struct mt_buf *out);

/* Returns the length of the whole seek table frame from its footer (the last MT_SEEK_FOOTER_BYTES
 * of a file), or 0 if there is none. */
uint64_t mt_seek_table_bytes(const uint8_t *footer);

/* What the seek table contains about the frames before it. The last of them is the index. */
struct mt_seek_table {
    uint64_t covered_bytes; /* sum of all compressed sizes */
    uint64_t index_bytes;   /* length of the last frame: the index */
};
enum mt_status mt_seek_table_read(const uint8_t *frame, size_t length, struct mt_seek_table *table,
                                  const char **reason) MT_MUST_USE;

/* Reads the index frame. *entries is from malloc, and the caller frees it. `limit` is the offset of
 * the index in the file: no frame may reach beyond it. */
enum mt_status mt_index_read(const uint8_t *frame, size_t length, uint64_t limit,
                             struct mt_index_entry **entries, size_t *count,
                             const char **reason) MT_MUST_USE;

/* Whether this payload of a skippable frame is ours: a header or an index. */
bool mt_payload_is_header(const uint8_t *payload, size_t length);
bool mt_payload_is_index(const uint8_t *payload, size_t length);

/* A file or memory with random access through a moving window. */
struct mt_input {
    int fd; /* -1 = memory */
    const uint8_t *memory;
    uint8_t *owned; /* input from a pipe; freed on close */
    uint64_t size;
    uint8_t *window;
    size_t window_capacity, window_length;
    uint64_t window_offset;
};

enum mt_status mt_input_open(struct mt_input *input, const char *path,
                             struct mt_error *error) MT_MUST_USE;
/* Opens the first `limit_bytes` of a regular file, or all of it if it is shorter. `fd` must be open
 * for reading. Uses a duplicate; the caller keeps `fd`. */
enum mt_status mt_input_open_fd(struct mt_input *input, int fd, uint64_t limit_bytes,
                                struct mt_error *error) MT_MUST_USE;
void mt_input_open_memory(struct mt_input *input, const void *bytes, size_t length);
void mt_input_close(struct mt_input *input);

#endif
