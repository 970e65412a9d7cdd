/* Compares the document of `memtrace analyze --json` with its specification and the truth files:
 * every field exists, has its type, and sums are right. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"

static const char *const captures[] = {"seq2seq", "oom_adam", "gpt_ring", "twogpu",
                                       "churn",   "graph",    "leakval"};

static json_t *analyze(const char *capture)
{
    json_error_t error;
    char command[1024];

    snprintf(command, sizeof command, "'%s' analyze --json -q '%s/captures/%s.pickle.zst'",
             MEMTRACE_PROGRAM, MEMTRACE_FIXTURES, capture);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    json_t *document = json_loadf(pipe, JSON_REJECT_DUPLICATES, &error);
    assert_int_equal(pclose(pipe), 0);
    if (!document)
        fail_msg("%s: line %d: %s", capture, error.line, error.text);
    return document;
}

/* "name:type ...": i integer, s string, S string or null, I integer or null, b
 * boolean, r real or integer, a array, o object. */
static void check_fields(const json_t *object, const char *fields)
{
    char word[80];
    int length;

    assert_true(json_is_object(object));
    for (; sscanf(fields, "%79s%n", word, &length) == 1; fields += length) {
        char *type = strchr(word, ':');

        *type++ = '\0';
        const json_t *field = json_object_get(object, word);
        bool ok =
            (*type == 'i' && json_is_integer(field)) || (*type == 's' && json_is_string(field)) ||
            (*type == 'S' && (json_is_string(field) || json_is_null(field))) ||
            (*type == 'I' && (json_is_integer(field) || json_is_null(field))) ||
            (*type == 'b' && json_is_boolean(field)) || (*type == 'r' && json_is_number(field)) ||
            (*type == 'a' && json_is_array(field)) || (*type == 'o' && json_is_object(field));
        if (!ok)
            fail_msg("field '%s' is missing or not of type %s", word, type);
    }
}

static json_int_t number(const json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

static void check_summary(const json_t *summary)
{
    static const char *const peaks[] = {"requested_peak", "allocated_peak", "active_peak",
                                        "reserved_peak"};
    const json_t *reserved = json_object_get(summary, "reserved_peak");

    check_fields(summary, "events:i allocations:i frees:i segments_peak:i ooms:i retries:i "
                          "complete:b requested_peak:o allocated_peak:o active_peak:o "
                          "reserved_peak:o fragmentation_at_reserved_peak:r");
    for (size_t i = 0; i < 4; i++)
        check_fields(json_object_get(summary, peaks[i]), "bytes:i t_ns:i event:i step:I phase:S");
    double share = 1.0 - (double)number(json_object_get(reserved, "then"), "allocated") /
                             (double)number(reserved, "bytes");
    assert_float_equal(
        json_number_value(json_object_get(summary, "fragmentation_at_reserved_peak")), share,
        0.000001);
}

static void check_phases(const json_t *phases)
{
    json_t *phase;
    size_t i;

    json_array_foreach(phases, i, phase)
    {
        check_fields(phase, "path:s name:s step:I thread:i begin_ns:i end_ns:i enter:o exit:o "
                            "peak:o");
        check_fields(json_object_get(phase, "enter"), "requested:i allocated:i reserved:i");
        check_fields(json_object_get(phase, "exit"), "requested:i allocated:i reserved:i");
        check_fields(json_object_get(phase, "peak"), "requested:i allocated:i reserved:i");
        assert_true(number(phase, "begin_ns") <= number(phase, "end_ns"));
    }
}

static void check_sites(const json_t *device)
{
    json_int_t bytes = 0;
    json_t *site;
    size_t i;

    json_array_foreach(json_object_get(device, "peak_sites"), i, site)
    {
        check_fields(site, "site:s stack:a bytes:i blocks:i phase:S");
        assert_true(number(site, "blocks") > 0);
        bytes += number(site, "bytes");
    }
    assert_int_equal(
        bytes,
        number(json_object_get(json_object_get(device, "summary"), "allocated_peak"), "bytes"));
}

TEST(every_field_is_there)
{
    for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
        json_t *document = analyze(captures[i]), *device;
        size_t index;

        check_fields(document, "schema:s input:o devices:a");
        assert_string_equal(json_string_value(json_object_get(document, "schema")),
                            "memtrace.analyze/1");
        check_fields(json_object_get(document, "input"),
                     "path:s format:s sha256:s framework:S device_names:a options:S");
        json_array_foreach(json_object_get(document, "devices"), index, device)
        {
            check_fields(device, "device:i summary:o verify:o phases:a peak_sites:a");
            check_fields(json_object_get(device, "verify"),
                         "policy:s allocations:i addresses_exact:i segment_events:i "
                         "segment_events_exact:i first_difference:S");
            check_summary(json_object_get(device, "summary"));
            check_phases(json_object_get(device, "phases"));
            check_sites(device);
        }
        assert_true(index >= 1);
        json_decref(document);
    }
}

/* Numbers of seq2seq from its truth file, and stacks with the outermost frame first. */
TEST(seq2seq_in_figures)
{
    json_t *document = analyze("seq2seq"), *device, *summary, *peak, *stack;

    device = json_array_get(json_object_get(document, "devices"), 0);
    summary = json_object_get(device, "summary");
    peak = json_object_get(summary, "allocated_peak");
    assert_int_equal(number(peak, "bytes"), 4776865280);
    assert_int_equal(number(peak, "step"), 1);
    assert_string_equal(json_string_value(json_object_get(peak, "phase")), "step#1/backward");
    assert_int_equal(number(json_object_get(summary, "reserved_peak"), "bytes"), 4907335680);
    assert_int_equal(number(json_object_get(summary, "requested_peak"), "bytes"), 4731269720);
    assert_int_equal(number(summary, "allocations"), 7615);
    assert_int_equal(number(summary, "segments_peak"), 207);
    assert_true(json_is_true(json_object_get(summary, "complete")));
    assert_true(
        json_is_null(json_object_get(json_object_get(device, "verify"), "first_difference")));
    stack = json_object_get(json_array_get(json_object_get(device, "peak_sites"), 1), "stack");
    assert_string_equal(json_string_value(json_array_get(stack, 0)), "<module> train.py:166");
    json_decref(document);
}

TEST(hash_is_that_of_the_file)
{
    json_t *document = analyze("oom_adam");
    const json_t *input = json_object_get(document, "input");
    struct mt_sha256 sha;
    char hash[MT_SHA256_TEXT], piece[4096];
    size_t length;
    FILE *file = fopen(json_string_value(json_object_get(input, "path")), "rb");

    assert_non_null(file);
    mt_sha256_init(&sha);
    while ((length = fread(piece, 1, sizeof piece, file)) > 0)
        mt_sha256_add(&sha, piece, length);
    fclose(file);
    mt_sha256_finish(&sha, hash);
    assert_string_equal(json_string_value(json_object_get(input, "sha256")), hash);
    json_decref(document);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
