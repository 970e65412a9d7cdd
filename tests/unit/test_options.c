/* Option tables: accepted command lines, and every kind of error. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outputs.h"
#include "util.h"

#define MAX_WORDS 50

struct values {
    struct mt_common common;
    const char *output;
    struct mt_text_list policies;
    uint64_t limit, top;
};

/* The result of a parse. */
struct outcome {
    struct values values;
    int code, count;
    char **arguments;
    char said[2048]; /* stdout and stderr */
    char *argv[MAX_WORDS];
    char line[512];
};

static const struct mt_command command = {"replay", "TRACE [options]", "a summary", "More.", NULL};

static int capture_begin(int kept[2])
{
    char name[] = "/tmp/memtrace-test-XXXXXX";
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    unlink(name);
    fflush(stdout);
    kept[0] = dup(STDOUT_FILENO);
    kept[1] = dup(STDERR_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    return fd;
}

static void capture_end(int fd, const int kept[2], char *text, size_t capacity)
{
    dup2(kept[0], STDOUT_FILENO);
    dup2(kept[1], STDERR_FILENO);
    close(kept[0]);
    close(kept[1]);
    ssize_t length = pread(fd, text, capacity - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(fd);
}

/* Splits `line` at single spaces and parses it with one or two positionals. */
static void parse(struct outcome *outcome, const char *line)
{
    struct values *values = &outcome->values;
    struct mt_option options[] = {
        {"policy", 'p', MT_OPTION_LIST, "POLICY", "simulate this", &values->policies},
        {"limit", 0, MT_OPTION_BYTES, "BYTES", "device memory", &values->limit},
        {"output", 'o', MT_OPTION_TEXT, "FILE", "where to write", &values->output},
        {"top", 'n', MT_OPTION_COUNT, "N", "rows", &values->top},
        MT_COMMON_OPTIONS(values->common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int argc = 0, kept[2], fd;

    memset(outcome, 0, sizeof *outcome);
    snprintf(outcome->line, sizeof outcome->line, "%s", line);
    for (char *at = outcome->line; at; argc++) {
        assert_true(argc < MAX_WORDS - 1);
        outcome->argv[argc] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    fd = capture_begin(kept);
    outcome->code = mt_options_parse(&command, options, argc, outcome->argv, 1, 2,
                                     &outcome->arguments, &outcome->count);
    capture_end(fd, kept, outcome->said, sizeof outcome->said);
}

TEST(options_stand_anywhere)
{
    static const char *const lines[] = {
        "replay -o out --limit 12GiB a b --json",       "replay a -oout b --limit=12GiB --json",
        "replay a b --json --limit=12GiB --output=out", "replay --json a -o out --limit 12GiB -- b",
        "replay --out out --lim 12GiB --js a b",
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(lines); i++) {
        struct outcome outcome;
        parse(&outcome, lines[i]);
        assert_int_equal(outcome.code, -1);
        assert_int_equal(outcome.count, 2);
        assert_string_equal(outcome.arguments[0], "a");
        assert_string_equal(outcome.arguments[1], "b");
        assert_string_equal(outcome.values.output, "out");
        assert_int_equal(outcome.values.limit, 12 * MT_GIB);
        assert_true(outcome.values.common.json);
        assert_false(outcome.values.common.strict);
        assert_string_equal(outcome.said, "");
    }
}

TEST(posixly_correct_changes_nothing)
{
    struct outcome outcome;

    setenv("POSIXLY_CORRECT", "1", 1);
    parse(&outcome, "replay a --json");
    unsetenv("POSIXLY_CORRECT");
    assert_int_equal(outcome.code, -1);
    assert_true(outcome.values.common.json);
}

TEST(dashes)
{
    struct outcome outcome;

    parse(&outcome, "replay - -- --json");
    assert_int_equal(outcome.code, -1);
    assert_int_equal(outcome.count, 2);
    assert_string_equal(outcome.arguments[0], "-");
    assert_string_equal(outcome.arguments[1], "--json");
    assert_false(outcome.values.common.json);
    parse(&outcome, "replay a --output -- -n 3"); /* a value may look like an option */
    assert_int_equal(outcome.code, -1);
    assert_string_equal(outcome.values.output, "--");
    assert_int_equal(outcome.values.top, 3);
}

TEST(lists_keep_order_and_last_text_wins)
{
    struct outcome outcome;

    parse(&outcome, "replay -p a --policy=b x -pc -o 1 -o 2 --policy=");
    assert_int_equal(outcome.code, -1);
    assert_int_equal(outcome.values.policies.count, 4);
    assert_string_equal(outcome.values.policies.items[0], "a");
    assert_string_equal(outcome.values.policies.items[1], "b");
    assert_string_equal(outcome.values.policies.items[2], "c");
    assert_string_equal(outcome.values.policies.items[3], "");
    assert_string_equal(outcome.values.output, "2");
}

TEST(bad_usage)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"replay", "replay: missing argument; usage: memtrace replay TRACE [options]"},
        {"replay a b c", "replay: unexpected argument 'c'"},
        {"replay a -- b c", "replay: unexpected argument 'c'"},
        {"replay a --plicy=x", "unknown option '--plicy'; did you mean '--policy'?"},
        {"replay a --polciy x", "unknown option '--polciy'; did you mean '--policy'?"},
        {"replay a --jsn", "unknown option '--jsn'; did you mean '--json'?"},
        {"replay a --hlep", "unknown option '--hlep'; did you mean '--help'?"},
        {"replay a --frobnicate", "unknown option '--frobnicate'"},
        {"replay a -z", "unknown option '-z'"},
        {"replay a -qz", "unknown option '-z'"},
        {"replay a --json=1", "option '--json' takes no value"},
        {"replay a --limit", "option '--limit' needs a value: BYTES"},
        {"replay a -o", "option '--output' needs a value: FILE"},
        {"replay a --limit=", "option '--limit' needs a number of bytes such as 12GiB, not ''"},
        {"replay a --limit=much",
         "option '--limit' needs a number of bytes such as 12GiB, not 'much'"},
        {"replay a --limit -5", "option '--limit' needs a number of bytes such as 12GiB, not '-5'"},
        {"replay a --top 3.5", "option '--top' needs a whole number, not '3.5'"},
        {"replay a --top=", "option '--top' needs a whole number, not ''"},
        {"replay a --top=-1", "option '--top' needs a whole number, not '-1'"},
        {"replay a --top=18446744073709551616",
         "option '--top' needs a whole number, not '18446744073709551616'"},
        {"replay a --", NULL},
        {"replay --", "replay: missing argument; usage: memtrace replay TRACE [options]"},
        {"replay a --=x", "option '--' is ambiguous"},
        {"replay a --\x1b[31m", "unknown option '--\\x1b[31m'"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        struct outcome outcome;
        char wanted[512] = "";
        parse(&outcome, cases[i].line);
        if (cases[i].said)
            snprintf(wanted, sizeof wanted,
                     "memtrace: %s\nmemtrace: see 'memtrace replay --help'\n", cases[i].said);
        assert_string_equal(outcome.said, wanted);
        assert_int_equal(outcome.code, cases[i].said ? MT_EXIT_USAGE : -1);
    }
}

TEST(too_many_of_a_list)
{
    struct outcome outcome;
    char line[512] = "replay a";

    for (int i = 0; i < 32; i++)
        strcat(line, " -px");
    parse(&outcome, line);
    assert_int_equal(outcome.code, -1);
    assert_int_equal(outcome.values.policies.count, 32);
    strcat(line, " -px");
    parse(&outcome, line);
    assert_int_equal(outcome.code, MT_EXIT_USAGE);
    assert_string_equal(outcome.said, "memtrace: option '--policy' may be given at most 32 times\n"
                                      "memtrace: see 'memtrace replay --help'\n");
}

TEST(help)
{
    static const char *const lines[] = {"replay --help", "replay -h", "replay a b --help c"};

    for (size_t i = 0; i < MT_ARRAY_LEN(lines); i++) {
        struct outcome outcome;
        parse(&outcome, lines[i]);
        assert_int_equal(outcome.code, MT_EXIT_OK);
        assert_string_equal(outcome.said,
                            "memtrace replay: a summary\n"
                            "\n"
                            "usage: memtrace replay TRACE [options]\n"
                            "\n"
                            "More.\n"
                            "\n"
                            "options:\n"
                            "  -p, --policy POLICY     simulate this\n"
                            "      --limit BYTES       device memory\n"
                            "  -o, --output FILE       where to write\n"
                            "  -n, --top N             rows\n"
                            "      --json              print one JSON document\n"
                            "  -q, --quiet             print no progress and no notes\n"
                            "      --max-memory BYTES  limit for memtrace's own memory (default: "
                            "half of the\n"
                            "                          machine's)\n"
                            "  -h, --help              print this help\n"
                            "\nexit status: 0 ok, 1 check failed, 2 usage, 3 input, 4 output, "
                            "5 strict, 6 bug\n");
    }
}

TEST(completions)
{
    struct outcome outcome;

    parse(&outcome, "replay --completion-helper");
    assert_int_equal(outcome.code, MT_EXIT_OK);
    assert_string_equal(outcome.said, "--policy=\n-p\n--limit=\n--output=\n-o\n--top=\n-n\n--json\n"
                                      "--quiet\n-q\n--max-memory=\n--help\n-h\n");
}

TEST(suggestions)
{
    static const char *const names[] = {"analyze", "replay", "render", "info", "x"};
    char large[200];

    assert_string_equal(mt_did_you_mean("analyse", names, 5), "analyze");
    assert_string_equal(mt_did_you_mean("anlayze", names, 5), "analyze");
    assert_string_equal(mt_did_you_mean("rende", names, 5), "render");
    assert_string_equal(mt_did_you_mean("ifno", names, 5), "info");
    assert_null(mt_did_you_mean("xyzzy", names, 5));
    assert_null(mt_did_you_mean("onfi", names, 5)); /* 2 edits are too many for 4 letters */
    assert_null(mt_did_you_mean("analyze", names, 0));
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_null(mt_did_you_mean(large, names, 5));
}

TEST(control_characters_are_escaped)
{
    static const char text[] = "a\n\x1b[2J\x7f caf\xC3\xA9 \xC2\x9B"
                               "31m \xC2\xA0";
    struct mt_buf out = {0};

    mt_buf_add_printable(&out, text, sizeof text - 1);
    assert_string_equal(out.data, "a\\x0a\\x1b[2J\\x7f caf\xC3\xA9 \\u009b"
                                  "31m \xC2\xA0");
    mt_buf_release(&out);
}

TEST(errors_name_the_place)
{
    static const struct {
        const char *path;
        struct mt_error error;
        int code;
        const char *said;
    } cases[] = {
        {"a.pickle",
         {MT_ERR_FORMAT, 123, "bad opcode"},
         MT_EXIT_INPUT,
         "memtrace: cannot read 'a.pickle': bad opcode (at byte 123)\n"},
        {"-",
         {MT_ERR_IO, MT_NO_OFFSET, "is a directory"},
         MT_EXIT_INPUT,
         "memtrace: cannot read standard input: is a directory\n"},
        {"x\ny",
         {MT_ERR_OUTPUT, MT_NO_OFFSET, ""},
         MT_EXIT_OUTPUT,
         "memtrace: cannot write 'x\\x0ay': cannot write\n"},
        {"a",
         {MT_ERR_USAGE, MT_NO_OFFSET, "unknown format 'b'"},
         MT_EXIT_USAGE,
         "memtrace: unknown format 'b'\n"},
        {"a",
         {MT_ERR_MEMORY, MT_NO_OFFSET, ""},
         MT_EXIT_INPUT,
         "memtrace: cannot read 'a': out of memory\n"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        char said[512];
        int kept[2], fd = capture_begin(kept), code;
        code = mt_report_error(cases[i].path, &cases[i].error);
        capture_end(fd, kept, said, sizeof said);
        assert_int_equal(code, cases[i].code);
        assert_string_equal(said, cases[i].said);
    }
}

TEST(files_that_cannot_be_written)
{
    char said[512];
    int kept[2], fd = capture_begin(kept), missing, full;
    struct mt_outputs outputs = {.force = false};
    struct mt_buf bytes = {0};

    mt_buf_add_char(&bytes, 'x');
    missing = mt_outputs_write("/dev/null/file", &outputs, &mt_file_svg, &bytes);
    full = mt_outputs_write("/dev/full", &outputs, &mt_file_svg, &bytes);
    capture_end(fd, kept, said, sizeof said);
    assert_int_equal(missing, MT_EXIT_OUTPUT);
    assert_int_equal(full, MT_EXIT_OUTPUT);
    assert_string_equal(said, "memtrace: cannot write '/dev/null/file': Not a directory\n"
                              "memtrace: cannot write '/dev/full': No space left on device\n");
    mt_buf_release(&bytes);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
