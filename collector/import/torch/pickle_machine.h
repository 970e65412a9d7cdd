/* Internals of the pickle reader: the machine that executes opcodes. pickle.c decodes opcodes,
 * pickle_machine.c manages stack, memo, containers and the bytes. */
#ifndef MT_COLLECTOR_PICKLE_MACHINE_H
#define MT_COLLECTOR_PICKLE_MACHINE_H

#include "buf.h"
#include "feed.h"
#include "map.h"
#include "pickle_value.h"

/* Before each opcode the window has at least this many unread bytes, unless the file ends, so that
 * opcodes with a payload of at most 255 bytes need no check. */
enum { MT_PICKLE_MARGIN = MT_FEED_LEFT_BYTES };

#define MT_PICKLE_NO_SLOT    UINT32_MAX
#define MT_PICKLE_EMPTY_SLOT UINT64_MAX

/* Limits of pickle_flat.c; larger dictionaries take the general path. */
enum { MT_FLAT_FIELDS = 16, MT_FLAT_LIST_ITEMS = 512 };

/* A field of the previous dictionary as the file encodes it: its key, and both key and value if
 * they are short. */
struct mt_flat_field {
    uint64_t key, key_mask, bytes[2], masks[2];
    uint32_t key_length, length; /* length 0: the value is not known */
    uint32_t changes;            /* of the value */
    bool memoizes;
};

/* Lists that were read before, found by their bytes: most entries of a snapshot have a list of
 * frames of their own, equal to earlier ones. A program that repeats its steps also repeats its
 * lists in the same order, so the next list is usually the one that came after the same few lists
 * before. */
enum { MT_KNOWN_LISTS = 8192, MT_KNOWN_LIST_BYTES = 1 << 20, MT_LIST_HISTORIES = 1 << 14 };

struct mt_known_list {
    uint32_t generation; /* valid if it is that of mt_known_lists */
    uint32_t at, length; /* of its bytes, after EMPTY_LIST and MEMOIZE */
    struct mt_pickle_value value;
};

struct mt_known_lists {
    struct mt_known_list lists[MT_KNOWN_LISTS]; /* by the hash of the bytes */
    uint16_t next[MT_LIST_HISTORIES];           /* by the hash of the lists before */
    uint32_t generation, byte_count, history;
    unsigned char bytes[MT_KNOWN_LIST_BYTES];
};

/* A container. It owns `items` while it is being filled. After a hook has replaced the
 * container, the object only forwards references to the replacement. If no references can exist,
 * the object is reused for the next container. */
struct mt_pickle_object {
    union {
        struct mt_pickle_value *items;
        struct mt_pickle_value forward;
    } as;
    uint32_t count, capacity;
    uint32_t memo_slot; /* the first memo slot that refers to it */
    uint8_t kind;
    bool complete;  /* passed to the hook */
    bool forwarded; /* as.forward is valid */
    bool shared;    /* has more references than one stack entry and memo_slot */
};

/* A recently interned text of at most 8 bytes. */
struct mt_recent_text {
    uint64_t word;
    uint32_t id, length_plus_1; /* 0: unused */
};

struct mt_pickle {
    /* window: bytes [at, end) are unread; `offset` is the position of `window` in the input */
    struct mt_feed *feed;
    const unsigned char *window, *at, *end;
    uint64_t offset;
    bool feed_ended;
    const struct mt_pickle_hooks *hooks;
    struct mt_error *error;
    uint64_t opcode_offset; /* of the current opcode */

    struct mt_pickle_value *stack;
    size_t depth, stack_capacity;
    uint32_t *marks; /* stack depths */
    size_t mark_count, mark_capacity;

    uint64_t *memo; /* packed values, see pickle_machine.c */
    size_t memo_count, memo_capacity;
    struct mt_pickle_value *boxed; /* memoized values that do not fit in 56 bits */
    size_t boxed_count, boxed_capacity;

    struct mt_pickle_object *objects;
    uint32_t object_count, object_capacity;
    uint32_t *unused; /* objects that can be reused */
    size_t unused_count, unused_capacity;

    uint64_t memory_bytes; /* of the arrays above and of the items of containers */

    struct mt_strings strings;
    struct mt_recent_text recent_texts[64];
    struct mt_buf scratch; /* texts that do not fit in the window */

    /* for pickle_flat.c: keys and items of the previous dictionary */
    struct mt_flat_field flat_fields[MT_FLAT_FIELDS];
    size_t flat_key_count;
    /* NULL until the first list, if the hook does not allow it, or without memory */
    struct mt_known_lists *known_lists;
    uint64_t shape; /* changes with the keys */
    size_t shape_items;
    struct mt_pickle_value flat_items[2 * MT_FLAT_FIELDS];
    struct mt_pickle_value flat_list[MT_FLAT_LIST_ITEMS];
};

/* Makes at least `count` (<= MT_PICKLE_MARGIN) bytes available in [at, end), unless the input has
 * fewer. Moves the window. */
enum mt_status mt_pickle_window_fill(struct mt_pickle *p, size_t count) MT_MUST_USE;

/* Returns the next `length` bytes, in the window or copied to p->scratch. Fails if the input has
 * fewer. Valid until the next call. */
enum mt_status mt_pickle_window_take_far(struct mt_pickle *p, uint64_t length,
                                         const unsigned char **bytes) MT_MUST_USE;

static inline enum mt_status mt_pickle_window_take(struct mt_pickle *p, uint64_t length,
                                                   const unsigned char **bytes)
{
    if (length > (uint64_t)(p->end - p->at))
        return mt_pickle_window_take_far(p, length, bytes);
    *bytes = p->at;
    p->at += length;
    return MT_OK;
}

/* Skips `length` bytes. */
enum mt_status mt_pickle_window_skip(struct mt_pickle *p, uint64_t length) MT_MUST_USE;

/* Returns the bytes up to the next newline, which is consumed but not included. */
enum mt_status mt_pickle_window_line(struct mt_pickle *p, const unsigned char **line,
                                     size_t *length) MT_MUST_USE;

static inline uint64_t mt_pickle_window_offset(const struct mt_pickle *p)
{
    return p->offset + (uint64_t)(p->at - p->window);
}

/* Memo words.
 *
 * A memo word packs a value into 64 bits: a real pickle memoizes a million small values and never
 * looks most of them up.
 *
 *      63      56 55      48 47                    0
 *     +----------+----------+-----------------------+
 *     |   kind   |   host   |         bits          |   kind BOXED: bits is an
 *     +----------+----------+-----------------------+   index into p->boxed */
enum { MT_PICKLE_BOXED = 0xFE, MT_MEMO_BITS = 48 };

/* Returns the word of a value whose bits fit. */
static inline uint64_t mt_memo_word(struct mt_pickle_value value)
{
    return (uint64_t)value.kind << 56 | (uint64_t)value.host << MT_MEMO_BITS | value.bits;
}

static inline struct mt_pickle_value mt_memo_value(uint64_t word)
{
    return (struct mt_pickle_value){word & ((UINT64_C(1) << MT_MEMO_BITS) - 1),
                                    (uint8_t)(word >> 56), (uint8_t)(word >> MT_MEMO_BITS)};
}

static inline bool mt_is_container(struct mt_pickle_value value)
{
    return value.kind >= MT_PICKLE_LIST && value.kind <= MT_PICKLE_DICT;
}

/* Returns false for empty slots, boxed values and containers, which need the general path. */
static inline bool mt_memo_simple(uint64_t word, struct mt_pickle_value *value)
{
    *value = mt_memo_value(word);
    return value->kind <= MT_PICKLE_HOST && !mt_is_container(*value);
}

/* Reports an error at the current opcode. */
enum mt_status mt_pickle_damaged(struct mt_pickle *p, const char *what) MT_MUST_USE;
enum mt_status mt_pickle_no_memory(struct mt_pickle *p) MT_MUST_USE;

enum mt_status mt_machine_grow_stack(struct mt_pickle *p) MT_MUST_USE;

static inline enum mt_status mt_machine_push(struct mt_pickle *p, uint8_t kind, uint64_t bits)
{
    if (p->depth == p->stack_capacity) {
        enum mt_status status = mt_machine_grow_stack(p);
        if (status != MT_OK)
            return status;
    }
    p->stack[p->depth++] = (struct mt_pickle_value){bits, kind, 0};
    return MT_OK;
}

enum mt_status mt_machine_mark(struct mt_pickle *p) MT_MUST_USE;

/* Pops the last mark. *first is its stack depth; at least `below` values must be under it. */
enum mt_status mt_machine_unmark(struct mt_pickle *p, size_t below, size_t *first) MT_MUST_USE;

enum mt_status mt_machine_put(struct mt_pickle *p, uint64_t slot) MT_MUST_USE;
enum mt_status mt_machine_get(struct mt_pickle *p, uint64_t slot) MT_MUST_USE;
enum mt_status mt_machine_dup(struct mt_pickle *p) MT_MUST_USE;

/* Grows the memo to `slots` slots. */
enum mt_status mt_machine_grow_memo(struct mt_pickle *p, size_t slots) MT_MUST_USE;

/* Returns the id of a text. */
enum mt_status mt_machine_intern(struct mt_pickle *p, const unsigned char *bytes, size_t length,
                                 uint32_t *id) MT_MUST_USE;

/* Interns a text and pushes its value. */
enum mt_status mt_machine_text(struct mt_pickle *p, uint8_t kind, const unsigned char *bytes,
                               size_t length) MT_MUST_USE;

enum mt_status mt_machine_open(struct mt_pickle *p, uint8_t kind) MT_MUST_USE;

/* Moves stack[first..depth) into a new container, which is pushed in their place. */
enum mt_status mt_machine_build(struct mt_pickle *p, uint8_t kind, size_t first) MT_MUST_USE;

/* Adds stack[first..depth) to the container below them, which must have this `kind`. `whole` is a
 * hint that the opcode usually adds all items of the container. */
enum mt_status mt_machine_extend(struct mt_pickle *p, uint8_t kind, size_t first,
                                 bool whole) MT_MUST_USE;

/* Completes a value that leaves the stack. A container is passed to the hook, which may replace
 * *value. */
enum mt_status mt_machine_complete(struct mt_pickle *p, struct mt_pickle_value *value) MT_MUST_USE;

/* Call after a memo slot got another value: keys and lists may refer to it. */
void mt_flat_forget(struct mt_pickle *p);

/* Call right after EMPTY_DICT, with a hook. Reads dictionaries of the common shape and pushes the
 * hook's results. Sets *done to false if the last EMPTY_DICT has another shape and is unread. */
enum mt_status mt_flat_dictionaries(struct mt_pickle *p, bool *done) MT_MUST_USE;

#endif
