/* Finds frames of events in a file that may be truncated or damaged: by its index if that is sound,
 * otherwise by walking from frame to frame. After damage it searches for the next intact frame.
 * Private to the reader. */
#ifndef MT_TRACE_FRAMES_H
#define MT_TRACE_FRAMES_H

#include "codec.h"
#include "container.h"

/* A frame of events, or damage where a frame was expected. */
struct mt_found {
    struct mt_index_entry entry; /* for damage only the offset is valid */
    const char *damage;          /* static text; NULL = a frame */
    const char *what;            /* what is damaged: "frame", "header", ... */
    bool defined;                /* its definitions are in the symbols */
};

struct mt_zstd_frames {
    struct mt_input *input;
    struct mt_found *found; /* in order of the file */
    size_t count, capacity;
    bool complete;        /* the walk has reached the end */
    bool indexed;         /* from the index: nothing to walk */
    bool cut;             /* complete, but the end of the trace is missing */
    uint64_t walked;      /* offset of the next frame */
    uint64_t effort_left; /* bytes that failed attempts may still read */
    uint64_t next_seq;    /* lower bound: gaps in the last frame's numbers are not counted */
    struct ZSTD_DCtx_s *zstd;
    uint8_t *raw; /* MT_BLOCK_MAX_BYTES */
    size_t raw_length;
    size_t raw_of; /* index in found[] of the frame in raw; SIZE_MAX = none */
};

enum mt_status mt_zstd_frames_init(struct mt_zstd_frames *frames,
                                   struct mt_input *input) MT_MUST_USE;
void mt_zstd_frames_release(struct mt_zstd_frames *frames);

/* Reads the header frame. Facts that cannot be read from a damaged frame stay unchanged. Call it
 * once, first. */
enum mt_status mt_zstd_frames_read_header(struct mt_zstd_frames *frames, struct mt_arena *arena,
                                          struct mt_trace_header *header,
                                          struct mt_error *error) MT_MUST_USE;

/* Looks for an index at the end of the file and uses it if it is sound; if not, the walk reports
 * why. Call once, after the header. */
enum mt_status mt_zstd_frames_use_index(struct mt_zstd_frames *frames,
                                        struct mt_error *error) MT_MUST_USE;

/* Ensures that found[i] exists: MT_OK, MT_END if the file has no more, or an error of the host. */
enum mt_status mt_zstd_frames_get(struct mt_zstd_frames *frames, size_t i,
                                  struct mt_error *error) MT_MUST_USE;

/* Decompresses found[i] (not damage) and parses the block's layout. On MT_ERR_FORMAT, *reason names
 * the damage and found[i] is unchanged. */
enum mt_status mt_zstd_frames_load(struct mt_zstd_frames *frames, size_t i,
                                   struct mt_event_block *block, const char **reason,
                                   struct mt_error *error) MT_MUST_USE;

#endif
