/* Finding frames of events in a file that may be cut or damaged: by its index
 * if that is sound, else by walking from frame to frame, and behind damage by
 * looking for the next frame that is whole. Private to the reader. */
#ifndef MT_TRACE_FRAMES_H
#define MT_TRACE_FRAMES_H

#include "codec.h"
#include "container.h"

/* A frame of events, or a place where one was expected and damage is. */
struct mt_found {
    struct mt_index_entry entry; /* damage: only the offset is true */
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
    uint64_t walked;      /* offset of what comes next */
    uint64_t effort_left; /* bytes that failed attempts may still look at */
    uint64_t next_seq;    /* lower bound: gaps in the last frame's numbers are not counted */
    struct ZSTD_DCtx_s *zstd;
    uint8_t *raw; /* MT_BLOCK_MAX_BYTES */
    size_t raw_length;
    size_t raw_of; /* which found[] is in raw; SIZE_MAX = none */
};

enum mt_status mt_zstd_frames_init(struct mt_zstd_frames *frames,
                                   struct mt_input *input) MT_MUST_USE;
void mt_zstd_frames_release(struct mt_zstd_frames *frames);

/* Reads the header frame; facts of a damaged one stay as they are. Call once,
 * first. */
enum mt_status mt_zstd_frames_read_header(struct mt_zstd_frames *frames, struct mt_arena *arena,
                                          struct mt_trace_header *header,
                                          struct mt_error *error) MT_MUST_USE;

/* Looks at the end of the file for an index and uses it if it is sound; if
 * not, the walk will say why. Call once, after the header. */
enum mt_status mt_zstd_frames_use_index(struct mt_zstd_frames *frames,
                                        struct mt_error *error) MT_MUST_USE;

/* Makes found[i] exist: MT_OK, MT_END if the file has no more, or an error of
 * the host. */
enum mt_status mt_zstd_frames_get(struct mt_zstd_frames *frames, size_t i,
                                  struct mt_error *error) MT_MUST_USE;

/* Decompresses found[i] (not damage) and parses the block's layout. On
 * MT_ERR_FORMAT, *reason says what is damaged; found[i] is left as it was. */
enum mt_status mt_zstd_frames_load(struct mt_zstd_frames *frames, size_t i,
                                   struct mt_event_block *block, const char **reason,
                                   struct mt_error *error) MT_MUST_USE;

#endif
