/* One block of events <-> bytes. A block is what one zstd frame decompresses
 * to: header, definitions, columns (docs/internals/trace-format.md, "Blocks"). Pure
 * functions of memory: no files, no compression.
 *
 * Order of calls to read a block: mt_event_block_parse, mt_ids_define, then
 * mt_event_block_decode. */
#ifndef MT_TRACE_CODEC_H
#define MT_TRACE_CODEC_H

#include "buf.h"
#include "bytes.h"
#include "event.h"
#include "symbols.h"

#define MT_FORMAT_VERSION 1
#define MT_BLOCK_MAGIC    UINT32_C(0x424B544D) /* "MTKB" */

enum {
    MT_BLOCK_HEADER_BYTES = 32,
    MT_BLOCK_MAX_BYTES = 1 << 20,
    MT_BLOCK_MAX_EVENTS = 65536,   /* indexes are two bytes at most */
    MT_ENCODER_MAX_EVENTS = 32768, /* so that sizes and aux fit in one table */
    MT_STRING_MAX_BYTES = 65535,   /* the writer cuts longer texts */
    MT_MAX_DEVICES = 1024,
    MT_MAX_POOLS = 8192, /* also heaps */
    MT_MAX_THREADS = 65535
};

/* Numbers are part of the format. */
enum mt_column {
    MT_COLUMN_FORMS = 1,
    MT_COLUMN_FORM_INDEX = 2,
    MT_COLUMN_TIMES = 3,
    MT_COLUMN_ADDRESSES = 4,
    MT_COLUMN_ADDRESS_INDEX = 5,
    MT_COLUMN_BACK = 6,
    MT_COLUMN_SIZES = 7,
    MT_COLUMN_SIZE_INDEX = 8,
    MT_COLUMN_AUX_INDEX = 9,
    MT_COLUMN_STACKS = 10,
    MT_COLUMN_STACK_INDEX = 11,
    MT_COLUMN_NAMES = 12,
    MT_COLUMN_NAME_INDEX = 13,
    MT_COLUMN_SEQ_GAPS = 14,
    MT_COLUMN_PAYLOADS = 15
};
#define MT_COLUMN_COUNT 16

/* Columns that an event of a form takes a value from. */
enum mt_form_fields {
    MT_FIELD_PLACE = 3 << 0, /* one of the four below */
    MT_FIELD_PLACE_NONE = 0,
    MT_FIELD_PLACE_NEW = 1,  /* address index; creates a place of the block */
    MT_FIELD_PLACE_BACK = 2, /* distance n: the n-th place before the newest */
    MT_FIELD_PLACE_SAME = 3, /* the most recently used place */
    MT_FIELD_SIZE = 1 << 2,
    MT_FIELD_AUX = 1 << 3,
    MT_FIELD_STACK = 1 << 4,
    MT_FIELD_STACK_SAME = 1 << 5, /* the most recently used stack */
    MT_FIELD_NAME = 1 << 6,
    MT_FIELD_SEQ_GAP = 1 << 7,
    MT_FIELD_PAYLOAD = 1 << 8 /* bytes that this version does not understand */
};

enum mt_table {
    MT_TABLE_STRINGS = 1,
    MT_TABLE_FRAMES = 2,
    MT_TABLE_STACKS = 3,
    MT_TABLE_STREAMS = 4,
    MT_TABLE_POOLS = 5,
    MT_TABLE_DEVICES = 6,
    MT_TABLE_HEAPS = 7,
    MT_TABLE_THREADS = 8,
    MT_TABLE_ENDS = 9
};
#define MT_TABLE_COUNT 10

struct mt_event_block_header {
    uint64_t first_seq, base_t_ns;
    uint32_t event_count, definition_bytes;
};

/* A parsed block; points into the raw bytes. */
struct mt_event_block {
    struct mt_event_block_header header;
    struct mt_cursor definitions, columns;
};

/* Reads header and layout. On error *reason is a static text, as everywhere in this file:
 * MT_ERR_FORMAT, or MT_ERR_UNSUPPORTED for another version. */
enum mt_status mt_event_block_parse(const uint8_t *raw, size_t length, struct mt_event_block *block,
                                    const char **reason) MT_MUST_USE;

/* How much of a symbol table has been written. Zeroed = nothing. */
struct mt_definitions_written {
    uint32_t count[MT_TABLE_COUNT];
    uint64_t text_bytes;   /* of strings so far */
    uint64_t file_bytes;   /* length of the file so far, set by the caller: texts beyond
                              mt_text_limit(file_bytes) are cut */
    uint64_t devices_hash; /* devices may be described again later */
};

/* Appends definitions that are not written yet, at most about `limit` bytes but at least one entry.
 * Returns true if nothing is left to write. */
bool mt_definitions_write(const struct mt_symbols *symbols, struct mt_definitions_written *written,
                          size_t limit, struct mt_buf *out);

/* Maps ids of the file to ids of the reader's symbols. They differ only if definitions were lost or
 * another writer made the file. */
struct mt_id_map {
    uint32_t *ids; /* MT_NO_ID = definition lost */
    uint32_t count;
    size_t capacity;
};

struct mt_ids {
    struct mt_id_map map[MT_TABLE_COUNT]; /* the map of devices is unused: they have no ids */
    uint32_t lost[MT_TABLE_COUNT];        /* replacement of lost ids; MT_NO_ID = not created yet */
    uint32_t limit; /* maximum entries of a table: bounds the memory for hostile files */
    uint64_t text_bytes, text_limit;
    struct mt_source *source; /* of the symbols, if another thread may read them; or NULL */
};

/* Bytes of text that a reader accepts from a file of `file_bytes`. */
static inline uint64_t mt_text_limit(uint64_t file_bytes)
{
    enum { TEXT_PER_BYTE = 64, FREE_TEXT_MIB = 16, MAX_BYTES = 1 << 30 };

    return ((uint64_t)FREE_TEXT_MIB << 20) +
           (file_bytes < MAX_BYTES ? file_bytes : MAX_BYTES) * TEXT_PER_BYTE;
}

/* Empties *ids, and sets limits that no valid file of `input_bytes` exceeds. Each table may have
 * 65,536 entries, and 4 more per byte of the file. Texts may have 16 MiB, and 64 more bytes per
 * byte of the file. */
void mt_ids_init(struct mt_ids *ids, uint64_t input_bytes);
void mt_ids_release(struct mt_ids *ids);

/* Adds the block's definitions to symbols. Defining an id again is harmless. */
enum mt_status mt_ids_define(struct mt_ids *ids, struct mt_symbols *symbols,
                             struct mt_cursor definitions, const char **reason) MT_MUST_USE;

/* Sets the symbols' id for a file's id. If its definition is lost, the id is that of a placeholder
 * ("?"), and *lost is set. */
enum mt_status mt_ids_resolve(struct mt_ids *ids, struct mt_symbols *symbols, enum mt_table table,
                              uint64_t id, uint32_t *resolved, bool *lost) MT_MUST_USE;

struct mt_encoder;

struct mt_encoder *mt_encoder_new(size_t max_events); /* NULL: the host has no memory */
void mt_encoder_free(struct mt_encoder *encoder);

/* Appends a whole block: header, `definitions`, and columns of `count` events (<= max_events). If
 * count is 0, seq and time still come from events[0]. Events must be in order of seq and time, and
 * their ids must be in `symbols`, except devices. Otherwise returns MT_ERR_USAGE and sets
 * *reason. */
enum mt_status mt_event_block_encode(struct mt_encoder *encoder, const struct mt_symbols *symbols,
                                     const struct mt_event *events, size_t count,
                                     const struct mt_buf *definitions, struct mt_buf *out,
                                     const char **reason) MT_MUST_USE;

struct mt_decoder;

struct mt_decoder *mt_decoder_new(void); /* NULL: the host has no memory */
void mt_decoder_free(struct mt_decoder *decoder);

struct mt_decoded {
    struct mt_event *events; /* owned by the decoder; valid until the next block */
    size_t count;            /* less than in the header if some kinds are unknown */
    uint64_t unknown;        /* events of kinds that this version does not know */
    uint64_t invalid;        /* events that refer to lost definitions */
    uint64_t dropped;        /* sum of DROPPED events */
    bool closed;             /* contains an END event */
    uint32_t only_heap;      /* see struct mt_event_batch */
};

enum mt_status mt_event_block_decode(struct mt_decoder *decoder, const struct mt_event_block *block,
                                     struct mt_ids *ids, struct mt_symbols *symbols,
                                     struct mt_decoded *decoded, const char **reason) MT_MUST_USE;

/* Changes ids and symbols as mt_event_block_decode does, without the events: defines devices and
 * the placeholders of lost ids. */
enum mt_status mt_event_block_resolve(struct mt_decoder *decoder,
                                      const struct mt_event_block *block, struct mt_ids *ids,
                                      struct mt_symbols *symbols) MT_MUST_USE;

/* Returns whether the bytes at `start` decode to exactly these events; *why is the first
 * difference. Also returns true if memory for the check is missing. */
bool mt_block_holds(const struct mt_buf *bytes, size_t start, const struct mt_symbols *symbols,
                    const struct mt_event *events, size_t count, const char **why);

#endif
