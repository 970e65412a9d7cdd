/* JSON token by token: values against a slow reader, every place of a cut, limits, lines, and
 * numbers that are read exactly. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "dice.h"
#include "json_reader.h"
#include "util.h"

static void open_text(struct mt_json_reader *json, struct mt_feed **feed, const char *text,
                      size_t length)
{
    struct mt_error error;

    assert_int_equal(mt_feed_open_memory(text, length, feed, &error), MT_OK);
    assert_int_equal(mt_json_reader_init(json, *feed, &error), MT_OK);
}

static void close_text(struct mt_json_reader *json, struct mt_feed *feed)
{
    mt_json_reader_release(json);
    mt_feed_close(feed);
}

/* Returns the last status, MT_END or an error. Writes every token. */
static enum mt_status read_tokens(const char *text, size_t length, struct mt_buf *out,
                                  struct mt_error *error)
{
    static const char marks[] = "{}[]:\"##tfn";
    struct mt_json_reader json;
    struct mt_feed *feed;
    enum mt_status status;

    open_text(&json, &feed, text, length);
    while ((status = mt_json_reader_next(&json, error)) == MT_OK) {
        mt_buf_add_char(out, marks[json.token]);
        if (json.token >= MT_JSON_KEY && json.token <= MT_JSON_NUMBER)
            mt_buf_add(out, json.text, json.length);
        if (json.token == MT_JSON_KEY || json.token == MT_JSON_TEXT)
            assert_int_equal(json.text[json.length], 0);
        if (json.token == MT_JSON_INTEGER)
            mt_buf_printf(out, "=%lld", (long long)json.integer);
        mt_buf_add_char(out, ' ');
    }
    assert_int_equal(json.cut, status == MT_ERR_FORMAT && strstr(error->text, "is cut") != NULL);
    close_text(&json, feed);
    return status;
}

static void expect_tokens(const char *text, const char *wanted)
{
    struct mt_error error = {.text = ""};
    struct mt_buf out = {0};

    if (read_tokens(text, strlen(text), &out, &error) != MT_END)
        fail_msg("%s: %s", text, error.text);
    assert_string_equal(out.data, wanted);
    mt_buf_release(&out);
}

TEST(test_tokens)
{
    expect_tokens("{}", "{ } ");
    expect_tokens(" [ ] ", "[ ] ");
    expect_tokens("7", "#7=7 ");
    expect_tokens("{\"a\":[1,-2.5,{\"b\":null}],\"c\" : true , \"d\":false}",
                  "{ :a [ #1=1 #-2.5 { :b n } ] :c t :d f } ");
    expect_tokens("[NaN, Infinity,-Infinity,-0,1e3,1E-2,0.5]",
                  "[ #NaN #Infinity #-Infinity #-0=0 #1e3 #1E-2 #0.5 ] ");
    expect_tokens("[9223372036854775807,-9223372036854775808,9223372036854775808]",
                  "[ #9223372036854775807=9223372036854775807 "
                  "#-9223372036854775808=-9223372036854775808 #9223372036854775808 ] ");
    expect_tokens("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
                  "\"\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 ");
    expect_tokens("\"\\ud83d.\\ude00\\ud83d\\ud83d\\ude00\"",
                  "\"\xef\xbf\xbd.\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80 ");
}

TEST(test_damage)
{
    static const struct {
        const char *text, *why;
        uint64_t offset;
    } rows[] = {
        {"", "the JSON is cut", 0},
        {"{\"a\"", "the JSON is cut", 4},
        {"[1,", "the JSON is cut", 3},
        {"[1 2]", "a comma or the end of a value is missing", 3},
        {"[1,]", "a value is missing", 3},
        {"{\"a\":1,}", "a key is missing", 7},
        {"{\"a\" 1}", "a colon is missing", 5},
        {"{1:2}", "a key is missing", 1},
        {"{\"a\":1]", "a comma or the end of a value is missing", 6},
        {"[]]", "more follows after its end", 2},
        {"[01]", "a number has another form", 3},
        {"[1.]", "a number has another form", 3},
        {"[1e]", "a number has another form", 3},
        {"[+1]", "a value is missing", 1},
        {"[-]", "a number has another form", 2},
        {"[tru]", "a value is missing", 1},
        {"[\"\\x\"]", "a text has an unknown escape", 5},
        {"[\"\\u12g4\"]", "a text has an unknown escape", 9},
        {"[\"a\tb\"]", "a text has a control character", 3},
        {"[1,\"a]", "the JSON is cut", 6},
        {"'a'", "a value is missing", 0},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        struct mt_error error = {.text = ""};
        struct mt_buf out = {0};

        assert_int_equal(read_tokens(rows[i].text, strlen(rows[i].text), &out, &error),
                         MT_ERR_FORMAT);
        if (!strstr(error.text, rows[i].why) || error.offset != rows[i].offset)
            fail_msg("%s: %s at %llu", rows[i].text, error.text, (unsigned long long)error.offset);
        mt_buf_release(&out);
    }
}

static void add_random(struct mt_buf *out, struct dice *dice, int depth);

static void add_random_text(struct mt_buf *out, struct dice *dice)
{
    static const char *const parts[] = {
        "a",       "bc",       " ", "\\n",  "\\\\",           "\\\"",
        "\\u00e9", "\xc3\xa9", "{", "[,]:", "\\ud83d\\ude00", "aten::add_",
        "\\/",     "0"};

    mt_buf_add_char(out, '"');
    for (uint64_t i = dice_below(dice, 12); i; i--)
        mt_buf_add_text(out, parts[dice_below(dice, MT_ARRAY_LEN(parts))]);
    mt_buf_add_char(out, '"');
}

static void add_space(struct mt_buf *out, struct dice *dice)
{
    static const char *const spaces[] = {"", "", " ", "\n    ", "\t\r\n"};

    mt_buf_add_text(out, spaces[dice_below(dice, MT_ARRAY_LEN(spaces))]);
}

/* Keys differ, because jansson keeps the last of several. */
static void add_members(struct mt_buf *out, struct dice *dice, int depth, bool is_object)
{
    const uint64_t count = dice_below(dice, 5);

    mt_buf_add_char(out, is_object ? '{' : '[');
    for (uint64_t i = 0; i < count; i++) {
        add_space(out, dice);
        if (is_object)
            mt_buf_printf(out, "\"k%llu\"", (unsigned long long)i);
        if (is_object)
            add_space(out, dice);
        if (is_object)
            mt_buf_add_char(out, ':');
        add_space(out, dice);
        add_random(out, dice, depth - 1);
        add_space(out, dice);
        if (i + 1 < count)
            mt_buf_add_char(out, ',');
    }
    mt_buf_add_char(out, is_object ? '}' : ']');
}

static void add_random(struct mt_buf *out, struct dice *dice, int depth)
{
    static const char *const words[] = {"true", "false", "null"};

    switch (dice_below(dice, depth ? 7 : 4)) {
    case 0: mt_buf_add_i64(out, (int64_t)(dice_any(dice) >> dice_below(dice, 64))); break;
    case 1:
        mt_buf_printf(out, "%lld.%03llue%d", (long long)(int32_t)dice_any(dice),
                      (unsigned long long)dice_below(dice, 1000), (int)dice_below(dice, 9) - 4);
        break;
    case 2: mt_buf_add_text(out, words[dice_below(dice, 3)]); break;
    case 3: add_random_text(out, dice); break;
    default: add_members(out, dice, depth, dice_below(dice, 2));
    }
}

/* Writes a value of jansson's as read_tokens does. */
static void write_value(const json_t *value, struct mt_buf *out)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        mt_buf_add_text(out, "{ ");
        json_object_foreach((json_t *)value, key, member)
        {
            mt_buf_printf(out, ":%s ", key);
            write_value(member, out);
        }
        mt_buf_add_text(out, "} ");
    } else if (json_is_array(value)) {
        mt_buf_add_text(out, "[ ");
        json_array_foreach(value, i, member) write_value(member, out);
        mt_buf_add_text(out, "] ");
    } else if (json_is_string(value)) {
        mt_buf_printf(out, "\"%s ", json_string_value(value));
    } else if (json_is_integer(value)) {
        mt_buf_printf(out, "#%lld ", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        mt_buf_printf(out, "#%a ", json_real_value(value));
    } else {
        mt_buf_printf(out, "%c ", json_is_true(value) ? 't' : json_is_false(value) ? 'f' : 'n');
    }
}

static enum mt_status read_values(const struct mt_buf *text, struct mt_buf *out)
{
    static const char marks[] = "{}[]:\"##tfn";
    struct mt_json_reader json;
    struct mt_error error;
    struct mt_feed *feed;
    enum mt_status status;

    open_text(&json, &feed, text->data, text->length);
    while ((status = mt_json_reader_next(&json, &error)) == MT_OK) {
        mt_buf_add_char(out, marks[json.token]);
        if (json.token == MT_JSON_INTEGER)
            mt_buf_printf(out, "%lld", (long long)json.integer);
        else if (json.token == MT_JSON_NUMBER)
            mt_buf_printf(out, "%a", strtod(json.text, NULL));
        else if (json.token == MT_JSON_KEY || json.token == MT_JSON_TEXT)
            mt_buf_add(out, json.text, json.length);
        mt_buf_add_char(out, ' ');
    }
    close_text(&json, feed);
    return status;
}

TEST(test_random_values)
{
    for (uint64_t round = 0; round < 2000; round++) {
        struct dice dice = {round};
        struct mt_buf text = {0}, got = {0}, wanted = {0};
        json_error_t error;

        add_members(&text, &dice, 6, round % 2);
        json_t *value = json_loadb(text.data, text.length, JSON_ALLOW_NUL, &error);
        if (!value)
            fail_msg("%s: %s", text.data, error.text);
        write_value(value, &wanted);
        assert_int_equal(read_values(&text, &got), MT_END);
        assert_string_equal(got.data, wanted.data);
        json_decref(value);
        mt_buf_release(&text);
        mt_buf_release(&got);
        mt_buf_release(&wanted);
    }
}

/* A beginning of the text gives a beginning of its tokens, and is always found to be cut. */
TEST(test_cut_everywhere)
{
    struct mt_buf text = {0}, all = {0};
    struct mt_error error = {.text = ""};
    struct dice dice = {5};

    mt_buf_add_char(&text, '[');
    for (int i = 0; i < 12; i++) {
        add_members(&text, &dice, 4, true);
        mt_buf_add_text(&text, ", -1.5e+3, true, -Infinity, \"\\ud83d\\ude00\",");
    }
    mt_buf_add_text(&text, "0]");
    assert_int_equal(read_tokens(text.data, text.length, &all, &error), MT_END);
    for (size_t i = 0; i < text.length; i++) {
        struct mt_buf got = {0};
        char *copy = malloc(i ? i : 1); /* sanitizers see a byte read after it */

        memcpy(copy, text.data, i);
        assert_int_equal(read_tokens(copy, i, &got, &error), MT_ERR_FORMAT);
        if (strcmp(error.text, "the JSON is cut") != 0 || error.offset != i)
            fail_msg("%zu: %s at %llu", i, error.text, (unsigned long long)error.offset);
        assert_memory_equal(got.data ? got.data : "", all.data, got.length);
        mt_buf_release(&got);
        free(copy);
    }
    mt_buf_release(&text);
    mt_buf_release(&all);
}

/* Tokens of every length at every place relative to the end of the buffer. */
TEST(test_ends_of_the_buffer)
{
    for (size_t room = 256 * 1024 - 64; room <= 256 * 1024 + 4; room++) {
        struct mt_buf text = {0}, got = {0};
        struct mt_error error = {.text = ""};

        while (text.length < room)
            mt_buf_add_char(&text, ' ');
        mt_buf_add_text(&text, "[{\"x\" : \"\\ud83d\\ude00z\"}, -12.5e3 ,null, -Infinity ]");
        assert_int_equal(read_tokens(text.data, text.length, &got, &error), MT_END);
        assert_string_equal(got.data, "[ { :x \"\xf0\x9f\x98\x80z } #-12.5e3 n #-Infinity ] ");
        mt_buf_release(&text);
        mt_buf_release(&got);
    }
}

/* A text is kept up to 64 KiB, without a part of a character at its end. */
TEST(test_long_texts)
{
    static const size_t lengths[] = {65535, 65536, 65537, 262143, 262144, 262145, 1000000};

    for (size_t i = 0; i < 2 * MT_ARRAY_LEN(lengths); i++) {
        const size_t length = lengths[i / 2];
        const char *piece = i % 2 ? "\xe2\x82\xac" : "x";
        struct mt_error error = {.text = ""};
        struct mt_buf text = {0};
        struct mt_json_reader json;
        struct mt_feed *feed;

        mt_buf_add_text(&text, "[\"");
        while (text.length < length + 2)
            mt_buf_add_text(&text, piece);
        mt_buf_add_text(&text, "\", 7]");
        open_text(&json, &feed, text.data, text.length);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        assert_int_equal(json.token, MT_JSON_TEXT);
        assert_int_equal(json.text_is_cut, text.length - 7 > MT_JSON_TEXT_BYTES);
        assert_int_equal(json.length, json.text_is_cut ? i % 2 ? 65535 : 65536 : text.length - 7);
        assert_memory_equal(json.text, text.data + 2, json.length);
        assert_int_equal(json.text[json.length], 0);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        assert_int_equal(json.integer, 7);
        assert_int_equal(json.offset, text.length - 2);
        close_text(&json, feed);
        mt_buf_release(&text);
    }
}

/* The text begins at the buffer's first byte (room 0) or elsewhere, and any byte of an escape is
 * the last one of the buffer. */
TEST(test_long_texts_with_escapes)
{
    enum { BUFFER_BYTES = 256 * 1024 };
    static const char *const pieces[] = {"\\n", "\\u20ac", "x\\\\"};

    for (size_t i = 0; i < 16 * MT_ARRAY_LEN(pieces); i++) {
        const size_t room = i % 2 ? 100 : 0, shift = i / 2 % 8;
        const char *piece = pieces[i / 16];
        struct mt_error error = {.text = ""};
        struct mt_buf text = {0};
        struct mt_json_reader json;
        struct mt_feed *feed;

        while (text.length < room)
            mt_buf_add_char(&text, ' ');
        mt_buf_add_text(&text, "[\"");
        while (text.length < room + 2 + shift)
            mt_buf_add_char(&text, 'a');
        while (text.length < 3 * BUFFER_BYTES)
            mt_buf_add_text(&text, piece);
        mt_buf_add_text(&text, "\", 7]");
        open_text(&json, &feed, text.data, text.length);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        if (mt_json_reader_next(&json, &error) != MT_OK)
            fail_msg("%s after %zu: %s", piece, shift, error.text);
        assert_true(json.text_is_cut);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        assert_int_equal(json.integer, 7);
        assert_int_equal(json.offset, text.length - 2);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        assert_int_equal(mt_json_reader_next(&json, &error), MT_END);
        close_text(&json, feed);
        mt_buf_release(&text);
    }
}

TEST(test_limits)
{
    struct mt_error error = {.text = ""};
    struct mt_buf text = {0}, out = {0};

    for (int i = 0; i < MT_JSON_DEPTH; i++)
        mt_buf_add_char(&text, '[');
    assert_int_equal(read_tokens(text.data, text.length, &out, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "the JSON is cut");
    mt_buf_add_char(&text, '[');
    assert_int_equal(read_tokens(text.data, text.length, &out, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "the JSON is damaged: values are nested too deeply");
    mt_buf_reset(&text);
    for (int i = 0; i <= MT_JSON_NUMBER_BYTES; i++)
        mt_buf_add_char(&text, '1');
    assert_int_equal(read_tokens(text.data, text.length, &out, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "the JSON is damaged: a number is too long");
    mt_buf_release(&text);
    mt_buf_release(&out);
}

TEST(test_skip)
{
    static const char text[] = "{\"a\": {\"b\": [1, {}]}, \"c\": 2, \"d\": [[3], \"]\"], \"e\": 4}";
    struct mt_error error = {.text = ""};
    struct mt_json_reader json;
    struct mt_feed *feed;
    int64_t sum = 0;

    open_text(&json, &feed, text, strlen(text));
    while (mt_json_reader_next(&json, &error) == MT_OK)
        if (json.token == MT_JSON_KEY && (mt_json_reader_is(&json, "a") || *json.text == 'd'))
            assert_int_equal(mt_json_reader_skip(&json, &error), MT_OK);
        else if (json.token == MT_JSON_INTEGER)
            sum = sum * 10 + json.integer;
    assert_int_equal(sum, 24);
    close_text(&json, feed);
    open_text(&json, &feed, text, strlen(text));
    assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
    assert_int_equal(mt_json_reader_skip(&json, &error), MT_OK);
    assert_int_equal(mt_json_reader_next(&json, &error), MT_END);
    close_text(&json, feed);
}

/* Damage ends with its line. */
TEST(test_lines)
{
    static const char text[] = "{\"a\":1}\n{\"a\":2\n{\"a\":3}\r\n\n{\"a\":x}\n{\"a\":4}\n{\"a\":5";
    struct mt_error error = {.text = ""};
    struct mt_json_reader json;
    struct mt_feed *feed;
    enum mt_status status;
    int64_t sum = 0, errors = 0;

    open_text(&json, &feed, text, strlen(text));
    json.lines = true;
    while ((status = mt_json_reader_next(&json, &error)) != MT_END)
        if (status == MT_ERR_FORMAT) {
            errors = errors * 100 + (int64_t)error.offset;
            assert_int_equal(mt_json_reader_next_line(&json, &error), MT_OK);
        } else if (json.token == MT_JSON_INTEGER) {
            sum = sum * 10 + json.integer;
        }
    assert_int_equal(sum, 1234);
    assert_int_equal(errors, 143047);
    close_text(&json, feed);
}

TEST(test_scaled)
{
    static const struct {
        const char *text;
        int digits;
        bool fits;
        int64_t value;
    } rows[] = {
        {"1712345678901234.567", 3, true, 1712345678901234567},
        {"1712345678901234.5674", 3, true, 1712345678901234567},
        {"1712345678901234.5675", 3, true, 1712345678901234568},
        {"-1.5", 0, true, -2},
        {"0.4999", 0, true, 0},
        {"0.05", 0, true, 0},
        {"0.5", 0, true, 1},
        {"0.05", 1, true, 1},
        {"12", 3, true, 12000},
        {"1.7e+3", 3, true, 1700000},
        {"1e-05", 9, true, 10000},
        {"5e-1", 0, true, 1},
        {"5e-2", 0, true, 0},
        {"9e-400", 18, true, 0},
        {"1e400", 0, false, 0},
        {"0e400000000000", 0, true, 0},
        {"9223372036854775807", 0, true, INT64_MAX},
        {"9223372036854775807.5", 0, false, 0},
        {"-9223372036854775808", 0, true, INT64_MIN},
        {"9223372036854775808", 0, false, 0},
        {"9223372036854775807", 1, false, 0},
        {"NaN", 0, false, 0},
        {"-Infinity", 0, false, 0},
        {"\"1\"", 0, false, 0},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        struct mt_error error = {.text = ""};
        struct mt_json_reader json;
        struct mt_feed *feed;
        int64_t value = 0;

        open_text(&json, &feed, rows[i].text, strlen(rows[i].text));
        assert_int_equal(mt_json_reader_next(&json, &error), MT_OK);
        if (mt_json_reader_scaled(&json, rows[i].digits, &value) != rows[i].fits ||
            (rows[i].fits && value != rows[i].value))
            fail_msg("%s: %lld", rows[i].text, (long long)value);
        close_text(&json, feed);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
