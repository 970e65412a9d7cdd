#include <math.h>
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static void write_everything(struct mt_json *json)
{
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "text", "a \"quoted\\ line\n\ttab \x01 \x7f caf\xC3\xA9 \xF0\x9F\x98\x80");
    mt_json_text(json, "nothing", NULL);
    mt_json_text(json, "empty", "");
    mt_json_u64(json, "bytes", UINT64_C(9007199254740993)); /* beyond a double */
    mt_json_i64(json, "change", INT64_MIN);
    mt_json_bool(json, "yes", true);
    mt_json_bool(json, "no", false);
    mt_json_share(json, "share", 0.125);
    mt_json_share(json, "nan", (double)NAN);
    mt_json_array_begin(json, "list");
    mt_json_u64(json, NULL, 1);
    mt_json_object_begin(json, NULL);
    mt_json_object_end(json);
    mt_json_array_begin(json, NULL);
    mt_json_array_end(json);
    mt_json_null(json, NULL);
    mt_json_array_end(json);
    mt_json_u64(json, "key \"with\" quotes", 2);
    mt_json_object_end(json);
}

static void check_everything(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error), *list;

    if (!root)
        fail_msg("%s at %d in %s", error.text, error.position, text);
    assert_string_equal(json_string_value(json_object_get(root, "text")),
                        "a \"quoted\\ line\n\ttab \x01 \x7f caf\xC3\xA9 \xF0\x9F\x98\x80");
    assert_true(json_is_null(json_object_get(root, "nothing")));
    assert_string_equal(json_string_value(json_object_get(root, "empty")), "");
    assert_int_equal(json_integer_value(json_object_get(root, "bytes")), 9007199254740993);
    assert_true(json_integer_value(json_object_get(root, "change")) == INT64_MIN);
    assert_true(json_is_true(json_object_get(root, "yes")));
    assert_true(json_is_false(json_object_get(root, "no")));
    assert_true(json_number_value(json_object_get(root, "share")) == 0.125);
    assert_true(json_is_null(json_object_get(root, "nan")));
    list = json_object_get(root, "list");
    assert_int_equal(json_array_size(list), 4);
    assert_true(json_is_object(json_array_get(list, 1)));
    assert_true(json_is_array(json_array_get(list, 2)));
    assert_int_equal(json_integer_value(json_object_get(root, "key \"with\" quotes")), 2);
    json_decref(root);
}

TEST(another_reader_agrees)
{
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_init(&json, &out, false);
    write_everything(&json);
    check_everything(out.data);
    assert_null(strchr(out.data, '\n'));
    mt_buf_reset(&out);
    mt_json_init(&json, &out, true);
    write_everything(&json);
    check_everything(out.data);
    assert_int_equal(out.data[out.length - 1], '\n');
    mt_buf_release(&out);
}

TEST(layout)
{
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_init(&json, &out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_u64(&json, "a", 1);
    mt_json_array_begin(&json, "b");
    mt_json_u64(&json, NULL, 2);
    mt_json_u64(&json, NULL, 3);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "c");
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    assert_string_equal(out.data,
                        "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n  \"c\": []\n}\n");
    mt_buf_release(&out);
}

/* After a list whose rows are lines, the document is indented again. */
TEST(rows_may_be_lines)
{
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_init(&json, &out, true);
    mt_json_object_begin(&json, NULL);
    for (struct mt_json_list row = mt_json_lines(&json, "a", 2); mt_json_next(&row);)
        mt_json_u64(&json, "i", row.i);
    for (struct mt_json_list row = mt_json_rows(&json, "b", 1); mt_json_next(&row);)
        mt_json_u64(&json, "i", row.i);
    for (struct mt_json_list row = mt_json_lines(&json, "c", 0); mt_json_next(&row);)
        fail();
    mt_json_object_end(&json);
    assert_string_equal(out.data, "{\n  \"a\": [\n    {\"i\":0},\n    {\"i\":1}\n  ],\n"
                                  "  \"b\": [\n    {\n      \"i\": 0\n    }\n  ],\n"
                                  "  \"c\": []\n}\n");
    mt_buf_release(&out);
}

/* Invalid UTF-8 becomes U+FFFD, one for each invalid byte. */
TEST(invalid_utf8_is_replaced)
{
#define BAD "\xEF\xBF\xBD"
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"\x80", BAD},
        {"\xff\xfe", BAD BAD},
        {"a\xC3", "a" BAD},
        {"\xC3(", BAD "("},
        {"\xC0\xAF", BAD BAD},         /* overlong '/' */
        {"\xE0\x80\xAF", BAD BAD BAD}, /* overlong */
        {"\xF0\x80\x80\xAF", BAD BAD BAD BAD},
        {"\xED\xA0\x80", BAD BAD BAD},         /* surrogate */
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD}, /* beyond U+10FFFF */
        {"\xF5\x80\x80\x80", BAD BAD BAD BAD},
        {"\xE2\x82", BAD BAD},
        {"\xEF\xBF\xBF", "\xEF\xBF\xBF"},
        {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mt_buf out = {0};
        struct mt_json json;

        mt_json_init(&json, &out, false);
        mt_json_text(&json, NULL, cases[i].bytes);
        json_t *value = json_loads(out.data, JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        assert_string_equal(json_string_value(value), cases[i].text);
        json_decref(value);
        mt_buf_release(&out);
    }
}

/* Bytes of a text of `length` bytes and a character of three, according to another reader. */
static size_t read_length(size_t length, bool all, bool *is_cut)
{
    char text[MT_JSON_TEXT_BYTES + 16];
    struct mt_buf out = {0};
    struct mt_json json;

    memset(text, 'a', length);
    memcpy(text + length, "\xE2\x82\xAC", 4);
    mt_json_init(&json, &out, false);
    json.all = all;
    mt_json_text(&json, NULL, text);
    json_t *value = json_loads(out.data, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    size_t read = json_string_length(value);
    assert_null(strstr(json_string_value(value), "\xEF\xBF\xBD"));
    *is_cut = strcmp(json_string_value(value) + read - 3, "\xE2\x80\xA6") == 0;
    json_decref(value);
    mt_buf_release(&out);
    return read;
}

TEST(long_texts_are_cut_between_characters)
{
    bool is_cut;

    assert_int_equal(read_length(MT_JSON_TEXT_BYTES - 3, false, &is_cut), MT_JSON_TEXT_BYTES);
    assert_false(is_cut);
    for (size_t more = 0; more < 3; more++) {
        size_t length = MT_JSON_TEXT_BYTES - 2 + more;

        assert_int_equal(read_length(length, false, &is_cut), length + 3);
        assert_true(is_cut);
        assert_int_equal(read_length(length, true, &is_cut), length + 3);
        assert_false(is_cut);
    }
}

/* {"devices": [{"rows": [{"i": 0}, {"i": 1}, ...]}, ...]} */
static json_t *devices_of_rows(size_t devices, uint64_t rows, bool all)
{
    struct mt_buf out = {0};
    struct mt_json json;

    mt_json_init(&json, &out, true);
    json.all = all;
    mt_json_object_begin(&json, NULL);
    for (struct mt_json_list device = mt_json_objects(&json, "devices", devices);
         mt_json_next(&device);)
        for (struct mt_json_list row = mt_json_rows(&json, "rows", rows); mt_json_next(&row);)
            mt_json_u64(&json, "i", row.i);
    mt_json_object_end(&json);
    json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    mt_buf_release(&out);
    return root;
}

static void check_list(const json_t *object, const char *key, size_t count, size_t omitted)
{
    char name[32];

    snprintf(name, sizeof name, "%s_omitted", key);
    const json_t *left_out = json_object_get(object, name);
    assert_int_equal(json_array_size(json_object_get(object, key)), count);
    assert_int_equal(left_out != NULL, omitted > 0);
    assert_int_equal(json_integer_value(left_out), omitted);
}

TEST(lists_have_limits)
{
    static const struct {
        size_t devices, rows;
        bool all;
        size_t devices_shown, rows_shown;
    } cases[] = {
        {1, MT_JSON_ROWS, false, 1, MT_JSON_ROWS},
        {1, MT_JSON_ROWS + 1, false, 1, MT_JSON_ROWS},
        {1, MT_JSON_ROWS + 1, true, 1, MT_JSON_ROWS + 1},
        {2, MT_JSON_ROWS / 2, false, 2, MT_JSON_ROWS / 2},
        {8, 2000, false, 8, MT_JSON_ROWS / 8},
        {MT_JSON_OBJECTS + 1, 15, false, MT_JSON_OBJECTS, 15},
        {MT_JSON_OBJECTS + 1, 16, false, MT_JSON_OBJECTS, 15},
        {MT_JSON_OBJECTS + 1, 63, true, MT_JSON_OBJECTS + 1, 63},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = devices_of_rows(cases[i].devices, cases[i].rows, cases[i].all);
        const json_t *first = json_array_get(json_object_get(root, "devices"), 0);

        check_list(root, "devices", cases[i].devices_shown,
                   cases[i].devices - cases[i].devices_shown);
        check_list(first, "rows", cases[i].rows_shown, cases[i].rows - cases[i].rows_shown);
        json_decref(root);
    }
}

/* Rows of 4 KiB: the list ends after 512 KiB, not after 1,000 rows. */
TEST(lists_have_a_size)
{
    char text[MT_JSON_TEXT_BYTES];
    struct mt_buf out = {0};
    struct mt_json json;
    struct mt_json_list list;

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    mt_json_init(&json, &out, false);
    mt_json_object_begin(&json, NULL);
    mt_json_list_begin(&list, &json, "rows");
    for (int i = 0; i < MT_JSON_ROWS; i++)
        if (mt_json_list_takes(&list))
            mt_json_text(&json, NULL, text);
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    assert_true(list.omitted > 0);
    assert_in_range(out.length, MT_JSON_LIST_BYTES, MT_JSON_LIST_BYTES + 2 * sizeof text);
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
