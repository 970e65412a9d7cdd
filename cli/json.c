#include "json.h"

static void add_newline(struct mt_json *json)
{
    unsigned i;

    if (!json->pretty)
        return;
    mt_buf_add_char(json->out, '\n');
    for (i = 0; i < json->depth; i++)
        mt_buf_add_text(json->out, "  ");
}

/* Length of the UTF-8 sequence at `at`, 0 if it is not one (overlong forms,
 * surrogates and cut ones included). `at` is NUL-terminated. */
static size_t utf8_length(const unsigned char *at)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    size_t i;

    if (at[0] > 0xf4)
        return 0;
    for (i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static void add_character(struct mt_buf *out, const unsigned char *at, size_t length)
{
    switch (*at) {
    case '"': mt_buf_add_text(out, "\\\""); return;
    case '\\': mt_buf_add_text(out, "\\\\"); return;
    case '\n': mt_buf_add_text(out, "\\n"); return;
    case '\t': mt_buf_add_text(out, "\\t"); return;
    default: break;
    }
    if (*at < 0x20 || *at == 0x7f)
        mt_buf_printf(out, "\\u%04x", *at);
    else
        mt_buf_add(out, at, length);
}

static void add_string(struct mt_buf *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    mt_buf_add_char(out, '"');
    while (*at) {
        size_t length = utf8_length(at);
        if (length)
            add_character(out, at, length);
        else
            mt_buf_add_text(out, "\xEF\xBF\xBD");
        at += length ? length : 1;
    }
    mt_buf_add_char(out, '"');
}

/* Comma, line break and key: everything that stands before a value. */
static void begin_value(struct mt_json *json, const char *key)
{
    if (json->needs_comma)
        mt_buf_add_char(json->out, ',');
    if (json->depth)
        add_newline(json);
    if (key) {
        add_string(json->out, key);
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
    if (json->needs_comma) /* not empty */
        add_newline(json);
    mt_buf_add_char(json->out, bracket);
    json->needs_comma = true;
    if (!json->depth && json->pretty)
        mt_buf_add_char(json->out, '\n');
}

void mt_json_init(struct mt_json *json, struct mt_buf *out, bool pretty)
{
    *json = (struct mt_json){.out = out, .pretty = pretty};
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
    add_string(json->out, value);
}

void mt_json_u64(struct mt_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    mt_buf_add_u64(json->out, value);
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
