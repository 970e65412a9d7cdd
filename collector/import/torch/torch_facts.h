/* The records of a snapshot and the keywords of its format (torch_records.h fills the records). */
#ifndef MT_COLLECTOR_TORCH_FACTS_H
#define MT_COLLECTOR_TORCH_FACTS_H

#include "pickle.h"
#include "symbols.h"

/* `kind` of entries that are not memory events; other entries use enum mt_event_kind. */
enum {
    MT_TORCH_UNKNOWN = 0,
    MT_TORCH_IGNORED = 100,
    MT_TORCH_USER_DEFINED = 101,
    MT_TORCH_ANNOTATE = 102 /* a text for the block at addr */
};

enum mt_torch_entry_flags {
    MT_TORCH_HAS_POOL = 1 << 0,    /* the entry names its pool itself */
    MT_TORCH_EMPTY_CACHE = 1 << 1, /* of a release: an explicit empty_cache begins here */
    MT_TORCH_AT_ADDRESS = 1 << 1   /* of an alloc: MT_EVENT_AT_ADDRESS or MT_EVENT_GAP */
};

/* One line of a device trace; 32 bytes, since there are millions. */
struct mt_torch_entry {
    uint64_t addr; /* oom: free bytes of the device */
    uint64_t size_bytes;
    uint64_t time_us : 52; /* widen before arithmetic */
    uint64_t kind : 7;
    uint64_t flags : 2;
    uint64_t category : 3; /* index into records.categories; 0 = none recorded */
    uint32_t stack;        /* symbols */
    uint16_t stream, pool; /* symbols */
};
#define MT_TORCH_MAX_TIME_US ((UINT64_C(1) << 52) - 1) /* reached in the year 2112 */
#define MT_TORCH_CATEGORIES  8                         /* torch.profiler has 7 */

/* Records [first .. first + count) of one kind: a list in the file, or a piece of one. Most lists
 * are one piece; a list that shares or reorders its records has several. */
struct mt_torch_range {
    size_t first, count;
    size_t next; /* index of the next piece, 0 = none */
    size_t last; /* first piece only: index of the last piece; 0 = there is one piece */
    bool taken;  /* already used by a segment or device; each list is used once */
};

enum mt_torch_block_state { MT_TORCH_INACTIVE, MT_TORCH_ALLOCATED, MT_TORCH_PENDING };

struct mt_torch_block {
    uint64_t addr; /* 0 = not recorded: the block follows the previous one */
    uint64_t size_bytes;
    uint64_t requested_bytes; /* MT_NOT_COUNTED = not recorded */
    uint32_t stack;
    uint8_t state;
};

struct mt_torch_segment {
    uint64_t addr, size_bytes;
    uint64_t allocated_bytes, active_bytes, requested_bytes; /* MT_NOT_COUNTED = not recorded */
    size_t first_block, block_count;
    uint32_t stack, stream;
    uint16_t pool, device;
    bool expandable;
};

struct mt_torch_annotation {
    uint64_t time_us;
    uint32_t name;
    uint16_t device;
    bool end;
    bool matched; /* filled by mt_torch_match_phases */
};

/* Kinds of HOST values of the pickle reader; bits: an index, unless noted. */
enum mt_torch_host {
    MT_TORCH_ENTRY = 1,
    MT_TORCH_ENTRIES, /* range: the history of one device */
    MT_TORCH_FRAME,   /* symbols: frame */
    MT_TORCH_STACK,   /* symbols: stack */
    MT_TORCH_SEGMENT,
    MT_TORCH_BLOCK,
    MT_TORCH_BLOCKS, /* range */
    MT_TORCH_HISTORY,
    MT_TORCH_ANNOTATION,
    MT_TORCH_EMPTY, /* an empty list */
    MT_TORCH_PAIR   /* two numbers of 24 bits */
};

/* Keys and keywords of the format. Each value is also the id of its text in the pickle. */
enum mt_torch_word {
    MT_WORD_ACTION,
    MT_WORD_ADDR,
    MT_WORD_SIZE,
    MT_WORD_STREAM,
    MT_WORD_TIME_US,
    MT_WORD_FRAMES,
    MT_WORD_DEVICE_FREE,
    MT_WORD_POOL_ID,
    MT_WORD_CATEGORY,
    MT_WORD_SEGMENT_POOL_ID,
    MT_WORD_DEVICE,
    MT_WORD_ADDRESS,
    MT_WORD_TOTAL_SIZE,
    MT_WORD_ALLOCATED_SIZE,
    MT_WORD_ACTIVE_SIZE,
    MT_WORD_REQUESTED_SIZE,
    MT_WORD_REAL_SIZE,
    MT_WORD_IS_EXPANDABLE,
    MT_WORD_BLOCKS,
    MT_WORD_STATE,
    MT_WORD_HISTORY,
    MT_WORD_FILENAME,
    MT_WORD_NAME,
    MT_WORD_LINE,
    MT_WORD_STAGE,
    MT_WORD_SEGMENTS,
    MT_WORD_DEVICE_TRACES,
    MT_WORD_ALLOCATOR_SETTINGS,
    MT_WORD_EXTERNAL_ANNOTATIONS,
    MT_WORD_USER_METADATA,
    MT_WORD_INTERNAL_METADATA,
    MT_WORD_FX_ORIGINAL_TRACE,
    MT_WORD_HOST_SEGMENTS,
    MT_WORD_HOST_TRACES,
    MT_WORD_ALLOC,
    MT_WORD_FREE_REQUESTED,
    MT_WORD_FREE_COMPLETED,
    MT_WORD_SEGMENT_ALLOC,
    MT_WORD_SEGMENT_FREE,
    MT_WORD_SEGMENT_MAP,
    MT_WORD_SEGMENT_UNMAP,
    MT_WORD_OOM,
    MT_WORD_SNAPSHOT,
    MT_WORD_ANNOTATE,
    MT_WORD_USER_DEFINED,
    MT_WORD_UNKNOWN,
    MT_WORD_MALLOC_WITH_ADDRESS,
    MT_WORD_ACTIVE_ALLOCATED,
    MT_WORD_ACTIVE_PENDING_FREE,
    MT_WORD_ACTIVE_AWAITING_FREE,
    MT_WORD_START,
    MT_WORD_END,
    MT_WORD_COUNT
};

extern const char *const mt_torch_words[MT_WORD_COUNT];

/* Positions of an entry's fields among the items of its dictionary. */
struct mt_torch_entry_plan {
    uint64_t shape; /* of the dictionary; 0 = none */
    uint8_t action, addr, size, stream, time_us, frames, pool, category, tag, internal;
};

/* Kinds of dictionaries in a snapshot, for reports of unused fields. */
enum mt_torch_record {
    MT_TORCH_OF_SNAPSHOT,
    MT_TORCH_OF_ENTRY,
    MT_TORCH_OF_SEGMENT,
    MT_TORCH_OF_BLOCK,
    MT_TORCH_OF_FRAME,
    MT_TORCH_OF_ANNOTATION,
    MT_TORCH_RECORD_COUNT
};

/* A field that no code reads. */
struct mt_torch_unused {
    uint64_t text; /* text id in the pickle */
    enum mt_torch_record of;
};
#define MT_TORCH_MAX_UNUSED 64

/* Growable arrays: zeroed memory is empty. */
struct mt_torch_records {
    struct mt_symbols *symbols; /* borrowed; grows */
    struct mt_torch_entry *entries;
    struct mt_torch_range *ranges;
    struct mt_torch_segment *segments;
    struct mt_torch_block *blocks;
    struct mt_torch_annotation *annotations;
    struct mt_torch_history *histories; /* private, PyTorch 2.0 */
    size_t entry_count, range_count, segment_count, block_count, annotation_count, history_count;
    size_t capacity[6]; /* private */
    /* PRIVATE: pickle text id -> string id + 1; hash of frames -> stack;
     * pair of pool numbers -> pool */
    uint32_t *string_ids;
    size_t string_id_count;
    struct mt_map stacks, pools;
    struct mt_map origins; /* text id in the pickle -> frame that it names (torch_names.c) */
    struct mt_torch_entry_plan entry_plan;
    uint64_t last_stream_handle, last_pool[2];
    uint32_t last_stream, last_pool_id;
    /* string ids of the purposes that the profiler assigns to blocks; the first is unused */
    uint32_t categories[MT_TORCH_CATEGORIES], category_count;
    /* the program's descriptions of blocks: a string id for each entry below tag_count, 0 = none */
    uint32_t *tags;
    size_t tag_count;
    struct mt_torch_unused unused[MT_TORCH_MAX_UNUSED]; /* the first ones, in order of appearance */
    size_t unused_count;
};

/* Returns integers and booleans as an unsigned number; 0 for negative and other values. */
static inline uint64_t mt_torch_number(struct mt_pickle_value value)
{
    bool negative = value.kind == MT_PICKLE_INT && (int64_t)value.bits < 0;

    return value.kind >= MT_PICKLE_BOOL && value.kind <= MT_PICKLE_UINT && !negative ? value.bits
                                                                                     : 0;
}

/* Sets *range to the records of a value if it is a list of this kind that was not taken before;
 * otherwise to an empty range. */
enum mt_status mt_torch_take(struct mt_torch_records *records, const struct mt_pickle_value *value,
                             enum mt_torch_host host, struct mt_torch_range *range) MT_MUST_USE;

#endif
