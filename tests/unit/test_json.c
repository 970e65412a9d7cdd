#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

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

static void another_reader_agrees(void **state)
{
    struct mt_buf out = {0};
    struct mt_json json;

    (void)state;
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

static void layout(void **state)
{
    struct mt_buf out = {0};
    struct mt_json json;

    (void)state;
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

/* What is not UTF-8 becomes U+FFFD, one for each byte that does not fit. */
static void text_that_is_not_utf8(void **state)
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
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mt_buf out = {0};
        struct mt_json json;
        json_t *value;

        mt_json_init(&json, &out, false);
        mt_json_text(&json, NULL, cases[i].bytes);
        value = json_loads(out.data, JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        assert_string_equal(json_string_value(value), cases[i].text);
        json_decref(value);
        mt_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_reader_agrees),
        cmocka_unit_test(layout),
        cmocka_unit_test(text_that_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
