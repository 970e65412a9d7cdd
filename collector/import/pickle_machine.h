/* Inside of the pickle reader: the machine that opcodes work on. pickle.c
 * decodes opcodes, pickle_machine.c keeps stack, memo and containers,
 * pickle_window.c the bytes. */
#ifndef MT_COLLECTOR_PICKLE_MACHINE_H
#define MT_COLLECTOR_PICKLE_MACHINE_H

#include "buf.h"
#include "map.h"
#include "feed.h"
#include "pickle_value.h"

/* Bytes that are in memory at once, and how many of them a short opcode (one
 * with at most 255 bytes of payload) can rely on unless the file ends. */
enum { MT_PICKLE_WINDOW = 256 * 1024, MT_PICKLE_MARGIN = 16 * 1024 };

#define MT_PICKLE_NO_SLOT    UINT32_MAX
#define MT_PICKLE_EMPTY_SLOT UINT64_MAX

/* Limits of what pickle_flat.c takes on. */
enum { MT_FLAT_FIELDS = 16, MT_FLAT_LIST_ITEMS = 512 };

/* How a key was spelled: its first `length` bytes. */
struct mt_flat_key {
    uint64_t bytes, mask;
    uint32_t length;
};

/* A container. While it is being filled `items` are its own; once a hook has
 * replaced it, it is only a forward for those who still refer to it, or, if
 * nobody can, it is used again for the next container. */
struct mt_pickle_object {
    union {
        struct mt_pickle_value *items;
        struct mt_pickle_value forward;
    } as;
    uint32_t count, capacity;
    uint32_t memo_slot; /* where it was memoised first */
    uint8_t kind;
    bool complete;  /* the hook has seen it */
    bool forwarded; /* as.forward holds */
    bool shared;    /* others than one stack entry and memo_slot refer to it */
};

/* How a text was spelled, memoise opcode included: its first `length` bytes. */
struct mt_flat_text {
    uint64_t bytes, mask; /* mask 0: none yet */
    uint32_t length;
    struct mt_pickle_value value;
};

/* A text of at most 8 bytes that was interned lately. */
struct mt_recent_text {
    uint64_t word;
    uint32_t id, length_plus_1; /* 0: unused */
};

struct mt_pickle {
    /* window: bytes [at, end) are unread; `offset` is where `window` starts */
    struct mt_feed *feed;
    unsigned char *window;
    const unsigned char *at, *end;
    uint64_t offset;
    bool feed_ended;
    const struct mt_pickle_hooks *hooks;
    struct mt_error *error;
    uint64_t opcode_offset; /* of the opcode that is being executed */

    struct mt_pickle_value *stack;
    size_t depth, stack_capacity;
    uint32_t *marks; /* stack depths */
    size_t mark_count, mark_capacity;

    uint64_t *memo; /* packed values, see pickle_machine.c */
    size_t memo_count, memo_capacity;
    struct mt_pickle_value *boxed; /* memoised values that 56 bits do not hold */
    size_t boxed_count, boxed_capacity;

    struct mt_pickle_object *objects;
    uint32_t object_count, object_capacity;
    uint32_t *unused; /* objects to be used again */
    size_t unused_count, unused_capacity;

    struct mt_strings strings;
    struct mt_recent_text recent_texts[64];
    struct mt_buf scratch; /* texts that do not fit in the window */

    /* of pickle_flat.c: keys and items of the dictionary before */
    struct mt_flat_key flat_keys[MT_FLAT_FIELDS];
    size_t flat_key_count;
    struct mt_flat_text flat_texts[MT_FLAT_FIELDS];
    uint64_t shape; /* changes with the keys */
    size_t shape_items;
    bool shape_holds; /* while a hook sees flat_items */
    struct mt_pickle_value flat_items[2 * MT_FLAT_FIELDS];
    struct mt_pickle_value flat_list[MT_FLAT_LIST_ITEMS];
};

/* Brings at least `count` (<= MT_PICKLE_MARGIN) bytes into [at, end) if the
 * input has as many. Moves the window. */
enum mt_status mt_window_fill(struct mt_pickle *p, size_t count) MT_MUST_USE;

/* The next `length` bytes, from the window or gathered in p->scratch; an error
 * if the input ends before. Valid until the next call. */
enum mt_status mt_window_take_far(struct mt_pickle *p, uint64_t length,
                                  const unsigned char **bytes) MT_MUST_USE;

static inline enum mt_status mt_window_take(struct mt_pickle *p, uint64_t length,
                                            const unsigned char **bytes)
{
    if (length > (uint64_t)(p->end - p->at))
        return mt_window_take_far(p, length, bytes);
    *bytes = p->at;
    p->at += length;
    return MT_OK;
}

/* Moves on without looking. */
enum mt_status mt_window_skip(struct mt_pickle *p, uint64_t length) MT_MUST_USE;

/* The bytes up to the next newline, which is consumed but not part of it. */
enum mt_status mt_window_line(struct mt_pickle *p, const unsigned char **line,
                              size_t *length) MT_MUST_USE;

static inline uint64_t mt_window_offset(const struct mt_pickle *p)
{
    return p->offset + (uint64_t)(p->at - p->window);
}

/* Memo words.
 *
 * A memo word packs a value into 64 bits, since a real pickle memoises a
 * million small things and looks most of them up never:
 *
 *      63      56 55      48 47                    0
 *     +----------+----------+-----------------------+
 *     |   kind   |   host   |         bits          |   kind BOXED: bits is an
 *     +----------+----------+-----------------------+   index into p->boxed
 */
enum { MT_PICKLE_BOXED = 0xFE, MT_MEMO_BITS = 48 };

/* Of a value whose bits fit. */
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

/* False for empty slots, boxed values and containers, which need more care. */
static inline bool mt_memo_simple(uint64_t word, struct mt_pickle_value *value)
{
    *value = mt_memo_value(word);
    return value->kind <= MT_PICKLE_HOST && !mt_is_container(*value);
}

/* An error at the opcode that is being executed. */
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
/* Takes the last mark off; *first = its stack depth, `below` = how many values
 * must lie under it. */
enum mt_status mt_machine_unmark(struct mt_pickle *p, size_t below, size_t *first) MT_MUST_USE;

enum mt_status mt_machine_put(struct mt_pickle *p, uint64_t slot) MT_MUST_USE;
enum mt_status mt_machine_get(struct mt_pickle *p, uint64_t slot) MT_MUST_USE;
enum mt_status mt_machine_dup(struct mt_pickle *p) MT_MUST_USE;

/* Makes room for `slots` memo slots. */
enum mt_status mt_machine_grow_memo(struct mt_pickle *p, size_t slots) MT_MUST_USE;

/* Id of a text. */
enum mt_status mt_machine_intern(struct mt_pickle *p, const unsigned char *bytes, size_t length,
                                 uint32_t *id) MT_MUST_USE;

/* Interns and pushes. */
enum mt_status mt_machine_text(struct mt_pickle *p, uint8_t kind, const unsigned char *bytes,
                               size_t length) MT_MUST_USE;

enum mt_status mt_machine_open(struct mt_pickle *p, uint8_t kind) MT_MUST_USE;

/* Puts stack[first..depth) into a new container that takes their place. */
enum mt_status mt_machine_build(struct mt_pickle *p, uint8_t kind, size_t first) MT_MUST_USE;

/* Adds stack[first..depth) to the container below them. `kind` is what it must
 * be; `whole`: the opcode adds all that there is, usually. */
enum mt_status mt_machine_extend(struct mt_pickle *p, uint8_t kind, size_t first,
                                 bool whole) MT_MUST_USE;

/* Completes a value that leaves the stack: containers go through the hook. */
enum mt_status mt_machine_complete(struct mt_pickle *p, struct mt_pickle_value *value) MT_MUST_USE;

/* Just after EMPTY_DICT: reads the whole dictionary if it is of the common
 * shape, and pushes what the hook makes of it; else *done is false and nothing
 * has changed. Needs a hook. */
enum mt_status mt_flat_dictionary(struct mt_pickle *p, bool *done) MT_MUST_USE;

#endif
