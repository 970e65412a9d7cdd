#include "json.h"

#include <string.h>

#include "foreign_text.h"

static void add_newline(struct mt_json *json)
{
    unsigned i;

    if (!json->pretty)
        return;
    mt_buf_add_char(json->out, '\n');
    for (i = 0; i < json->depth; i++)
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

static void add_string(struct mt_json *json, const char *text)
{
    size_t length = json->all ? strlen(text) : strnlen(text, MT_JSON_TEXT_BYTES + 1);
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
        add_string(json, key);
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
    begin_value(json, key);
    add_string(json, value);
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
