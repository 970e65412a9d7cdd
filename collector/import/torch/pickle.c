/* Instructions of the pickle machine. Each opcode is one line or a short function; the state that
 * they change is in pickle_machine.c. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

#include "pickle_machine.h"
#include "pickle_numbers.h"
#include "pickle_opcodes.h"

enum { HIGHEST_PROTOCOL = 5 };

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t value = 0;

    while (count--)
        value = value << 8 | bytes[count];
    return value;
}

/* The fixed operand of an opcode: `count` (<= 8) bytes, little endian. */
static enum mt_status operand(struct mt_pickle *p, size_t count, uint64_t *value)
{
    const unsigned char *bytes;
    enum mt_status status = mt_pickle_window_take(p, count, &bytes);

    if (status == MT_OK)
        *value = little_endian(bytes, count);
    return status;
}

/* Opcodes that import, call or access anything outside of the file. */
static const char *refused_name(unsigned opcode)
{
    switch (opcode) {
    case OP_PERSID: return "PERSID";
    case OP_BINPERSID: return "BINPERSID";
    case OP_REDUCE: return "REDUCE";
    case OP_BUILD: return "BUILD";
    case OP_GLOBAL: return "GLOBAL";
    case OP_INST: return "INST";
    case OP_OBJ: return "OBJ";
    case OP_NEWOBJ: return "NEWOBJ";
    case OP_NEWOBJ_EX: return "NEWOBJ_EX";
    case OP_STACK_GLOBAL: return "STACK_GLOBAL";
    case OP_EXT1: return "EXT1";
    case OP_EXT2: return "EXT2";
    case OP_EXT4: return "EXT4";
    case OP_NEXT_BUFFER: return "NEXT_BUFFER";
    case OP_READONLY_BUFFER: return "READONLY_BUFFER";
    default: return NULL;
    }
}

static enum mt_status refuse(struct mt_pickle *p, unsigned opcode)
{
    const char *name = refused_name(opcode);

    if (name)
        return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset,
                       "refused opcode %s: only plain data is read, never code", name);
    return mt_fail(p->error, MT_ERR_FORMAT, p->opcode_offset, "unknown opcode 0x%02x", opcode);
}

static enum mt_status run_proto(struct mt_pickle *p)
{
    uint64_t protocol;
    enum mt_status status = operand(p, 1, &protocol);

    if (status == MT_OK && protocol > HIGHEST_PROTOCOL)
        return mt_fail(p->error, MT_ERR_UNSUPPORTED, p->opcode_offset, "pickle protocol %u",
                       (unsigned)protocol);
    return status;
}

static enum mt_status push_number(struct mt_pickle *p, struct mt_pickle_value value)
{
    return mt_machine_push(p, value.kind, value.bits);
}

static enum mt_status run_int(struct mt_pickle *p, size_t size, bool is_signed)
{
    uint64_t value;
    enum mt_status status = operand(p, size, &value);

    if (status != MT_OK)
        return status;
    if (is_signed)
        value = (uint64_t)(int64_t)(int32_t)(uint32_t)value;
    return mt_machine_push(p, MT_PICKLE_INT, value);
}

static enum mt_status run_long(struct mt_pickle *p, size_t length_bytes)
{
    const unsigned char *bytes;
    uint64_t length;
    enum mt_status status = operand(p, length_bytes, &length);

    if (status != MT_OK)
        return status;
    if (length > INT32_MAX)
        return mt_pickle_damaged(p, "LONG4 with a negative length");
    status = mt_pickle_window_take(p, length, &bytes);
    return status == MT_OK ? push_number(p, mt_pickle_long(bytes, (size_t)length)) : status;
}

static enum mt_status run_binfloat(struct mt_pickle *p)
{
    const unsigned char *bytes;
    enum mt_status status = mt_pickle_window_take(p, 8, &bytes);
    uint64_t bits = 0;

    if (status != MT_OK)
        return status;
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    return mt_machine_push(p, MT_PICKLE_FLOAT, bits);
}

static enum mt_status run_text(struct mt_pickle *p, uint8_t kind, size_t length_bytes)
{
    const unsigned char *bytes;
    uint64_t length;
    enum mt_status status = operand(p, length_bytes, &length);

    if (status == MT_OK)
        status = mt_pickle_window_take(p, length, &bytes);
    return status == MT_OK ? mt_machine_text(p, kind, bytes, (size_t)length) : status;
}

/* Protocol 0: operands are lines of text. */
static enum mt_status run_text_number(struct mt_pickle *p, unsigned opcode)
{
    struct mt_pickle_value value;
    const unsigned char *line;
    size_t length;
    enum mt_status status = mt_pickle_window_line(p, &line, &length);

    if (status != MT_OK)
        return status;
    bool sound = opcode == OP_FLOAT ? mt_pickle_parse_float(line, length, &value)
                                    : mt_pickle_parse_int(line, length, opcode == OP_INT, &value);
    return sound ? push_number(p, value) : mt_pickle_damaged(p, "not a number");
}

static enum mt_status run_text_line(struct mt_pickle *p, unsigned opcode)
{
    struct mt_buf plain = {0};
    const unsigned char *line;
    size_t length;
    enum mt_status status = mt_pickle_window_line(p, &line, &length);

    if (status != MT_OK)
        return status;
    bool sound = opcode == OP_STRING ? mt_pickle_unquote(line, length, &plain)
                                     : mt_pickle_unescape(line, length, &plain);
    if (plain.failed)
        status = mt_pickle_no_memory(p);
    else if (!sound)
        status = mt_pickle_damaged(p, "a text is not quoted or escaped correctly");
    else
        status = mt_machine_text(
            p, MT_PICKLE_TEXT, (const unsigned char *)(plain.data ? plain.data : ""), plain.length);
    mt_buf_release(&plain);
    return status;
}

static enum mt_status run_text_memo(struct mt_pickle *p, unsigned opcode)
{
    struct mt_pickle_value value;
    const unsigned char *line;
    size_t length;
    enum mt_status status = mt_pickle_window_line(p, &line, &length);

    if (status != MT_OK)
        return status;
    if (!mt_pickle_parse_int(line, length, false, &value) || value.kind != MT_PICKLE_INT ||
        (int64_t)value.bits < 0)
        return mt_pickle_damaged(p, "memo index is not a number");
    return opcode == OP_GET ? mt_machine_get(p, value.bits) : mt_machine_put(p, value.bits);
}

static enum mt_status run_memo(struct mt_pickle *p, bool get, size_t size)
{
    uint64_t slot;
    enum mt_status status = operand(p, size, &slot);

    if (status != MT_OK)
        return status;
    return get ? mt_machine_get(p, slot) : mt_machine_put(p, slot);
}

static enum mt_status run_build_marked(struct mt_pickle *p, uint8_t kind)
{
    size_t first;
    enum mt_status status = mt_machine_unmark(p, 0, &first);

    return status == MT_OK ? mt_machine_build(p, kind, first) : status;
}

static bool reaches_below_mark(const struct mt_pickle *p, size_t count)
{
    return p->depth < count || (p->mark_count && p->depth - count < p->marks[p->mark_count - 1]);
}

static enum mt_status run_tuple(struct mt_pickle *p, size_t count)
{
    if (reaches_below_mark(p, count))
        return mt_pickle_damaged(p, "not enough values on the stack");
    return mt_machine_build(p, MT_PICKLE_TUPLE, p->depth - count);
}

static enum mt_status run_extend_marked(struct mt_pickle *p, uint8_t kind)
{
    size_t first;
    enum mt_status status = mt_machine_unmark(p, 1, &first);

    return status == MT_OK ? mt_machine_extend(p, kind, first, true) : status;
}

/* APPEND and SETITEM: the top `count` values go into the container below them. */
static enum mt_status run_extend(struct mt_pickle *p, uint8_t kind, size_t count)
{
    if (reaches_below_mark(p, count + 1))
        return mt_pickle_damaged(p, "not enough values on the stack");
    return mt_machine_extend(p, kind, p->depth - count, false);
}

static enum mt_status run_pop(struct mt_pickle *p)
{
    /* Python's pickler pops a mark like a value */
    if (p->mark_count && p->marks[p->mark_count - 1] == p->depth)
        p->mark_count--;
    else if (p->depth)
        p->depth--;
    else
        return mt_pickle_damaged(p, "nothing on the stack to pop");
    return MT_OK;
}

static enum mt_status run_pop_mark(struct mt_pickle *p)
{
    size_t first;
    enum mt_status status = mt_machine_unmark(p, 0, &first);

    if (status == MT_OK)
        p->depth = first;
    return status;
}

static enum mt_status run_empty_dict(struct mt_pickle *p)
{
    bool done = false;
    enum mt_status status = MT_OK;

    if (p->hooks && !p->hooks->no_short_cuts)
        status = mt_flat_dictionaries(p, &done);
    return status != MT_OK || done ? status : mt_machine_open(p, MT_PICKLE_DICT);
}

/* Returns MT_END at STOP. */
static enum mt_status execute(struct mt_pickle *p, unsigned opcode)
{
    switch (opcode) {
    case OP_PROTO: return run_proto(p);
    case OP_FRAME: return mt_pickle_window_skip(p, 8);
    case OP_STOP: return MT_END;
    case OP_MARK: return mt_machine_mark(p);
    case OP_POP: return run_pop(p);
    case OP_POP_MARK: return run_pop_mark(p);
    case OP_DUP: return mt_machine_dup(p);

    case OP_NONE: return mt_machine_push(p, MT_PICKLE_NONE, 0);
    case OP_NEWTRUE: return mt_machine_push(p, MT_PICKLE_BOOL, 1);
    case OP_NEWFALSE: return mt_machine_push(p, MT_PICKLE_BOOL, 0);
    case OP_BININT1: return run_int(p, 1, false);
    case OP_BININT2: return run_int(p, 2, false);
    case OP_BININT: return run_int(p, 4, true);
    case OP_LONG1: return run_long(p, 1);
    case OP_LONG4: return run_long(p, 4);
    case OP_BINFLOAT: return run_binfloat(p);
    case OP_INT:
    case OP_LONG:
    case OP_FLOAT: return run_text_number(p, opcode);

    case OP_SHORT_BINUNICODE: return run_text(p, MT_PICKLE_TEXT, 1);
    case OP_BINUNICODE: return run_text(p, MT_PICKLE_TEXT, 4);
    case OP_BINUNICODE8: return run_text(p, MT_PICKLE_TEXT, 8);
    case OP_SHORT_BINSTRING: return run_text(p, MT_PICKLE_TEXT, 1);
    case OP_BINSTRING: return run_text(p, MT_PICKLE_TEXT, 4);
    case OP_SHORT_BINBYTES: return run_text(p, MT_PICKLE_BYTES, 1);
    case OP_BINBYTES: return run_text(p, MT_PICKLE_BYTES, 4);
    case OP_BINBYTES8: return run_text(p, MT_PICKLE_BYTES, 8);
    case OP_BYTEARRAY8: return run_text(p, MT_PICKLE_BYTES, 8);
    case OP_STRING:
    case OP_UNICODE: return run_text_line(p, opcode);

    case OP_MEMOIZE: return mt_machine_put(p, p->memo_count);
    case OP_BINPUT: return run_memo(p, false, 1);
    case OP_LONG_BINPUT: return run_memo(p, false, 4);
    case OP_BINGET: return run_memo(p, true, 1);
    case OP_LONG_BINGET: return run_memo(p, true, 4);
    case OP_PUT:
    case OP_GET: return run_text_memo(p, opcode);

    case OP_EMPTY_DICT: return run_empty_dict(p);
    case OP_EMPTY_LIST: return mt_machine_open(p, MT_PICKLE_LIST);
    case OP_EMPTY_SET: return mt_machine_open(p, MT_PICKLE_SET);
    case OP_EMPTY_TUPLE: return mt_machine_build(p, MT_PICKLE_TUPLE, p->depth);
    case OP_TUPLE1: return run_tuple(p, 1);
    case OP_TUPLE2: return run_tuple(p, 2);
    case OP_TUPLE3: return run_tuple(p, 3);
    case OP_TUPLE: return run_build_marked(p, MT_PICKLE_TUPLE);
    case OP_LIST: return run_build_marked(p, MT_PICKLE_LIST);
    case OP_DICT: return run_build_marked(p, MT_PICKLE_DICT);
    case OP_FROZENSET: return run_build_marked(p, MT_PICKLE_SET);
    case OP_APPEND: return run_extend(p, MT_PICKLE_LIST, 1);
    case OP_APPENDS: return run_extend_marked(p, MT_PICKLE_LIST);
    case OP_SETITEM: return run_extend(p, MT_PICKLE_DICT, 2);
    case OP_SETITEMS: return run_extend_marked(p, MT_PICKLE_DICT);
    case OP_ADDITEMS: return run_extend_marked(p, MT_PICKLE_SET);
    default: return refuse(p, opcode);
    }
}

static enum mt_status run(struct mt_pickle *p)
{
    enum mt_status status = MT_OK;

    while (status == MT_OK) {
        if (p->end - p->at < MT_PICKLE_MARGIN && !p->feed_ended) {
            status = mt_pickle_window_fill(p, MT_PICKLE_MARGIN);
            if (status != MT_OK)
                break;
        }
        p->opcode_offset = mt_pickle_window_offset(p);
        if (p->at == p->end)
            return mt_pickle_damaged(
                p, "the pickle was copied in part, or the disk was full: no STOP at its end");
        status = execute(p, *p->at++);
    }
    return status;
}

static enum mt_status finish(struct mt_pickle *p, struct mt_pickle_value *root)
{
    if (p->depth < 1)
        return mt_pickle_damaged(p, "STOP without a value");
    if (p->mark_count)
        return mt_pickle_damaged(p, "STOP inside of a container");
    *root = p->stack[p->depth - 1];
    return mt_machine_complete(p, root);
}

static enum mt_status prepare(struct mt_pickle *p)
{
    for (size_t i = 0; p->hooks && i < p->hooks->text_count; i++) {
        const char *text = p->hooks->texts[i];
        uint32_t id;
        if (mt_strings_intern(&p->strings, text, strlen(text), &id) != MT_OK)
            return mt_pickle_no_memory(p);
    }
    return MT_OK;
}

enum mt_status mt_pickle_read(struct mt_feed *feed, const struct mt_pickle_hooks *hooks,
                              struct mt_pickle **pickle, struct mt_pickle_value *root,
                              struct mt_error *error)
{
    struct mt_pickle *p = calloc(1, sizeof *p);

    if (!p)
        return mt_fail_memory(error);
    p->feed = feed;
    p->hooks = hooks;
    p->error = error;
    enum mt_status status = prepare(p);
    if (status == MT_OK)
        status = run(p);
    if (status == MT_END)
        status = finish(p, root);
    p->error = NULL; /* it belongs to the caller and may not exist after this call */
    if (status != MT_OK) {
        mt_pickle_free(p);
        return status;
    }
    *pickle = p;
    return MT_OK;
}

void mt_pickle_free(struct mt_pickle *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->object_count; i++)
        if (!p->objects[i].forwarded)
            free(p->objects[i].as.items);
    free(p->objects);
    free(p->stack);
    free(p->marks);
    free(p->memo);
    free(p->boxed);
    free(p->unused);
    free(p->known_lists);
    mt_strings_release(&p->strings);
    mt_buf_release(&p->scratch);
    free(p);
}

const struct mt_pickle_value *mt_pickle_items(const struct mt_pickle *p,
                                              struct mt_pickle_value value, size_t *count)
{
    *count = 0;
    if (value.kind < MT_PICKLE_LIST || value.kind > MT_PICKLE_DICT)
        return NULL;
    const struct mt_pickle_object *object = &p->objects[value.bits];
    if (object->forwarded)
        return NULL;
    *count = object->count;
    return object->as.items;
}

const char *mt_pickle_text(const struct mt_pickle *p, struct mt_pickle_value value, size_t *length)
{
    if (value.kind != MT_PICKLE_TEXT && value.kind != MT_PICKLE_BYTES) {
        *length = 0;
        return "";
    }
    *length = p->strings.lengths[value.bits];
    return p->strings.texts[value.bits];
}

uint64_t mt_pickle_bytes(const struct mt_pickle *p)
{
    return mt_pickle_window_offset(p);
}

bool mt_pickle_probe(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    if (length >= 3 && at[0] == OP_PROTO && at[1] <= HIGHEST_PROTOCOL)
        return true;
    /* protocols 0 and 1 have no magic: the file begins with a dictionary or list */
    if (length >= 2 && at[0] == OP_MARK)
        return at[1] == OP_DICT || at[1] == OP_LIST;
    return length >= 2 && (at[0] == OP_EMPTY_DICT || at[0] == OP_EMPTY_LIST) &&
           (at[1] == OP_BINPUT || at[1] == OP_MARK);
}
