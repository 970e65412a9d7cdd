/* speed only: reads whole dictionaries without inner dictionaries.
 *
 * Nine tenths of a snapshot are dictionaries of one shape (protocol 4):
 *
 *     } MEMOIZE ( GET key value  GET key value ... u
 *
 * A value is a number, a pair of numbers, a text, a memoized value, or a list of memoized values.
 * This file reads such a dictionary at once, without the stack and without a container, and passes
 * its items to the hook. Most fields have the bytes of the same field of the previous dictionary,
 * or a list that was read before; their bytes are compared, not parsed. A dictionary of another
 * shape, or near the end of the window, is left to the ordinary opcodes: nothing has changed until
 * then, so the result is the same. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pickle_machine.h"
#include "pickle_opcodes.h"

/* Upper bound for the bytes of one field: a key, and a list whose items and memo operations have 5
 * bytes. */
enum { MAX_FIELD_BYTES = 5 + 8 + 5 * (MT_FLAT_LIST_ITEMS + 2) };

/* A value that changed more often is not expected to stay the same: its bytes are not kept. */
enum { MAX_CHANGES = 16 };

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

    *sound = length <= UINT8_MAX;
    if (!*sound)
        return MT_OK;
    enum mt_status status = mt_machine_intern(p, flat->at + header, length, &id);
    flat->at += header + length;
    *value = (struct mt_pickle_value){id, MT_PICKLE_TEXT, 0};
    *sound = take_slot(p, flat, &slot);
    if (slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(*value);
    return status;
}

static void forget_lists(struct mt_known_lists *known)
{
    known->byte_count = 0;
    if (++known->generation == 0) { /* after 2^32 times: no list may keep an old number */
        memset(known->lists, 0, sizeof known->lists);
        known->generation = 1;
    }
}

void mt_flat_forget(struct mt_pickle *p)
{
    p->flat_key_count = 0;
    if (p->known_lists && p->known_lists->byte_count)
        forget_lists(p->known_lists);
}

/* Adds a list to the history, whose hash depends on the latest four or five lists. */
static inline void note_list(struct mt_known_lists *known, uint32_t place)
{
    known->history = (known->history << 3 ^ place) % MT_LIST_HISTORIES;
}

static inline bool is_known_list(const struct mt_known_lists *known, uint32_t place,
                                 const unsigned char *bytes)
{
    const struct mt_known_list *list = &known->lists[place];

    return list->generation == known->generation &&
           memcmp(bytes, known->bytes + list->at, list->length) == 0;
}

/* The list that is expected. The bytes of a list show where it ends. */
static inline bool take_next_list(struct mt_pickle *p, struct flat *flat,
                                  struct mt_pickle_value *value)
{
    struct mt_known_lists *known = p->known_lists;

    if (!known)
        return false;
    uint32_t next = known->next[known->history];
    if (!is_known_list(known, next, flat->at))
        return false;
    note_list(known, next);
    flat->at += known->lists[next].length;
    *value = known->lists[next].value;
    return true;
}

/* Finds a list by the hash of its bytes; *place is where it belongs. */
static bool find_list(struct mt_known_lists *known, const unsigned char *bytes, size_t length,
                      uint32_t *place)
{
    *place = (uint32_t)mt_hash_bytes((const char *)bytes, length) % MT_KNOWN_LISTS;
    known->next[known->history] = (uint16_t)*place;
    note_list(known, *place);
    return known->lists[*place].length == length && is_known_list(known, *place, bytes);
}

static void know_list(struct mt_known_lists *known, struct mt_known_list *list,
                      const unsigned char *bytes, size_t length)
{
    if (length > MT_KNOWN_LIST_BYTES - known->byte_count)
        forget_lists(known);
    memcpy(known->bytes + known->byte_count, bytes, length);
    list->generation = known->generation;
    list->at = known->byte_count;
    list->length = (uint32_t)length;
    known->byte_count += (uint32_t)length;
}

/* Nothing, or GET a, or ( GET GET ... e. The items are older than the dictionary. */
static bool take_items(struct mt_pickle *p, struct flat *flat, size_t *count)
{
    struct flat ahead = {flat->at, p->memo_count};

    *count = 0;
    if (*ahead.at != OP_MARK) {
        if (take_get(p, &ahead, &p->flat_list[0]) && *ahead.at == OP_APPEND) {
            *count = 1;
            flat->at = ahead.at + 1;
        }
        return true;
    }
    for (ahead.at++; *ahead.at != OP_APPENDS; ++*count)
        if (*count == MT_FLAT_LIST_ITEMS || !take_get(p, &ahead, &p->flat_list[*count]))
            return false;
    flat->at = ahead.at + 1;
    return true;
}

/* Returns NULL if the hook does not allow it, or if there is no memory: the result is the same. */
static struct mt_known_lists *lists_of(struct mt_pickle *p)
{
    if (!p->known_lists && p->hooks->interchangeable) {
        p->known_lists = calloc(1, sizeof *p->known_lists);
        if (p->known_lists)
            p->known_lists->generation = 1;
    }
    return p->known_lists;
}

static enum mt_status take_other_list(struct mt_pickle *p, struct flat *flat,
                                      struct mt_pickle_value *value, bool *sound)
{
    const unsigned char *begin = flat->at;
    size_t count;
    uint32_t place = 0;

    *sound = take_items(p, flat, &count);
    if (!*sound)
        return MT_OK;
    size_t length = (size_t)(flat->at - begin);
    struct mt_known_lists *known = length ? lists_of(p) : NULL;
    if (known && find_list(known, begin, length, &place)) {
        *value = known->lists[place].value;
        return MT_OK;
    }
    enum mt_status status =
        p->hooks->complete(p->hooks->context, p, p->flat_list, count, value, p->error);
    *sound = value->kind == MT_PICKLE_HOST;
    if (known && *sound && p->hooks->interchangeable >> value->host & 1) {
        know_list(known, &known->lists[place], begin, length);
        known->lists[place].value = *value;
    }
    return status;
}

/* ] MEMOIZE items */
static enum mt_status take_list(struct mt_pickle *p, struct flat *flat,
                                struct mt_pickle_value *value, bool *sound)
{
    enum mt_status status = MT_OK;
    uint32_t slot;

    flat->at++;
    *value = (struct mt_pickle_value){0, MT_PICKLE_LIST, 0};
    *sound = take_slot(p, flat, &slot);
    if (*sound && !take_next_list(p, flat, value))
        status = take_other_list(p, flat, value, sound);
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

    flat->at += 5;
    *value = (struct mt_pickle_value){0, MT_PICKLE_TUPLE, 0};
    enum mt_status status = p->hooks->complete(p->hooks->context, p, items, 2, value, p->error);
    *sound = value->kind == MT_PICKLE_HOST && take_slot(p, flat, &slot);
    if (*sound && slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(*value);
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
    case OP_SHORT_BINUNICODE: return take_text(p, flat, 2, at[1], value, sound);
    case OP_BINUNICODE: return take_text(p, flat, 5, load_u32(at + 1), value, sound);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        *value = (struct mt_pickle_value){*at == OP_NEWTRUE, MT_PICKLE_BOOL, 0};
        flat->at++;
        return MT_OK;
    default: *sound = false; return MT_OK;
    }
}

static inline bool is_known_key(const struct mt_flat_field *known, const unsigned char *at)
{
    return ((load_u64(at) ^ known->key) & known->key_mask) == 0;
}

/* Keys usually have the same order and the same bytes as in the previous dictionary, so they are
 * already known. */
static bool take_key(struct mt_pickle *p, struct flat *flat, size_t field)
{
    struct mt_flat_field *known = &p->flat_fields[field];
    const unsigned char *begin = flat->at;

    if (field < p->flat_key_count && is_known_key(known, begin)) {
        flat->at += known->key_length;
        return true;
    }
    p->flat_key_count = field;
    p->shape++;
    if (!take_get(p, flat, &p->flat_items[2 * field]) ||
        p->flat_items[2 * field].kind != MT_PICKLE_TEXT)
        return false;
    *known = (struct mt_flat_field){.key_length = (uint32_t)(flat->at - begin)};
    known->key_mask = (UINT64_C(1) << 8 * known->key_length) - 1;
    known->key = load_u64(begin) & known->key_mask;
    p->flat_key_count = field + 1;
    return true;
}

static uint64_t mask_of(size_t length)
{
    return length >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * length) - 1;
}

/* Remembers the bytes of a field, if the same bytes always have the same effect. A memo operation
 * must be MEMOIZE, which does not name its slot. */
static void learn_field(struct mt_pickle *p, size_t field, const unsigned char *begin,
                        size_t length, bool memoizes)
{
    struct mt_flat_field *known = &p->flat_fields[field];
    const unsigned char *value = begin + known->key_length;
    size_t text_length = known->key_length + 2u + value[1];

    if (++known->changes > MAX_CHANGES || length > 2 * sizeof known->bytes[0] ||
        p->flat_items[2 * field + 1].kind > MT_PICKLE_TEXT)
        return;
    if (memoizes && (*value != OP_SHORT_BINUNICODE || length != text_length + 1 ||
                     begin[text_length] != OP_MEMOIZE))
        return;
    known->masks[0] = mask_of(length);
    known->masks[1] = length > 8 ? mask_of(length - 8) : 0;
    known->bytes[0] = load_u64(begin) & known->masks[0];
    known->bytes[1] = load_u64(begin + 8) & known->masks[1];
    known->length = (uint32_t)length;
    known->memoizes = memoizes;
}

/* A field with the bytes of the previous dictionary: its items are already there. */
static inline bool take_same_field(struct mt_pickle *p, struct flat *flat, size_t field)
{
    const struct mt_flat_field *known = &p->flat_fields[field];

    if (!known->length || (((load_u64(flat->at) ^ known->bytes[0]) & known->masks[0]) |
                           ((load_u64(flat->at + 8) ^ known->bytes[1]) & known->masks[1])) != 0)
        return false;
    if (known->memoizes)
        p->memo[flat->memo_count++] = mt_memo_word(p->flat_items[2 * field + 1]);
    flat->at += known->length;
    return true;
}

/* ] MEMOIZE and the list that is expected */
static inline bool take_usual_list(struct mt_pickle *p, struct flat *flat,
                                   struct mt_pickle_value *value)
{
    flat->at += 2;
    if (flat->at[-1] != OP_MEMOIZE || !take_next_list(p, flat, value))
        return false;
    p->memo[flat->memo_count++] = mt_memo_word(*value);
    return true;
}

/* A field whose bytes change with each dictionary. */
static inline bool take_usual_field(struct mt_pickle *p, struct flat *flat, size_t field)
{
    struct mt_pickle_value *value = &p->flat_items[2 * field + 1];
    const unsigned char *at = flat->at + p->flat_fields[field].key_length;

    if (!is_known_key(&p->flat_fields[field], flat->at))
        return false;
    flat->at = at;
    if (*at == OP_EMPTY_LIST)
        return take_usual_list(p, flat, value);
    if (!integers[*at].is_integer)
        return take_get(p, flat, value);
    return !(at[0] == OP_BININT1 && at[2] == OP_BININT1 && at[4] == OP_TUPLE2) &&
           take_integer(flat, value);
}

/* speed only: reads fields from `field` on as long as they look like those of the previous
 * dictionary. Returns the number of the first other field, of which nothing is read. */
static size_t take_usual_fields(struct mt_pickle *p, struct flat *flat, size_t field)
{
    const unsigned char *limit = p->end - MAX_FIELD_BYTES;
    struct flat here = *flat, ahead = here;

    for (size_t count = p->flat_key_count; field < count && here.at < limit; field++) {
        if (!(p->flat_fields[field].changes > MAX_CHANGES ? take_usual_field(p, &ahead, field)
                                                          : take_same_field(p, &ahead, field)))
            break;
        here = ahead;
    }
    *flat = here;
    return field;
}

static enum mt_status take_field(struct mt_pickle *p, struct flat *flat, size_t field, bool *sound)
{
    struct flat begin = *flat;

    *sound =
        field < MT_FLAT_FIELDS && flat->at < p->end - MAX_FIELD_BYTES && take_key(p, flat, field);
    if (!*sound)
        return MT_OK;
    p->flat_fields[field].length = 0;
    enum mt_status status = take_value(p, flat, field, sound);
    if (status == MT_OK && *sound)
        learn_field(p, field, begin.at, (size_t)(flat->at - begin.at),
                    flat->memo_count > begin.memo_count);
    return status;
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
    enum mt_status status = MT_OK;
    size_t field = take_usual_fields(p, flat, 0);

    while (*flat->at != OP_SETITEMS) {
        status = take_field(p, flat, field, sound);
        if (!*sound || status != MT_OK)
            return status;
        field = take_usual_fields(p, flat, field + 1);
    }
    flat->at++;
    *count = 2 * field;
    return MT_OK;
}

static inline enum mt_status take_dictionary(struct mt_pickle *p, bool *done)
{
    struct mt_pickle_value value = {0, MT_PICKLE_DICT, 0};
    struct flat flat = {p->at, p->memo_count};
    bool sound = true;
    size_t count = 0;
    uint32_t slot;

    *done = false;
    if (p->end - p->at < MT_PICKLE_MARGIN)
        return MT_OK;
    enum mt_status status = make_room(p);
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
    value.bits = p->shape;
    status = p->hooks->complete(p->hooks->context, p, p->flat_items, count, &value, p->error);
    if (status != MT_OK || value.kind != MT_PICKLE_HOST)
        return status;
    MT_ASSERT(flat.at <= p->end && flat.memo_count <= p->memo_capacity);
    if (slot != MT_PICKLE_NO_SLOT)
        p->memo[slot] = mt_memo_word(value);
    p->memo_count = flat.memo_count;
    p->at = flat.at;
    p->stack[p->depth++] = value;
    *done = true;
    return MT_OK;
}

enum mt_status mt_flat_dictionaries(struct mt_pickle *p, bool *done)
{
    for (;;) {
        enum mt_status status = take_dictionary(p, done);

        if (!*done || p->end - p->at <= MT_PICKLE_MARGIN || *p->at != OP_EMPTY_DICT)
            return status;
        p->opcode_offset = mt_pickle_window_offset(p);
        p->at++;
    }
}
