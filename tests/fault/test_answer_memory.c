/* What the command line makes of a text that is missing because there was no memory for it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "dry_run_notes.h"
#include "failing_alloc.h"
#include "file_hash.h"
#include "html_table.h"
#include "markdown_table.h"
#include "process_memory.h"
#include "settings_text.h"
#include "text_table.h"
#include "wrapped_text.h"

static void a_missing_text_is_a_failed_output(void **state)
{
    struct mt_table table;
    struct mt_buf out[4] = {{0}};

    (void)state;
    mt_add_wrapped(&out[0], NULL, 0, 2);
    mt_add_shortened(&out[1], NULL, 10);
    mt_buf_add_text(&out[2], NULL);
    mt_table_begin(&table, "what");
    MT_CELLS(&table, MT_TEXT(NULL));
    mt_add_text_table(&out[3], &table, 0, mt_plain_style());
    for (size_t i = 0; i < 4; i++) {
        assert_true(out[i].failed);
        mt_buf_release(&out[i]);
    }
}

static void add_markdown_table(struct mt_buf *out)
{
    struct mt_table table;

    mt_table_begin(&table, "~site|#bytes");
    for (size_t i = 0; i < 6000; i++)
        MT_CELLS(&table, MT_SITE("train.py:12"), MT_BYTES(i));
    out->failed |= table.failed;
    mt_add_markdown_head(out, &table);
    for (size_t row = 0; row < mt_table_rows(&table); row++)
        mt_add_markdown_row(out, &table, row);
    mt_table_release(&table);
}

static void add_table(struct mt_buf *out)
{
    const struct mt_html_table html = {"sortable", "name", 0, 0};
    struct mt_table table;

    mt_table_begin(&table, "~site|#bytes");
    for (size_t i = 0; i < 6000; i++)
        MT_CELLS(&table, MT_SITE("train.py:12"), MT_BYTES(i));
    mt_add_html_table(out, &table, &html);
    mt_table_begin(&table, "~site|#bytes");
    for (size_t i = 0; i < 6000; i++)
        MT_CELLS(&table, MT_SITE("train.py:12"), MT_BYTES(i));
    mt_add_text_table(out, &table, 2, mt_plain_style());
    add_markdown_table(out);
}

static void a_table_is_whole_or_failed(void **state)
{
    struct mt_buf whole = {0};
    size_t total;

    (void)state;
    fail_allocation(0, false);
    add_table(&whole);
    total = stop_failing();
    assert_false(whole.failed);
    for (size_t n = 1; n <= total; n++) {
        struct mt_buf out = {0};

        fail_allocation(n, false);
        add_table(&out);
        stop_failing();
        if (!out.failed && (out.length != whole.length || strcmp(out.data, whole.data) != 0))
            fail_msg("allocation %zu: a part is missing", n);
        mt_buf_release(&out);
    }
    assert_true(total > 5);
    mt_buf_release(&whole);
}

/* What `say` writes to standard error, without a newline. */
static void heard(void (*say)(void), char text[200])
{
    int before = dup(STDERR_FILENO), ends[2];
    ssize_t length;

    assert_true(before >= 0 && pipe(ends) == 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    say();
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(ends[1]);
    close(before);
    length = read(ends[0], text, 199);
    close(ends[0]);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

static void say_something(void)
{
    mt_say("no memory for '%s'", "a\x1b[1m");
}

static void a_message_needs_no_memory(void **state)
{
    char text[200];

    (void)state;
    fail_allocation(1, true);
    heard(say_something, text);
    assert_int_equal(stop_failing(), 0);
    assert_string_equal(text, "memtrace: no memory for 'a\\x1b[1m'");
}

static void settings_never_blame_the_syntax(void **state)
{
    static const char document[] = "schema = \"memtrace.budget/1\"\n"
                                   "[max-peak]\nreserved = \"16GiB\"\n\"a b\" = 3\n";
    size_t total = 0; /* of the run without a failure; one that fails ends before */

    (void)state;
    for (size_t n = 0; n <= total; n++) {
        struct mt_settings settings;
        struct mt_error error = {.status = MT_OK};
        enum mt_status status;
        size_t made;

        fail_allocation(n, false);
        status = mt_settings_parse_toml(document, sizeof document - 1, &settings, &error);
        made = stop_failing();
        total = n ? total : made;
        if (status && strcmp(error.text, "out of memory") != 0)
            fail_msg("allocation %zu: %s", n, error.text);
        if (!status && settings.count != 3)
            fail_msg("allocation %zu: %zu settings", n, settings.count);
        mt_settings_release(&settings);
    }
    assert_true(total > 5);
}

static void a_hash_that_cannot_be_had_is_an_error(void **state)
{
    char text[MT_SHA256_TEXT];
    struct mt_error error;

    (void)state;
    assert_int_equal(mt_file_hash("/nowhere/at/all", text, &error), MT_ERR_IO);
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_equal(mt_file_hash("/", text, &error), MT_OK);
    assert_string_equal(text, "");
}

static void print_nothing_after_a_failure(void)
{
    struct mt_buf answer = {0};

    mt_buf_add_text(&answer, "an answer that lacks a word");
    assert_int_equal(mt_print(&answer), MT_EXIT_INPUT);
    mt_buf_release(&answer);
}

static void read_what_is_damaged(void)
{
    const struct mt_error error = {
        .status = MT_ERR_FORMAT, .offset = MT_NO_OFFSET, .text = "damaged input"};

    assert_int_equal(mt_report_error("x.trace", &error), MT_EXIT_INPUT);
}

/* Last: the failure stays for the rest of the process. */
static void a_failure_is_remembered(void **state)
{
    struct mt_buf out = {0};
    char text[200];

    (void)state;
    fail_allocation(1, false);
    mt_buf_add_text(&out, "a word");
    stop_failing();
    assert_true(mt_memory_has_failed());
    mt_buf_release(&out);
    heard(print_nothing_after_a_failure, text);
    assert_string_equal(text, "memtrace: cannot print the answer: out of memory");
    heard(read_what_is_damaged, text);
    assert_string_equal(text, "memtrace: cannot read 'x.trace': out of memory");
}

/* The name of the folder is the last allocation. */
static void notes_without_memory_are_no_empty_notes(void **state)
{
    char cache[] = "/tmp/memtrace-notes-XXXXXX";
    struct mt_dry_run_notes notes;

    (void)state;
    assert_non_null(mkdtemp(cache));
    fail_allocation(0, false);
    mt_dry_run_notes_open(&notes, cache);
    size_t count = stop_failing();
    assert_false(notes.failed);
    mt_dry_run_notes_close(&notes);
    fail_allocation(count, false);
    mt_dry_run_notes_open(&notes, cache);
    stop_failing();
    assert_true(notes.failed);
    mt_dry_run_notes_close(&notes);
    assert_int_equal(rmdir(cache), 0); /* nothing is left in it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_text_is_a_failed_output),
        cmocka_unit_test(a_table_is_whole_or_failed),
        cmocka_unit_test(a_message_needs_no_memory),
        cmocka_unit_test(settings_never_blame_the_syntax),
        cmocka_unit_test(a_hash_that_cannot_be_had_is_an_error),
        cmocka_unit_test(a_failure_is_remembered),
        cmocka_unit_test(notes_without_memory_are_no_empty_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
