/* One cursor and two grammars. MT_SETTINGS_DEPTH limits the recursion for any document. */
#include "settings_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "buf.h"
#include "grow.h"
#include "map.h"
#include "util.h"

struct cursor {
    const char *at, *end;
    unsigned line;
    enum grammar { TOML, JSON, JSON_MEMBERS } grammar;
    struct mt_buf path, text; /* of the current value */
    struct mt_settings *settings;
    struct mt_error *error;
};

static enum mt_status fail(struct cursor *cursor, const char *what)
{
    return mt_fail(cursor->error, MT_ERR_FORMAT, MT_NO_OFFSET, "line %u: %s", cursor->line, what);
}

static char peek(const struct cursor *cursor)
{
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

static bool accept(struct cursor *cursor, char c)
{
    if (cursor->at == cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static void skip_blanks(struct cursor *cursor)
{
    while (peek(cursor) == ' ' || peek(cursor) == '\t')
        cursor->at++;
}

/* Skips blanks, line ends and, in TOML, comments. */
static void skip_space(struct cursor *cursor)
{
    for (; cursor->at < cursor->end; cursor->at++) {
        if (*cursor->at == '\n')
            cursor->line++;
        else if (cursor->grammar == TOML && *cursor->at == '#')
            while (cursor->at + 1 < cursor->end && cursor->at[1] != '\n')
                cursor->at++;
        else if (*cursor->at != ' ' && *cursor->at != '\t' && *cursor->at != '\r')
            return;
    }
}

static enum mt_status add_entry(struct cursor *cursor, struct mt_setting entry)
{
    struct mt_settings *settings = cursor->settings;
    uint32_t id;

    if (cursor->path.failed || cursor->text.failed)
        return mt_fail_memory(cursor->error);
    if (cursor->path.length > MT_SETTINGS_PATH_BYTES)
        return fail(cursor, "the name of a value, with its tables, is longer than 4,096 bytes");
    if (mt_strings_intern(&settings->paths, cursor->path.data, cursor->path.length, &id))
        return mt_fail_memory(cursor->error);
    if (id < settings->count)
        return mt_fail(cursor->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: '%.80s' is given twice", cursor->line, cursor->path.data);
    if (settings->count == MT_MAX_SETTINGS)
        return fail(cursor, "too many values");
    if (settings->count == settings->capacity &&
        mt_grow(&settings->entries, &settings->capacity, settings->count + 1,
                sizeof *settings->entries))
        return mt_fail_memory(cursor->error);
    entry.line = cursor->line;
    entry.path = settings->paths.texts[id];
    entry.text = mt_arena_text(&settings->arena, cursor->text.data ? cursor->text.data : "",
                               cursor->text.length);
    if (!entry.text)
        return mt_fail_memory(cursor->error);
    settings->entries[settings->count++] = entry;
    return MT_OK;
}

/* Adds a part to the path; returns the previous length, for leave(). Parts beyond the limit need
 * not be kept: add_entry refuses the path. */
static size_t enter(struct cursor *cursor, const char *part, size_t length)
{
    size_t before = cursor->path.length;

    length = mt_min_u64(length, MT_SETTINGS_PATH_BYTES + 1);
    cursor->path.failed |= cursor->text.failed;
    if (before)
        mt_buf_add_char(&cursor->path, '.');
    mt_buf_add(&cursor->path, part, length);
    return before;
}

static void leave(struct cursor *cursor, size_t before)
{
    if (cursor->path.data) {
        cursor->path.length = before;
        cursor->path.data[before] = '\0';
    }
}

/* After "\u". Refuses surrogates and NUL, which are not valid in a setting. */
static enum mt_status read_code(struct cursor *cursor)
{
    uint32_t code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = mt_hex_digit(peek(cursor));

        if (digit < 0)
            return fail(cursor, "\\u needs four hexadecimal digits");
        code = code * 16 + (uint32_t)digit;
        cursor->at++;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        return fail(cursor, "\\u of this number is not supported");
    mt_buf_add_utf8(&cursor->text, code);
    return MT_OK;
}

static enum mt_status read_escape(struct cursor *cursor)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = peek(cursor);
    const char *found = c ? strchr(from, c) : NULL;

    if (cursor->at < cursor->end)
        cursor->at++;
    if (c == 'u')
        return read_code(cursor);
    if (!found)
        return fail(cursor, "unknown escape in a string");
    mt_buf_add_char(&cursor->text, to[found - from]);
    return MT_OK;
}

/* After the opening quote. The result is in cursor->text. */
static enum mt_status read_string(struct cursor *cursor, char quote)
{
    enum mt_status status = MT_OK;

    mt_buf_reset(&cursor->text);
    while (!status) {
        char c = peek(cursor);

        if (cursor->at == cursor->end || c == '\n')
            return fail(cursor, "a string is not terminated");
        if ((unsigned char)c < 0x20 && c != '\t')
            return fail(cursor, "control character in a string");
        cursor->at++;
        if (c == quote)
            break;
        if (c == '\\' && quote == '"')
            status = read_escape(cursor);
        else
            mt_buf_add_char(&cursor->text, c);
    }
    return status;
}

static bool is_word_char(char c)
{
    return mt_is_alnum(c) || c == '_' || c == '-';
}

/* true, 12, -1.5e3: the result is in cursor->text. */
static void read_word(struct cursor *cursor)
{
    mt_buf_reset(&cursor->text);
    while (is_word_char(peek(cursor)) || peek(cursor) == '.' || peek(cursor) == '+')
        mt_buf_add_char(&cursor->text, *cursor->at++);
}

static bool is_number(const char *text)
{
    const char *at = text + (*text == '-');
    size_t digits = strspn(at, "0123456789");

    if (!digits || (digits > 1 && *at == '0'))
        return false;
    at += digits;
    if (*at == '.') {
        digits = strspn(++at, "0123456789");
        if (!digits)
            return false;
        at += digits;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        digits = strspn(at, "0123456789");
        at += digits;
    }
    return digits && !*at;
}

static bool whole_number(const char *text, uint64_t *number)
{
    *number = 0;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || !mt_mul_ok(*number, 10, number) ||
            !mt_add_ok(*number, (uint64_t)(*text - '0'), number))
            return false;
    return true;
}

static enum mt_status read_scalar(struct cursor *cursor)
{
    struct mt_setting entry = {.kind = MT_SETTING_TEXT};

    if (peek(cursor) == '"' || (cursor->grammar == TOML && peek(cursor) == '\'')) {
        char quote = *cursor->at++;
        enum mt_status status = read_string(cursor, quote);

        return status ? status : add_entry(cursor, entry);
    }
    read_word(cursor);
    const char *word = cursor->text.length ? cursor->text.data : "";
    if (strcmp(word, "null") == 0 && cursor->grammar != TOML) {
        entry.kind = MT_SETTING_JSON;
        return cursor->grammar == JSON ? MT_OK : add_entry(cursor, entry);
    }
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        entry.kind = MT_SETTING_BOOL;
        entry.number = *word == 't';
        return add_entry(cursor, entry);
    }
    if (!is_number(word))
        return fail(cursor,
                    *word ? "this is not a value: strings need quotes" : "a value is missing");
    entry.kind = MT_SETTING_NUMBER;
    entry.is_whole = whole_number(word, &entry.number);
    return add_entry(cursor, entry);
}

static enum mt_status read_json(struct cursor *cursor, unsigned depth);

static enum mt_status read_member(struct cursor *cursor, unsigned depth)
{
    skip_space(cursor);
    if (!accept(cursor, '"'))
        return fail(cursor, "a key in quotes is missing");
    enum mt_status status = read_string(cursor, '"');
    if (status)
        return status;
    if (!cursor->text.length)
        return fail(cursor, "a key is empty");
    size_t before = enter(cursor, cursor->text.data, cursor->text.length);
    skip_space(cursor);
    if (!accept(cursor, ':'))
        return fail(cursor, "':' is missing after a key");
    status = read_json(cursor, depth);
    leave(cursor, before);
    return status;
}

static enum mt_status read_item(struct cursor *cursor, unsigned depth, size_t index)
{
    struct mt_buf name = {0};

    mt_buf_add_u64(&name, index);
    size_t before = enter(cursor, name.data ? name.data : "", name.length);
    cursor->path.failed |= name.failed;
    mt_buf_release(&name);
    enum mt_status status = read_json(cursor, depth);
    leave(cursor, before);
    return status;
}

/* After the opening bracket of an array or object. */
static enum mt_status read_many(struct cursor *cursor, unsigned depth, bool is_object)
{
    char close = is_object ? '}' : ']';
    enum mt_status status = MT_OK;
    size_t index = 0;

    if (depth == MT_SETTINGS_DEPTH)
        return fail(cursor, "nested too deep");
    skip_space(cursor);
    if (accept(cursor, close))
        return MT_OK;
    do {
        status = is_object ? read_member(cursor, depth + 1) : read_item(cursor, depth + 1, index++);
        skip_space(cursor);
    } while (!status && accept(cursor, ','));
    if (!status && !accept(cursor, close))
        status = fail(cursor, is_object ? "',' or '}' is missing" : "',' or ']' is missing");
    return status;
}

static enum mt_status read_json(struct cursor *cursor, unsigned depth)
{
    const struct mt_setting entry = {.kind = MT_SETTING_JSON};
    enum mt_status status;

    skip_space(cursor);
    const char *begin = cursor->at;
    if (accept(cursor, '{'))
        status = read_many(cursor, depth, true);
    else if (accept(cursor, '['))
        status = read_many(cursor, depth, false);
    else
        return read_scalar(cursor);
    if (status || cursor->grammar != JSON_MEMBERS || !depth)
        return status;
    mt_buf_reset(&cursor->text);
    mt_buf_add(&cursor->text, begin, (size_t)(cursor->at - begin));
    return add_entry(cursor, entry);
}

static enum mt_status read_json_document(struct cursor *cursor)
{
    enum mt_status status = read_json(cursor, 0);

    skip_space(cursor);
    if (!status && cursor->at < cursor->end)
        status = fail(cursor, "unexpected text after the end of the document");
    return status;
}

/* Adds a.b."c d" to the path. */
static enum mt_status read_key(struct cursor *cursor)
{
    enum mt_status status = MT_OK;
    unsigned parts = 0;

    do {
        skip_blanks(cursor);
        if (peek(cursor) == '"' || peek(cursor) == '\'') {
            char quote = *cursor->at++;

            status = read_string(cursor, quote);
        } else {
            mt_buf_reset(&cursor->text);
            while (is_word_char(peek(cursor)))
                mt_buf_add_char(&cursor->text, *cursor->at++);
        }
        if (!status && !cursor->text.length)
            status = fail(cursor, "a key is missing");
        if (!status && ++parts > MT_SETTINGS_DEPTH)
            status = fail(cursor, "nested too deep");
        if (status)
            return status;
        (void)enter(cursor, cursor->text.data, cursor->text.length);
        skip_blanks(cursor);
    } while (accept(cursor, '.'));
    return MT_OK;
}

static enum mt_status end_line(struct cursor *cursor)
{
    skip_blanks(cursor);
    if (cursor->at < cursor->end && !strchr("#\r\n", *cursor->at))
        return fail(cursor, "unexpected text after the end of the value");
    return MT_OK;
}

static enum mt_status read_table(struct cursor *cursor)
{
    leave(cursor, 0);
    if (peek(cursor) == '[')
        return fail(cursor, "arrays of tables are not supported");
    enum mt_status status = read_key(cursor);
    if (!status && !accept(cursor, ']'))
        status = fail(cursor, "']' is missing");
    return status ? status : end_line(cursor);
}

static enum mt_status read_pair(struct cursor *cursor)
{
    size_t before = cursor->path.length;
    enum mt_status status = read_key(cursor);

    if (!status && !accept(cursor, '='))
        status = fail(cursor, "'=' is missing after a key");
    if (status)
        return status;
    skip_blanks(cursor);
    if (peek(cursor) == '[' || peek(cursor) == '{')
        return fail(cursor, "arrays and inline tables are not supported");
    status = read_scalar(cursor);
    leave(cursor, before);
    return status ? status : end_line(cursor);
}

static enum mt_status read_toml_document(struct cursor *cursor)
{
    enum mt_status status = MT_OK;

    skip_space(cursor);
    if (peek(cursor) == '{')
        return fail(cursor, "JSON is not supported: write TOML");
    for (;;) {
        skip_space(cursor);
        if (status || cursor->at == cursor->end)
            return status;
        status = accept(cursor, '[') ? read_table(cursor) : read_pair(cursor);
    }
}

static enum mt_status parse(const char *text, size_t length, enum grammar grammar,
                            struct mt_settings *settings, struct mt_error *error)
{
    struct cursor cursor = {.at = text,
                            .end = text + length,
                            .line = 1,
                            .grammar = grammar,
                            .settings = settings,
                            .error = error};

    memset(settings, 0, sizeof *settings);
    if (length > MT_SETTINGS_BYTES)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "larger than %d bytes",
                       MT_SETTINGS_BYTES);
    if (memchr(text, '\0', length))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "not a text");
    enum mt_status status =
        grammar == TOML ? read_toml_document(&cursor) : read_json_document(&cursor);
    /* Without memory, there is no text whose syntax could be wrong. */
    if (cursor.path.failed || cursor.text.failed)
        status = mt_fail_memory(error);
    mt_buf_release(&cursor.path);
    mt_buf_release(&cursor.text);
    return status;
}

enum mt_status mt_settings_parse_toml(const char *text, size_t length, struct mt_settings *settings,
                                      struct mt_error *error)
{
    return parse(text, length, TOML, settings, error);
}

enum mt_status mt_settings_parse_json(const char *text, size_t length, struct mt_settings *settings,
                                      struct mt_error *error)
{
    return parse(text, length, JSON, settings, error);
}

enum mt_status mt_settings_parse_members(const char *text, size_t length,
                                         struct mt_settings *settings, struct mt_error *error)
{
    return parse(text, length, JSON_MEMBERS, settings, error);
}

void mt_settings_release(struct mt_settings *settings)
{
    free(settings->entries);
    mt_strings_release(&settings->paths);
    mt_arena_release(&settings->arena);
    memset(settings, 0, sizeof *settings);
}

const struct mt_setting *mt_settings_find(const struct mt_settings *settings, const char *path)
{
    uint32_t id = mt_strings_find(&settings->paths, path, strlen(path));

    return id < settings->count ? &settings->entries[id] : NULL;
}

enum mt_status mt_settings_check_schema(const struct mt_settings *settings, const char *what,
                                        const char *schema, struct mt_error *error)
{
    const struct mt_setting *given = mt_settings_find(settings, "schema");

    if (!given || given->kind != MT_SETTING_TEXT)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "not %s: it has no \"schema\": \"%s\"",
                       what, schema);
    if (strcmp(given->text, schema) != 0)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "its schema is '%.60s', which is not %s", given->text, schema);
    return MT_OK;
}

static const struct mt_setting *find_formatted(const struct mt_settings *settings,
                                               const char *format, va_list values)
{
    char path[128];
    int length = vsnprintf(path, sizeof path, format, values);

    return length >= 0 && (size_t)length < sizeof path ? mt_settings_find(settings, path) : NULL;
}

uint64_t mt_settings_number(const struct mt_settings *settings, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const struct mt_setting *found = find_formatted(settings, format, values);
    va_end(values);
    return found && found->kind == MT_SETTING_NUMBER && found->is_whole ? found->number : 0;
}

const char *mt_settings_text(const struct mt_settings *settings, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const struct mt_setting *found = find_formatted(settings, format, values);
    va_end(values);
    return found && found->kind == MT_SETTING_TEXT ? found->text : NULL;
}
