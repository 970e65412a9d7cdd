/* Settings: JSON and TOML give the same entries. Invalid input is refused with its line. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "settings_text.h"

static struct mt_settings settings;
static struct mt_error error;

static enum mt_status parse(const char *text)
{
    /* a copy of exactly its length, so that sanitizers detect reads past the end */
    size_t length = strlen(text);
    char *copy = malloc(length + !length);
    enum mt_status status;

    assert_non_null(copy);
    memcpy(copy, text, length);
    memset(&error, 0, sizeof error);
    if (text[strspn(text, " \n")] == '{')
        status = mt_settings_parse_json(copy, length, &settings, &error);
    else
        status = mt_settings_parse_toml(copy, length, &settings, &error);
    free(copy);
    return status;
}

static void check_example(void)
{
    const struct mt_setting *found = mt_settings_find(&settings, "a.b.limit");

    assert_int_equal(settings.count, 4);
    assert_non_null(found);
    assert_int_equal(found->kind, MT_SETTING_TEXT);
    assert_string_equal(found->text, "1 \"x\" \\ \xC3\xA9\t");
    found = mt_settings_find(&settings, "a.b.n");
    assert_true(found && found->kind == MT_SETTING_NUMBER && found->is_whole);
    assert_true(found->number == 18446744073709551615u);
    found = mt_settings_find(&settings, "on");
    assert_true(found && found->kind == MT_SETTING_BOOL && found->number == 1);
    found = mt_settings_find(&settings, "x y");
    assert_true(found && found->kind == MT_SETTING_NUMBER && !found->is_whole);
    assert_string_equal(found->text, "-1.5e+3");
    assert_null(mt_settings_find(&settings, "a"));
    assert_true(mt_settings_number(&settings, "a.%s.n", "b") == 18446744073709551615u);
    assert_int_equal(mt_settings_number(&settings, "x y"), 0); /* not whole */
    assert_int_equal(mt_settings_number(&settings, "a.b.limit"), 0);
    assert_string_equal(mt_settings_text(&settings, "%c.b.limit", 'a'), "1 \"x\" \\ \xC3\xA9\t");
    assert_null(mt_settings_text(&settings, "a.b.n"));
    assert_null(mt_settings_text(&settings, "%0200d", 0)); /* longer than any such path */
    mt_settings_release(&settings);
}

TEST(json_and_toml_are_equivalent)
{
    assert_int_equal(
        parse("\n{ \"on\": true, \"x y\": -1.5e+3, \"a\": {\"b\": {\"limit\": \"1 \\\"x\\\" "
              "\\\\ \\u00e9\\t\",\r\n \"n\": 18446744073709551615, \"no\": null}}}\n"),
        MT_OK);
    check_example();
    assert_int_equal(parse("# what is this\non = true\r\n'x y' = -1.5e+3 # a comment\n\n[a . b]\n"
                           "limit = \"1 \\\"x\\\" \\\\ \\u00e9\\t\"\nn=18446744073709551615"),
                     MT_OK);
    check_example();
    assert_int_equal(parse("a.b.n = 18446744073709551615\n\"on\" = true\n\"x y\"=-1.5e+3\n"
                           "a.b.'limit' = \"1 \\\"x\\\" \\\\ \\u00e9\\t\""),
                     MT_OK);
    check_example();
}

TEST(arrays_of_json_are_numbered)
{
    assert_int_equal(parse("{\"a\": [1, [], {}, {\"b\": [2]}]}"), MT_OK);
    assert_int_equal(settings.count, 2);
    assert_string_equal(settings.entries[0].path, "a.0");
    assert_string_equal(settings.entries[1].path, "a.3.b.0");
    mt_settings_release(&settings);
}

TEST(nothing_is_no_settings)
{
    static const char *const texts[] = {"", "\n\n", "# nothing", "{}", " { } ", "[a]\n[b]"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(parse(texts[i]), MT_OK);
        assert_int_equal(settings.count, 0);
        mt_settings_release(&settings);
    }
}

TEST(errors_name_their_line)
{
    static const struct {
        const char *text, *said;
    } cases[] = {{"a = 1\na = 2", "line 2: 'a' is given twice"},
                 {"[a]\nb = 1\n[a]\nb = 1", "line 4: 'a.b' is given twice"},
                 {"{\"a\":1,\"a\":1}", "line 1: 'a' is given twice"},
                 {"a = 1 2", "line 1: unexpected text"},
                 {"a = x", "line 1: this is not a value"},
                 {"a = 01", "line 1: this is not a value"},
                 {"a = 1.", "line 1: this is not a value"},
                 {"a = 1e", "line 1: this is not a value"},
                 {"a = -", "line 1: this is not a value"},
                 {"a =", "line 1: a value is missing"},
                 {"a = null", "line 1: this is not a value"},
                 {"= 1", "line 1: a key is missing"},
                 {"a. = 1", "line 1: a key is missing"},
                 {"a 1", "line 1: '=' is missing"},
                 {"\n[a\nb = 1", "line 2: ']' is missing"},
                 {"[[a]]", "line 1: arrays of tables"},
                 {"a = [1]", "line 1: arrays and inline tables"},
                 {"a = {}", "line 1: arrays and inline tables"},
                 {"a = \"x\ny\"", "line 1: a string is not terminated"},
                 {"a = \"\\x\"", "line 1: unknown escape"},
                 {"a = \"\\", "line 1: "},
                 {"a = \"\\u12", "line 1: \\u needs four"},
                 {"a = \"\\u0000\"", "line 1: \\u of this number"},
                 {"a = \"\\ud800\"", "line 1: \\u of this number"},
                 {"a = \"\x01\"", "line 1: control character"},
                 {"{", "line 1: a key in quotes"},
                 {"{\"\": 1}", "line 1: a key is empty"},
                 {"{\"a\" 1}", "line 1: ':' is missing"},
                 {"{\"a\": 1 \"b\": 2}", "line 1: ',' or '}' is missing"},
                 {"{\"a\": [1 2]}", "line 1: ',' or ']' is missing"},
                 {"{\"a\": [1,]}", "line 1: a value is missing"},
                 {"{\"a\": 1}}", "line 1: unexpected text"},
                 {"{\"a\": 'x'}", "line 1: a value is missing"},
                 {"{\"a\": True}", "line 1: this is not a value"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text), MT_ERR_FORMAT);
        if (strncmp(error.text, cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s: '%s'", cases[i].text, error.text);
        mt_settings_release(&settings);
    }
}

static void add_many(struct mt_buf *text, const char *part, size_t count)
{
    mt_buf_reset(text);
    for (size_t i = 0; i < count; i++)
        mt_buf_add_text(text, part);
}

TEST(no_document_is_too_much)
{
    struct mt_buf text = {0};

    add_many(&text, "{\"a\":", 100000);
    assert_int_equal(parse(text.data), MT_ERR_FORMAT);
    mt_settings_release(&settings);
    add_many(&text, "a.", 100000);
    assert_int_equal(parse(text.data), MT_ERR_FORMAT);
    mt_settings_release(&settings);
    mt_buf_reset(&text);
    mt_buf_add_text(&text, "{\"a\": [1");
    for (size_t i = 0; i < MT_MAX_SETTINGS; i++)
        mt_buf_add_text(&text, ",1");
    mt_buf_add_text(&text, "]}");
    assert_int_equal(parse(text.data), MT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "too many values"));
    mt_settings_release(&settings);
    add_many(&text, " ", MT_SETTINGS_BYTES + 1);
    assert_int_equal(parse(text.data), MT_ERR_FORMAT);
    assert_int_equal(mt_settings_parse_toml("a\0= 1", 5, &settings, &error), MT_ERR_FORMAT);
    assert_int_equal(mt_settings_parse_toml("\n{}", 3, &settings, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "line 2: JSON is not supported: write TOML");
    mt_settings_release(&settings);
    mt_buf_release(&text);
}

/* Each value of a table copies the table's name: many values with a long name would need too much
 * memory. */
TEST(long_paths_are_refused)
{
    struct mt_buf text = {0};

    mt_buf_add_char(&text, '[');
    for (size_t i = 0; i < MT_SETTINGS_PATH_BYTES; i++)
        mt_buf_add_char(&text, 'a');
    mt_buf_add_text(&text, "]\nb = 1\n");
    assert_int_equal(parse(text.data), MT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "longer than 4,096 bytes"));
    assert_non_null(strstr(error.text, "line 2"));
    mt_settings_release(&settings);
    mt_buf_release(&text);
}

TEST(entries_are_found_by_path)
{
    struct mt_buf text = {0}, path = {0};

    for (unsigned i = 0; i < 5000; i++)
        mt_buf_printf(&text, "k%u = %u\n", i, i);
    assert_int_equal(parse(text.data), MT_OK);
    for (unsigned i = 0; i < 5000; i++) {
        mt_buf_reset(&path);
        mt_buf_printf(&path, "k%u", i);
        assert_int_equal(mt_settings_find(&settings, path.data)->number, i);
    }
    assert_null(mt_settings_find(&settings, "k5000"));
    assert_null(mt_settings_find(&settings, ""));
    mt_settings_release(&settings);
    mt_buf_release(&text);
    mt_buf_release(&path);
}

/* Every prefix of a document, and a replacement of every byte: no crash. */
TEST(any_text_is_read_or_refused)
{
    static const char *const texts[] = {
        "{\"a\": {\"b\": [\"x\\u00e9\", 1.5e3, true, null]}, \"c\": \"\\\\\"}",
        "# c\n[a.'b']\nc = \"x\\u00e9\" # d\nd.e = 15\nf = 'y'\ng = false\n"};
    static const char others[] = "\"\\{}[],:=#.'\n\x80-1";

    for (size_t i = 0; i < 2; i++) {
        char *copy = strdup(texts[i]);

        assert_non_null(copy);
        for (size_t at = 0; copy[at]; at++) {
            char kept = copy[at];

            for (size_t j = 0; j < sizeof others; j++) { /* its NUL truncates the text */
                copy[at] = others[j];
                (void)parse(copy);
                mt_settings_release(&settings);
            }
            copy[at] = kept;
        }
        free(copy);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
