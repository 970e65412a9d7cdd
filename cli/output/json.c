/* A writer of JSON, and of lists in it. */
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "foreign_text.h"
#include "json.h"

/* Returns the part of a limit that one object gets if several objects share it; at most `most`. */
static uint64_t part_of(const struct mt_json *json, uint64_t most)
{
    uint64_t part = json->sharers ? most / json->sharers : most;

    return part < most ? part : most;
}

static void begin(struct mt_json_list *list, struct mt_json *json, const char *key)
{
    mt_json_array_begin(json, key);
    *list = (struct mt_json_list){.json = json, .key = key, .begin = json->out->length};
}

void mt_json_list_begin(struct mt_json_list *list, struct mt_json *json, const char *key)
{
    begin(list, json, key);
    list->most_rows = part_of(json, MT_JSON_ROWS);
    list->most_bytes = (size_t)part_of(json, MT_JSON_LIST_BYTES);
}

void mt_json_objects_begin(struct mt_json_list *list, struct mt_json *json, const char *key,
                           uint64_t count)
{
    begin(list, json, key);
    list->most_rows = MT_JSON_OBJECTS;
    list->most_bytes = MT_JSON_BYTES;
    list->has_lists = true;
    json->sharers = count < MT_JSON_OBJECTS ? (unsigned)count : MT_JSON_OBJECTS;
}

bool mt_json_list_takes(struct mt_json_list *list)
{
    const struct mt_json *json = list->json;
    size_t length = json->out->length;

    if (!json->all && (list->rows == list->most_rows || length - list->begin >= list->most_bytes ||
                       length - json->begin >= MT_JSON_BYTES)) {
        list->omitted++;
        return false;
    }
    list->rows++;
    return true;
}

void mt_json_list_end(struct mt_json_list *list)
{
    mt_json_array_end(list->json);
    mt_json_omitted(list->json, list->key, list->omitted);
    if (list->has_lists)
        list->json->sharers = 0;
}

/* Puts the list before its first row. */
static struct mt_json_list with_rows(struct mt_json_list list, size_t count)
{
    list.i = UINT32_MAX;
    list.count = (uint32_t)count;
    list.is_pretty = list.json->pretty;
    return list;
}

struct mt_json_list mt_json_rows(struct mt_json *json, const char *key, size_t count)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, key);
    return with_rows(list, count);
}

struct mt_json_list mt_json_lines(struct mt_json *json, const char *key, size_t count)
{
    struct mt_json_list list = mt_json_rows(json, key, count);

    list.has_lines = true;
    return list;
}

struct mt_json_list mt_json_objects(struct mt_json *json, const char *key, size_t count)
{
    struct mt_json_list list;

    mt_json_objects_begin(&list, json, key, count);
    return with_rows(list, count);
}

bool mt_json_next(struct mt_json_list *list)
{
    struct mt_json *json = list->json;

    if (list->i != UINT32_MAX) {
        mt_json_object_end(json);
        json->pretty = list->is_pretty;
    }
    if (++list->i < list->count && mt_json_list_takes(list)) {
        mt_json_object_begin(json, NULL);
        json->pretty = list->is_pretty && !list->has_lines;
        return true;
    }
    list->omitted = list->count - list->i;
    mt_json_list_end(list);
    return false;
}

void mt_json_omitted(struct mt_json *json, const char *key, uint64_t count)
{
    char name[64];

    if (!count)
        return;
    snprintf(name, sizeof name, "%s_omitted", key);
    mt_json_u64(json, name, count);
}

static void add_newline(struct mt_json *json)
{
    if (!json->pretty)
        return;
    mt_buf_add_char(json->out, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        mt_buf_add_text(json->out, "  ");
}

/* Adds an escape such as "\\u202e". A character above the basic plane is a pair of surrogates. */
static void add_escape(struct mt_buf *out, uint32_t code)
{
    if (code < 0x10000) {
        mt_buf_printf(out, "\\u%04x", (unsigned)code);
        return;
    }
    code -= 0x10000;
    mt_buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + (code >> 10)),
                  (unsigned)(0xDC00 + (code & 0x3FF)));
}

static void add_character(struct mt_buf *out, const struct mt_foreign_char *c)
{
    switch (c->code) {
    case '"': mt_buf_add_text(out, "\\\""); return;
    case '\\': mt_buf_add_text(out, "\\\\"); return;
    case '\n': mt_buf_add_text(out, "\\n"); return;
    case '\t': mt_buf_add_text(out, "\\t"); return;
    case MT_NOT_UTF8: mt_buf_add_text(out, "\xEF\xBF\xBD"); return;
    default: break;
    }
    if (c->is_shown)
        mt_buf_add(out, c->bytes, c->length);
    else
        add_escape(out, c->code);
}

/* Returns the length of the part that is kept of a text that is too long. Does not split a
 * character of UTF-8. */
static size_t cut_length(const char *text)
{
    size_t length = MT_JSON_TEXT_BYTES;

    while (length > MT_JSON_TEXT_BYTES - 4 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

static void add_string(struct mt_json *json, const char *text, size_t length)
{
    bool is_cut = !json->all && length > MT_JSON_TEXT_BYTES;
    struct mt_foreign_text foreign = mt_foreign_text(text, is_cut ? cut_length(text) : length);
    struct mt_foreign_char c;
    struct mt_buf *out = json->out;

    mt_buf_add_char(out, '"');
    while (foreign.at < foreign.end) {
        text = foreign.at;
        mt_buf_add(out, text, mt_foreign_skip_plain(&foreign));
        if (mt_foreign_next(&foreign, &c))
            add_character(out, &c);
    }
    if (is_cut)
        mt_buf_add_text(out, "\xE2\x80\xA6");
    mt_buf_add_char(out, '"');
}

/* Adds comma, line break and key, which precede a value. */
static void begin_value(struct mt_json *json, const char *key)
{
    if (json->needs_comma)
        mt_buf_add_char(json->out, ',');
    if (json->depth)
        add_newline(json);
    if (key) {
        add_string(json, key, strlen(key));
        mt_buf_add_text(json->out, json->pretty ? ": " : ":");
    }
    json->needs_comma = true;
}

static void begin_group(struct mt_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    mt_buf_add_char(json->out, bracket);
    json->depth++;
    json->needs_comma = false;
}

static void end_group(struct mt_json *json, char bracket)
{
    json->depth--;
    if (json->needs_comma) /* the object or array is not empty */
        add_newline(json);
    mt_buf_add_char(json->out, bracket);
    json->needs_comma = true;
    if (!json->depth && json->pretty)
        mt_buf_add_char(json->out, '\n');
}

void mt_json_init(struct mt_json *json, struct mt_buf *out, bool pretty)
{
    *json = (struct mt_json){.out = out, .begin = out->length, .pretty = pretty};
}

void mt_json_document(struct mt_json *json, struct mt_buf *out, const char *schema, bool all)
{
    mt_json_init(json, out, true);
    json->all = all;
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "schema", schema);
}

void mt_json_object_begin(struct mt_json *json, const char *key)
{
    begin_group(json, key, '{');
}

void mt_json_object_end(struct mt_json *json)
{
    end_group(json, '}');
}

void mt_json_array_begin(struct mt_json *json, const char *key)
{
    begin_group(json, key, '[');
}

void mt_json_array_end(struct mt_json *json)
{
    end_group(json, ']');
}

void mt_json_text(struct mt_json *json, const char *key, const char *value)
{
    if (!value) {
        mt_json_null(json, key);
        return;
    }
    mt_json_raw_text(json, key, value,
                     json->all ? strlen(value) : strnlen(value, MT_JSON_TEXT_BYTES + 1));
}

void mt_json_raw_text(struct mt_json *json, const char *key, const char *bytes, size_t length)
{
    begin_value(json, key);
    add_string(json, bytes, length);
}

void mt_json_number(struct mt_json *json, const char *key, const char *digits)
{
    begin_value(json, key);
    mt_buf_add_text(json->out, digits);
}

void mt_json_u64(struct mt_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    mt_buf_add_u64(json->out, value);
}

void mt_json_u64_or_null(struct mt_json *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        mt_json_u64(json, key, value);
    else
        mt_json_null(json, key);
}

void mt_json_i64(struct mt_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    mt_buf_add_i64(json->out, value);
}

void mt_json_bool(struct mt_json *json, const char *key, bool value)
{
    begin_value(json, key);
    mt_buf_add_text(json->out, value ? "true" : "false");
}

void mt_json_null(struct mt_json *json, const char *key)
{
    begin_value(json, key);
    mt_buf_add_text(json->out, "null");
}

void mt_json_share(struct mt_json *json, const char *key, double value)
{
    if (!(value > -1e12 && value < 1e12)) {
        mt_json_null(json, key);
        return;
    }
    begin_value(json, key);
    mt_buf_add_decimal(json->out, value, 6);
}
