/* speed only: reads whole dictionaries without inner dictionaries.
 *
 * Nine tenths of a snapshot are dictionaries of one shape (protocol 4):
 *
 *     } MEMOIZE ( GET key value  GET key value ... u
 *
 * A value is a number, a pair of numbers, a text, a memoized value, or a list of memoized values.
 * This file reads such a dictionary at once, without the stack and without a container, and passes
 * its items to the hook. A dictionary of another shape, or near the end of the window, is left to
 * the ordinary opcodes: nothing has changed until then, so the result is the same. */
#include <string.h>

#include "pickle_machine.h"
#include "pickle_opcodes.h"

/* Upper bound for the bytes of one field: a key, and a list whose items and memo operations have 5
 * bytes. */
enum { MAX_FIELD_BYTES = 5 + 8 + 5 * (MT_FLAT_LIST_ITEMS + 2) };

/* State of the reader, kept in registers. */
struct flat {
    const unsigned char *at;
    size_t memo_count;
};

/* Little endian, at any address; a single instruction on little-endian hosts. */
static inline uint64_t load_u64(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint32_t load_u32(const unsigned char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

/* Skips the operation that memoizes the newest value, if there is one, and returns its slot (or
 * MT_PICKLE_NO_SLOT). False if it is not in the usual order. */
static inline bool take_slot(struct mt_pickle *p, struct flat *flat, uint32_t *slot)
{
    *slot = MT_PICKLE_NO_SLOT;
    if (*flat->at == OP_MEMOIZE) {
        flat->at++;
    } else if (*flat->at == OP_BINPUT) {
        if (flat->at[1] != flat->memo_count)
            return false;
        flat->at += 2;
    } else if (*flat->at == OP_LONG_BINPUT) {
        if (load_u32(flat->at + 1) != flat->memo_count)
            return false;
        flat->at += 5;
    } else {
        return true;
    }
    *slot = (uint32_t)flat->memo_count;
    p->memo[flat->memo_count++] = MT_PICKLE_EMPTY_SLOT;
    return true;
}

/* Returns a value from the memo, unless it is a container that may change. */
static inline bool take_get(struct mt_pickle *p, struct flat *flat, struct mt_pickle_value *value)
{
    size_t slot;

    if (*flat->at == OP_LONG_BINGET) {
        slot = load_u32(flat->at + 1);
        flat->at += 5;
    } else if (*flat->at == OP_BINGET) {
        slot = flat->at[1];
        flat->at += 2;
    } else {
        return false;
    }
    return slot < flat->memo_count && mt_memo_simple(p->memo[slot], value);
}

/* Integers differ in length from one dictionary to the next, which no branch predictor foresees, so
 * all spellings are read by the same instructions. */
struct integer_spelling {
    uint8_t is_integer, header, length, is_signed; /* LONG1: length is in the file */
};

static const struct integer_spelling integers[256] = {
    [OP_BININT1] = {1, 1, 1, 0},
    [OP_BININT2] = {1, 1, 2, 0},
    [OP_BININT] = {1, 1, 4, 1},
    [OP_LONG1] = {1, 2, 0, 1},
};

static inline bool take_integer(struct flat *flat, struct mt_pickle_value *value)
{
    const unsigned char *at = flat->at;
    struct integer_spelling spelling = integers[*at];
    size_t length = *at == OP_LONG1 ? at[1] : spelling.length;
    unsigned unused = (64 - 8 * (unsigned)length) & 63;
    uint64_t bits = load_u64(at + spelling.header) << unused;

    value->bits = spelling.is_signed ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
    value->kind = MT_PICKLE_INT;
    value->host = 0;
    flat->at = at + spelling.header + length;
    return length - 1 < 8;
}

static enum mt_status take_text(struct mt_pickle *p, struct flat *flat, size_t header,
                                size_t length, struct mt_pickle_value *value, bool *sound)
{
    uint32_t id, slot;
    enum mt_status status;

    *sound = length <= UINT8_MAX;
    if (!*sound)
        return MT_OK;
    status = mt_machine_intern(p, flat->at + header, length, &id);
    flat->at += header + length;
    *value = (struct mt_pickle_value){id, MT_PICKLE_TEXT, 0};
    *sound = take_slot(p, flat, &slot);
    if (slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(*value);
    return status;
}

/* ] MEMOIZE, then nothing, or GET a, or ( GET GET ... e */
static enum mt_status take_list(struct mt_pickle *p, struct flat *flat,
                                struct mt_pickle_value *value, bool *sound)
{
    struct mt_pickle_value *items = p->flat_list;
    size_t count = 0;
    uint32_t slot;
    enum mt_status status;

    flat->at++;
    *value = (struct mt_pickle_value){0, MT_PICKLE_LIST, 0};
    *sound = take_slot(p, flat, &slot);
    if (*sound && *flat->at == OP_MARK) {
        flat->at++;
        while (*sound && *flat->at != OP_APPENDS) {
            *sound = count < MT_FLAT_LIST_ITEMS && take_get(p, flat, &items[count]);
            count++;
        }
        flat->at++;
    } else if (*sound) {
        struct flat ahead = *flat;
        if (take_get(p, &ahead, &items[0]) && *ahead.at == OP_APPEND) {
            count = 1;
            flat->at = ahead.at + 1;
        }
    }
    if (!*sound)
        return MT_OK;
    status = p->hooks->complete(p->hooks->context, p, items, count, value, p->error);
    *sound = value->kind == MT_PICKLE_HOST;
    if (*sound && slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(*value);
    return status;
}

/* Two small numbers in a tuple: the id of a pool in newer snapshots. */
static enum mt_status take_pair(struct mt_pickle *p, struct flat *flat,
                                struct mt_pickle_value *value, bool *sound)
{
    struct mt_pickle_value items[2] = {{flat->at[1], MT_PICKLE_INT, 0},
                                       {flat->at[3], MT_PICKLE_INT, 0}};
    uint32_t slot;
    enum mt_status status;

    flat->at += 5;
    *value = (struct mt_pickle_value){0, MT_PICKLE_TUPLE, 0};
    status = p->hooks->complete(p->hooks->context, p, items, 2, value, p->error);
    *sound = value->kind == MT_PICKLE_HOST && take_slot(p, flat, &slot);
    if (*sound && slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(*value);
    return status;
}

/* The same short text as in this field of the previous dictionary, memoized again. Most writers do
 * this with equal texts that are different objects. */
static inline bool take_known_text(struct mt_pickle *p, struct flat *flat,
                                   const struct mt_flat_text *known, struct mt_pickle_value *value)
{
    if (!known->mask || ((load_u64(flat->at) ^ known->bytes) & known->mask) != 0)
        return false;
    flat->at += known->length;
    *value = known->value;
    p->memo[flat->memo_count++] = mt_memo_word(*value);
    return true;
}

/* Texts of at most 5 bytes: opcode, length, text and MEMOIZE fit in a word. */
static enum mt_status take_short_text(struct mt_pickle *p, struct flat *flat,
                                      struct mt_flat_text *known, struct mt_pickle_value *value,
                                      bool *sound)
{
    const unsigned char *begin = flat->at;
    size_t length = begin[1] + 3u;
    enum mt_status status;

    if (take_known_text(p, flat, known, value))
        return MT_OK;
    status = take_text(p, flat, 2, begin[1], value, sound);
    known->mask = 0;
    if (status == MT_OK && *sound && length <= 8 && begin[length - 1] == OP_MEMOIZE) {
        known->mask = UINT64_MAX >> (64 - 8 * length);
        known->bytes = load_u64(begin) & known->mask;
        known->length = (uint32_t)length;
        known->value = *value;
    }
    return status;
}

static inline enum mt_status take_value(struct mt_pickle *p, struct flat *flat, size_t field,
                                        bool *sound)
{
    struct mt_pickle_value *value = &p->flat_items[2 * field + 1];
    const unsigned char *at = flat->at;

    if (integers[*at].is_integer) {
        if (at[0] == OP_BININT1 && at[2] == OP_BININT1 && at[4] == OP_TUPLE2)
            return take_pair(p, flat, value, sound);
        *sound = take_integer(flat, value);
        return MT_OK;
    }
    switch (*at) {
    case OP_BINGET:
    case OP_LONG_BINGET: *sound = take_get(p, flat, value); return MT_OK;
    case OP_EMPTY_LIST: return take_list(p, flat, value, sound);
    case OP_SHORT_BINUNICODE: return take_short_text(p, flat, &p->flat_texts[field], value, sound);
    case OP_BINUNICODE: return take_text(p, flat, 5, load_u32(at + 1), value, sound);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        *value = (struct mt_pickle_value){*at == OP_NEWTRUE, MT_PICKLE_BOOL, 0};
        flat->at++;
        return MT_OK;
    default: *sound = false; return MT_OK;
    }
}

/* Keys usually have the same order and the same bytes as in the previous dictionary, so they are
 * already known. */
static inline bool take_key(struct mt_pickle *p, struct flat *flat, size_t field)
{
    struct mt_flat_key *key = &p->flat_keys[field];
    const unsigned char *begin = flat->at;

    if (field < p->flat_key_count && ((load_u64(begin) ^ key->bytes) & key->mask) == 0) {
        flat->at += key->length;
        return true;
    }
    p->flat_key_count = field;
    p->shape++;
    if (!take_get(p, flat, &p->flat_items[2 * field]) ||
        p->flat_items[2 * field].kind != MT_PICKLE_TEXT)
        return false;
    key->length = (uint32_t)(flat->at - begin);
    key->mask = (UINT64_C(1) << 8 * key->length) - 1;
    key->bytes = load_u64(begin) & key->mask;
    p->flat_key_count = field + 1;
    return true;
}

static enum mt_status make_room(struct mt_pickle *p)
{
    size_t slots = p->memo_count + 2 * MT_FLAT_FIELDS + 1;

    if (slots > p->memo_capacity) {
        enum mt_status status = mt_machine_grow_memo(p, slots);
        if (status != MT_OK)
            return status;
    }
    return p->depth == p->stack_capacity ? mt_machine_grow_stack(p) : MT_OK;
}

static enum mt_status take_fields(struct mt_pickle *p, struct flat *flat, size_t *count,
                                  bool *sound)
{
    const unsigned char *limit = p->end - MAX_FIELD_BYTES;
    enum mt_status status = MT_OK;
    size_t field = 0;

    while (*flat->at != OP_SETITEMS) {
        *sound = field < MT_FLAT_FIELDS && flat->at < limit && take_key(p, flat, field);
        if (*sound)
            status = take_value(p, flat, field, sound);
        if (!*sound || status != MT_OK)
            return status;
        field++;
    }
    flat->at++;
    *count = 2 * field;
    return MT_OK;
}

enum mt_status mt_flat_dictionary(struct mt_pickle *p, bool *done)
{
    struct mt_pickle_value value = {0, MT_PICKLE_DICT, 0};
    struct flat flat = {p->at, p->memo_count};
    bool sound = true;
    size_t count = 0;
    uint32_t slot;
    enum mt_status status;

    *done = false;
    if (p->end - p->at < MT_PICKLE_MARGIN)
        return MT_OK;
    status = make_room(p);
    if (status != MT_OK || !take_slot(p, &flat, &slot) || *flat.at != OP_MARK)
        return status;
    flat.at++;
    status = take_fields(p, &flat, &count, &sound);
    if (status != MT_OK || !sound || !count)
        return status;
    if (count != p->shape_items) {
        p->shape_items = count;
        p->shape++;
    }
    p->shape_holds = true;
    status = p->hooks->complete(p->hooks->context, p, p->flat_items, count, &value, p->error);
    p->shape_holds = false;
    if (status != MT_OK || value.kind != MT_PICKLE_HOST)
        return status;
    if (slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(value);
    p->memo_count = flat.memo_count;
    p->at = flat.at;
    p->stack[p->depth++] = value;
    *done = true;
    return MT_OK;
}
