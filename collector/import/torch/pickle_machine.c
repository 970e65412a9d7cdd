/* Stack, memo and containers of the pickle machine. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "feed.h"
#include "grow.h"
#include "map.h"
#include "pickle_machine.h"
#include "pickle_value.h"
#include "util.h"

/* The input of the pickle reader: a window that slides over the bytes. */

static enum mt_status cut(struct mt_pickle *p)
{
    return mt_pickle_damaged(p, "the pickle was copied in part, or the disk was full: its last "
                                "opcode is not complete");
}

enum mt_status mt_pickle_window_fill(struct mt_pickle *p, size_t count)
{
    size_t left = (size_t)(p->end - p->at), length;
    enum mt_status status = MT_OK;

    while (status == MT_OK && left < count && !p->feed_ended) {
        p->offset += (uint64_t)(p->at - p->window);
        status = mt_feed_next(p->feed, left, &p->window, &length, p->error);
        p->at = p->window;
        p->end = p->window + length;
        p->feed_ended = length == left;
        left = length;
    }
    return status;
}

/* Skips `length` bytes, or gathers bytes that exceed the window. Allocation grows with the bytes
 * that were read, not with the claimed length. */
static enum mt_status pass(struct mt_pickle *p, uint64_t length, bool gather)
{
    while (length) {
        enum mt_status status = mt_pickle_window_fill(p, 1);

        if (status != MT_OK)
            return status;
        size_t piece = (size_t)mt_min_u64(length, (uint64_t)(p->end - p->at));
        if (!piece)
            return cut(p);
        if (gather) {
            mt_buf_add(&p->scratch, p->at, piece);
            if (p->scratch.failed)
                return mt_pickle_no_memory(p);
        }
        p->at += piece;
        length -= piece;
    }
    return MT_OK;
}

enum mt_status mt_pickle_window_take_far(struct mt_pickle *p, uint64_t length,
                                         const unsigned char **bytes)
{
    if (p->feed_ended)
        return cut(p);
    mt_buf_reset(&p->scratch);
    enum mt_status status = pass(p, length, true);
    *bytes = (const unsigned char *)p->scratch.data;
    return status;
}

enum mt_status mt_pickle_window_skip(struct mt_pickle *p, uint64_t length)
{
    return pass(p, length, false);
}

enum mt_status mt_pickle_window_line(struct mt_pickle *p, const unsigned char **line,
                                     size_t *length)
{
    mt_buf_reset(&p->scratch);
    for (;;) {
        enum mt_status status = mt_pickle_window_fill(p, 1);

        if (status != MT_OK)
            return status;
        size_t left = (size_t)(p->end - p->at);
        if (!left)
            return cut(p);
        const unsigned char *newline = memchr(p->at, '\n', left);
        mt_buf_add(&p->scratch, p->at, newline ? (size_t)(newline - p->at) : left);
        if (p->scratch.failed)
            return mt_pickle_no_memory(p);
        p->at = newline ? newline + 1 : p->end;
        if (newline)
            break;
    }
    *line = p->scratch.data ? (const unsigned char *)p->scratch.data : (const unsigned char *)"";
    *length = p->scratch.length;
    return MT_OK;
}

/* Values of a pickle take at most 128 bytes of memory per byte, so only a compressed one reaches
 * the limit. A snapshot that compresses to a hundredth takes about 100 bytes per byte of the file.
 */
enum { BATCH_ITEMS = 2000, FREE_MEMORY_BYTES = 64 << 20, MEMORY_PER_BYTE = 512 };

enum mt_status mt_pickle_damaged(struct mt_pickle *p, const char *what)
{
    return mt_fail(p->error, MT_ERR_FORMAT, p->opcode_offset, "%s", what);
}

enum mt_status mt_pickle_no_memory(struct mt_pickle *p)
{
    return mt_fail(p->error, MT_ERR_MEMORY, p->opcode_offset, "out of memory");
}

static enum mt_status count_memory(struct mt_pickle *p, size_t bytes)
{
    p->memory_bytes += bytes;
    if (p->memory_bytes <= FREE_MEMORY_BYTES ||
        (p->memory_bytes - FREE_MEMORY_BYTES) / MEMORY_PER_BYTE <= mt_feed_raw_bytes(p->feed))
        return MT_OK;
    return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset,
                   "its values take more than %d bytes of memory per byte of the compressed file",
                   MEMORY_PER_BYTE);
}

/* Doubles the array *array until it has room for `needed` entries. */
static enum mt_status grow(struct mt_pickle *p, void *array, size_t *capacity, size_t needed,
                           size_t entry_bytes)
{
    size_t before = *capacity;

    if (mt_grow(array, capacity, needed, entry_bytes) != MT_OK)
        return mt_pickle_no_memory(p);
    return count_memory(p, (*capacity - before) * entry_bytes);
}

enum mt_status mt_machine_grow_stack(struct mt_pickle *p)
{
    if (p->depth >= UINT32_MAX - 1)
        return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset, "stack is too deep");
    return grow(p, &p->stack, &p->stack_capacity, p->depth + 1, sizeof *p->stack);
}

enum mt_status mt_machine_mark(struct mt_pickle *p)
{
    if (p->mark_count == p->mark_capacity) {
        enum mt_status status =
            grow(p, &p->marks, &p->mark_capacity, p->mark_count + 1, sizeof *p->marks);
        if (status != MT_OK)
            return status;
    }
    p->marks[p->mark_count++] = (uint32_t)p->depth;
    return MT_OK;
}

enum mt_status mt_machine_unmark(struct mt_pickle *p, size_t below, size_t *first)
{
    if (!p->mark_count)
        return mt_pickle_damaged(p, "no mark on the stack");
    *first = p->marks[--p->mark_count];
    if (*first > p->depth)
        return mt_pickle_damaged(p, "values below the mark are gone");
    if (*first < below)
        return mt_pickle_damaged(p, "no container below the mark");
    return MT_OK;
}

static bool fits_memo_word(struct mt_pickle_value value)
{
    return value.bits >> MT_MEMO_BITS == 0;
}

static enum mt_status box(struct mt_pickle *p, struct mt_pickle_value value, uint64_t *word)
{
    enum mt_status status =
        grow(p, &p->boxed, &p->boxed_capacity, p->boxed_count + 1, sizeof *p->boxed);

    if (status != MT_OK)
        return status;
    p->boxed[p->boxed_count] = value;
    *word = mt_memo_word((struct mt_pickle_value){p->boxed_count++, MT_PICKLE_BOXED, 0});
    return MT_OK;
}

enum mt_status mt_machine_grow_memo(struct mt_pickle *p, size_t slots)
{
    if (slots >= MT_PICKLE_NO_SLOT)
        return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset, "too many memo slots");
    return grow(p, &p->memo, &p->memo_capacity, slots, sizeof *p->memo);
}

/* A slot number is never much larger than the number of slots in use, which is less than the number
 * of bytes read. A larger number is hostile. */
static enum mt_status make_slot(struct mt_pickle *p, uint64_t slot)
{
    enum mt_status status = MT_OK;

    if (slot > p->opcode_offset + 1024)
        return mt_pickle_damaged(p, "memo index is larger than the data before it");
    if (slot >= p->memo_capacity)
        status = mt_machine_grow_memo(p, (size_t)slot + 1);
    while (status == MT_OK && p->memo_count <= slot)
        p->memo[p->memo_count++] = MT_PICKLE_EMPTY_SLOT;
    return status;
}

enum mt_status mt_machine_put(struct mt_pickle *p, uint64_t slot)
{
    enum mt_status status = MT_OK;

    if (!p->depth)
        return mt_pickle_damaged(p, "nothing on the stack to memoize");
    struct mt_pickle_value value = p->stack[p->depth - 1];
    if (slot >= p->memo_count)
        status = make_slot(p, slot);
    else
        mt_flat_forget(p);
    if (status != MT_OK)
        return status;
    uint64_t word = mt_memo_word(value);
    if (!fits_memo_word(value) && (status = box(p, value, &word)) != MT_OK)
        return status;
    p->memo[slot] = word;
    if (mt_is_container(value)) {
        struct mt_pickle_object *object = &p->objects[value.bits];
        object->shared |= object->memo_slot != MT_PICKLE_NO_SLOT;
        object->memo_slot = (uint32_t)slot;
    }
    return MT_OK;
}

static struct mt_pickle_value unpack(const struct mt_pickle *p, uint64_t word)
{
    struct mt_pickle_value value = mt_memo_value(word);

    return value.kind == MT_PICKLE_BOXED ? p->boxed[value.bits] : value;
}

/* Adds a reference to an object that may still be replaced. */
static void share(struct mt_pickle *p, struct mt_pickle_value *value)
{
    if (mt_is_container(*value)) {
        struct mt_pickle_object *object = &p->objects[value->bits];
        if (object->forwarded)
            *value = object->as.forward;
        else
            object->shared = true;
    }
}

static enum mt_status push_value(struct mt_pickle *p, struct mt_pickle_value value)
{
    enum mt_status status = mt_machine_push(p, value.kind, value.bits);

    if (status == MT_OK)
        p->stack[p->depth - 1].host = value.host;
    return status;
}

enum mt_status mt_machine_get(struct mt_pickle *p, uint64_t slot)
{
    if (slot >= p->memo_count || p->memo[slot] == MT_PICKLE_EMPTY_SLOT)
        return mt_pickle_damaged(p, "memo index was never set");
    struct mt_pickle_value value = unpack(p, p->memo[slot]);
    share(p, &value);
    return push_value(p, value);
}

enum mt_status mt_machine_dup(struct mt_pickle *p)
{
    if (!p->depth)
        return mt_pickle_damaged(p, "nothing on the stack to duplicate");
    struct mt_pickle_value value = p->stack[p->depth - 1];
    share(p, &value);
    return push_value(p, value);
}

static enum mt_status intern(struct mt_pickle *p, const unsigned char *bytes, size_t length,
                             uint32_t *id)
{
    enum mt_status status = mt_strings_intern(&p->strings, (const char *)bytes, length, id);

    if (status == MT_ERR_MEMORY)
        return mt_pickle_no_memory(p);
    if (status != MT_OK)
        return mt_fail(p->error, status, p->opcode_offset, "a text is too long");
    return MT_OK;
}

/* speed only: the same short texts are frequent ("N/A") */
static enum mt_status intern_short(struct mt_pickle *p, const unsigned char *bytes, size_t length,
                                   uint32_t *id)
{
    uint64_t word = 0;

    memcpy(&word, bytes, length);
    struct mt_recent_text *recent =
        &p->recent_texts[(mt_hash_u64(word) + length) % MT_ARRAY_LEN(p->recent_texts)];
    if (recent->word == word && recent->length_plus_1 == length + 1) {
        *id = recent->id;
        return MT_OK;
    }
    enum mt_status status = intern(p, bytes, length, id);
    if (status == MT_OK)
        *recent = (struct mt_recent_text){word, *id, (uint32_t)length + 1};
    return status;
}

enum mt_status mt_machine_intern(struct mt_pickle *p, const unsigned char *bytes, size_t length,
                                 uint32_t *id)
{
    return length <= 8 ? intern_short(p, bytes, length, id) : intern(p, bytes, length, id);
}

enum mt_status mt_machine_text(struct mt_pickle *p, uint8_t kind, const unsigned char *bytes,
                               size_t length)
{
    uint32_t id;
    enum mt_status status = mt_machine_intern(p, bytes, length, &id);

    return status == MT_OK ? mt_machine_push(p, kind, id) : status;
}

static enum mt_status new_object(struct mt_pickle *p, uint8_t kind, uint32_t *index)
{
    if (p->unused_count) {
        *index = p->unused[--p->unused_count];
    } else {
        size_t capacity = p->object_capacity;

        if (p->object_count == UINT32_MAX / 2)
            return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset, "too many containers");
        enum mt_status status =
            grow(p, &p->objects, &capacity, (size_t)p->object_count + 1, sizeof *p->objects);
        if (status != MT_OK)
            return status;
        p->object_capacity = (uint32_t)capacity;
        *index = p->object_count++;
        memset(&p->objects[*index], 0, sizeof *p->objects);
    }
    struct mt_pickle_object *object = &p->objects[*index];
    object->count = 0;
    object->memo_slot = MT_PICKLE_NO_SLOT;
    object->kind = kind;
    object->complete = object->forwarded = object->shared = false;
    return MT_OK;
}

enum mt_status mt_machine_open(struct mt_pickle *p, uint8_t kind)
{
    uint32_t index = 0;
    enum mt_status status = new_object(p, kind, &index);

    return status == MT_OK ? mt_machine_push(p, kind, index) : status;
}

static enum mt_status add_items(struct mt_pickle *p, struct mt_pickle_object *object,
                                const struct mt_pickle_value *items, size_t count)
{
    size_t capacity = object->capacity;
    enum mt_status status;

    if (!count)
        return MT_OK;
    if (count > UINT32_MAX / 2 - object->count)
        return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset, "a container is too large");
    if (object->count + count > capacity) {
        if (!capacity) /* most containers are small and get all items at once */
            capacity = count <= 4 ? 4 : count <= 16 ? 16 : 0;
        if (!object->capacity && capacity) {
            object->as.items = malloc(capacity * sizeof *items);
            if (!object->as.items)
                return mt_pickle_no_memory(p);
            status = count_memory(p, capacity * sizeof *items);
            if (status != MT_OK)
                return status;
        } else if ((status = grow(p, &object->as.items, &capacity, object->count + count,
                                  sizeof *items)) != MT_OK) {
            return status;
        }
        object->capacity = (uint32_t)capacity;
    }
    memcpy(object->as.items + object->count, items, count * sizeof *items);
    object->count += (uint32_t)count;
    return MT_OK;
}

static enum mt_status call_hook(struct mt_pickle *p, const struct mt_pickle_value *items,
                                size_t count, struct mt_pickle_value *value)
{
    struct mt_pickle_value made = {0, value->kind, 0};
    enum mt_status status = MT_OK;

    if (p->hooks && value->kind != MT_PICKLE_SET)
        status = p->hooks->complete(p->hooks->context, p, items, count, &made, p->error);
    if (made.kind == MT_PICKLE_HOST)
        *value = made;
    return status;
}

/* The object became `value`. All references to it must refer to that. */
static enum mt_status replace_object(struct mt_pickle *p, uint32_t index,
                                     struct mt_pickle_value value)
{
    struct mt_pickle_object *object = &p->objects[index];

    if (object->memo_slot != MT_PICKLE_NO_SLOT &&
        p->memo[object->memo_slot] ==
            mt_memo_word((struct mt_pickle_value){index, object->kind, 0}))
        p->memo[object->memo_slot] = mt_memo_word(value);
    if (object->shared || object->capacity > BATCH_ITEMS) {
        free(object->as.items);
        p->memory_bytes -= object->capacity * sizeof *object->as.items;
        object->as.items = NULL;
        object->capacity = object->count = 0;
    }
    if (object->shared) {
        object->forwarded = true;
        object->as.forward = value;
        return MT_OK;
    }
    if (p->unused_count == p->unused_capacity) {
        enum mt_status status =
            grow(p, &p->unused, &p->unused_capacity, p->unused_count + 1, sizeof *p->unused);
        if (status != MT_OK)
            return status;
    }
    p->unused[p->unused_count++] = index;
    return MT_OK;
}

enum mt_status mt_machine_complete(struct mt_pickle *p, struct mt_pickle_value *value)
{
    uint32_t index = (uint32_t)value->bits;

    if (!mt_is_container(*value))
        return MT_OK;
    struct mt_pickle_object *object = &p->objects[index];
    if (object->forwarded)
        *value = object->as.forward;
    if (object->forwarded || object->complete)
        return MT_OK;
    object->complete = true;
    enum mt_status status = call_hook(p, object->as.items, object->count, value);
    if (status != MT_OK || value->kind != MT_PICKLE_HOST)
        return status;
    return replace_object(p, index, *value);
}

static enum mt_status complete_all(struct mt_pickle *p, size_t first)
{
    enum mt_status status = MT_OK;

    for (size_t i = first; i < p->depth && status == MT_OK; i++)
        if (mt_is_container(p->stack[i]))
            status = mt_machine_complete(p, &p->stack[i]);
    return status;
}

static enum mt_status check_pairs(struct mt_pickle *p, size_t first)
{
    if ((p->depth - first) % 2)
        return mt_pickle_damaged(p, "a dictionary key without a value");
    for (size_t i = first; i < p->depth; i += 2) {
        uint8_t kind = p->stack[i].kind;
        if (kind == MT_PICKLE_LIST || kind == MT_PICKLE_DICT || kind == MT_PICKLE_SET)
            return mt_pickle_damaged(p, "a dictionary key that is a container");
    }
    return MT_OK;
}

enum mt_status mt_machine_build(struct mt_pickle *p, uint8_t kind, size_t first)
{
    struct mt_pickle_value value = {0, kind, 0};
    enum mt_status status = complete_all(p, first);
    size_t count = p->depth - first;
    uint32_t index = 0;

    if (status == MT_OK && kind == MT_PICKLE_DICT)
        status = check_pairs(p, first);
    /* A tuple never changes. A list or dictionary that has items from the start is usually
     * complete, but only its first use shows that. */
    if (status == MT_OK && kind == MT_PICKLE_TUPLE)
        status = call_hook(p, p->stack ? p->stack + first : NULL, count, &value);
    if (status == MT_OK && value.kind != MT_PICKLE_HOST) {
        status = new_object(p, kind, &index);
        if (status == MT_OK)
            status = add_items(p, &p->objects[index], p->stack ? p->stack + first : NULL, count);
        if (status == MT_OK) {
            p->objects[index].complete = kind == MT_PICKLE_TUPLE || kind == MT_PICKLE_SET;
            value.bits = index;
        }
    }
    if (status != MT_OK)
        return status;
    p->depth = first;
    return push_value(p, value);
}

/* speed only: a dictionary that gets all its items at once, as from every writer, is passed to the
 * hook directly from the stack */
static enum mt_status extend_at_once(struct mt_pickle *p, size_t first, bool *done)
{
    struct mt_pickle_value *target = &p->stack[first - 1], value = *target;
    uint32_t index = (uint32_t)value.bits;
    enum mt_status status =
        call_hook(p, p->stack ? p->stack + first : NULL, p->depth - first, &value);

    *done = status == MT_OK && value.kind == MT_PICKLE_HOST;
    if (!*done)
        return status;
    *target = value;
    p->depth = first;
    return replace_object(p, index, value);
}

/* speed only: avoids a list with a million records */
static enum mt_status append_at_once(struct mt_pickle *p, size_t first, bool *done)
{
    struct mt_pickle_value *target = &p->stack[first - 1], value = *target;
    bool fresh = value.kind == MT_PICKLE_LIST;

    if (fresh && (p->objects[value.bits].count || p->objects[value.bits].complete))
        return MT_OK;
    enum mt_status status = p->hooks->append(p->hooks->context, p, p->stack + first,
                                             p->depth - first, &value, done, p->error);
    if (status != MT_OK || !*done)
        return status;
    p->depth = first;
    if (fresh)
        status = replace_object(p, (uint32_t)target->bits, value);
    *target = value;
    return status;
}

enum mt_status mt_machine_extend(struct mt_pickle *p, uint8_t kind, size_t first, bool whole)
{
    struct mt_pickle_value *target = &p->stack[first - 1];
    size_t count = p->depth - first;
    enum mt_status status = complete_all(p, first);
    bool done = false;

    if (status == MT_OK && kind == MT_PICKLE_DICT)
        status = check_pairs(p, first);
    if (status == MT_OK && whole && kind == MT_PICKLE_LIST && p->hooks && p->hooks->append &&
        !p->hooks->no_short_cuts && (target->kind == MT_PICKLE_HOST || target->kind == kind))
        status = append_at_once(p, first, &done);
    if (status != MT_OK || done)
        return status;
    if (target->kind == MT_PICKLE_HOST ||
        (mt_is_container(*target) && p->objects[target->bits].forwarded))
        return mt_pickle_damaged(p, "changes a container that is already in use");
    if (target->kind != kind)
        return mt_pickle_damaged(p, "adds items to an object that cannot hold them");
    struct mt_pickle_object *object = &p->objects[target->bits];
    if (whole && kind == MT_PICKLE_DICT && !object->count && !object->complete &&
        count < BATCH_ITEMS && p->hooks && !p->hooks->no_short_cuts)
        status = extend_at_once(p, first, &done);
    if (status != MT_OK || done)
        return status;
    status = add_items(p, object, p->stack ? p->stack + first : NULL, count);
    p->depth = first;
    return status;
}
