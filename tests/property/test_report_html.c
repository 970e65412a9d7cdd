/* The page of random and hostile traces: it stays below its limit, its data can be
 * read, and has for every instant the same answer as a query of that instant. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "fake_trace.h"
#include "history.h"
#include "report_html.h"
#include "util.h"

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part))) {
        count++;
        text += strlen(part);
    }
    return count;
}

/* The sums of all pages: a check of none would be no check. */
static unsigned claims, exact_columns;

enum { GROUP_NUMBERS = 9 }; /* of a group in the data */

static json_t *data_of(const char *page)
{
    static const char begin[] = "<script type=\"application/json\" id=\"mt-data\">";
    const char *at = strstr(page, begin), *end;
    json_error_t error;

    assert_non_null(at);
    at += strlen(begin);
    end = strstr(at, "</script>");
    assert_non_null(end);
    json_t *data = json_loadb(at, (size_t)(end - at), 0, &error);
    if (!data)
        print_error("%s at %d\n", error.text, error.position);
    assert_non_null(data);
    return data;
}

static json_int_t number_at(const json_t *object, const char *name, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(object, name), i));
}

/* Numbers of columns are differences; their sums are those of the history. */
static void check_columns(const json_t *told, const struct mt_report *report,
                          const struct mt_history *history)
{
    static const char *const lists[] = {"begin", "begin_event", "reserved", "t", "event"};
    json_int_t begin = 0, begin_event = 0, reserved = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(lists); i++)
        assert_int_equal(json_array_size(json_object_get(told, lists[i])), history->column_count);
    for (uint32_t i = 0; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];

        begin += number_at(told, "begin", i);
        begin_event += number_at(told, "begin_event", i);
        reserved += number_at(told, "reserved", i);
        assert_int_equal(begin, column->begin_t_ns - report->first_t_ns);
        assert_int_equal(begin + number_at(told, "t", i), column->t_ns - report->first_t_ns);
        assert_int_equal(begin_event, column->begin_event);
        assert_int_equal(begin_event + number_at(told, "event", i), column->event);
        assert_int_equal(reserved, column->bytes.reserved);
    }
}

/* Runs of columns: those with a single event, and those with an instant in one phase and step. */
static void check_runs(const json_t *told, const struct mt_history *history)
{
    const json_t *exact = json_object_get(told, "exact"), *where = json_object_get(told, "where");
    size_t count = 0, at = 0;

    for (uint32_t i = 0; i < history->column_count; i++) {
        while (at < json_array_size(exact) &&
               i >= (uint32_t)(number_at(told, "exact", at) + number_at(told, "exact", at + 1)))
            at += 2;
        bool is_exact = at < json_array_size(exact) && i >= (uint32_t)number_at(told, "exact", at);
        assert_int_equal(is_exact, history->columns[i].is_exact);
        exact_columns += is_exact;
    }
    for (size_t i = 0; i < json_array_size(where); i += 2) {
        count += (size_t)number_at(told, "where", i);
        assert_true(number_at(told, "where", i + 1) <
                    (json_int_t)json_array_size(json_object_get(told, "strings")));
    }
    assert_int_equal(count, history->column_count);
}

/* Changes add up to what was allocated. */
static void check_device(const json_t *told, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    const json_t *changes = json_object_get(told, "changes"),
                 *groups = json_object_get(told, "groups");
    const json_t *nodes = json_object_get(told, "nodes");
    json_int_t unit = json_integer_value(json_object_get(told, "unit"));
    uint64_t total = 0;

    check_columns(told, report, device->history);
    check_runs(told, device->history);
    assert_int_equal(json_array_size(changes), device->history->column_count);
    assert_int_equal(json_array_size(groups) % GROUP_NUMBERS, 0);
    assert_int_equal(json_array_size(json_object_get(told, "phases")) % 6, 0);
    assert_int_equal(json_array_size(json_object_get(told, "steps")) % 5, 0);
    for (size_t i = 0; i < json_array_size(nodes); i += 2)
        assert_true(json_integer_value(json_array_get(nodes, i)) < (json_int_t)(i / 2));
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *list = json_array_get(changes, i);

        for (size_t j = 0; j < json_array_size(list); j += 3) {
            assert_true(json_integer_value(json_array_get(list, j)) <
                        (json_int_t)json_array_size(groups) / GROUP_NUMBERS);
            total += (uint64_t)(json_integer_value(json_array_get(list, j + 1)) * unit);
        }
        assert_int_equal(total, device->history->columns[i].bytes.allocated);
    }
}

/* The last line names the counters that are exact on every device, and no others. */
static void check_claim(const char *page, const struct mt_report *report)
{
    const char *claim = strstr(page, " \xC2\xB7 exact: ");
    char *words = claim ? strndup(claim, (size_t)(strstr(claim, "</footer>") - claim)) : strdup("");

    assert_non_null(words);
    for (unsigned i = 0; i < MT_COVERED_COUNTERS; i++) {
        bool is_exact = report->device_count > 0;

        for (uint32_t j = 0; j < report->device_count; j++)
            is_exact &= report->devices[j].replay.verify.covered >> i & 1;
        assert_int_equal(strstr(words, mt_covered_name(i)) != NULL, is_exact);
        claims += is_exact;
    }
    free(words);
}

static void check_page(const struct mt_report *report)
{
    const struct mt_report_html page = {.report = report, .answer = "</pre><script>a"};
    struct mt_buf out = {0};
    json_t *devices;

    mt_report_html_add(&out, &page);
    assert_false(out.failed);
    assert_true(out.length < MT_REPORT_HTML_BYTES);
    assert_int_equal(strlen(out.data), out.length);
    assert_int_equal(count_of(out.data, "<script"), 2);
    assert_int_equal(count_of(out.data, "</script"), 2);
    assert_int_equal(count_of(out.data, " src="), 0);
    check_claim(out.data, report);
    json_t *data = data_of(out.data);
    devices = json_object_get(data, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *told = json_array_get(devices, i);
        json_int_t number = json_integer_value(json_object_get(told, "device"));

        for (uint32_t j = 0; j < report->device_count; j++)
            if (report->devices[j].device == number)
                check_device(told, report, &report->devices[j]);
    }
    json_decref(data);
    mt_buf_release(&out);
}

/* Bytes of groups with the words and role of a row. */
static uint64_t bytes_like(const struct mt_history *history, const int64_t *bytes, const char *site,
                           enum mt_role role)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < history->group_count; i++)
        if (history->groups[i].role == role && !strcmp(history->groups[i].site, site))
            sum += (uint64_t)bytes[i];
    return sum;
}

static void check_answer(const struct mt_history *history, const struct mt_history_column *column,
                         const int64_t *bytes, const struct mt_answer *answer)
{
    assert_int_equal(answer->missing, MT_ANSWERED);
    assert_int_equal(answer->instant.bytes.allocated, column->bytes.allocated);
    assert_int_equal(answer->instant.bytes.requested, column->bytes.requested);
    assert_int_equal(answer->instant.bytes.active, column->bytes.active);
    assert_int_equal(answer->instant.bytes.reserved, column->bytes.reserved);
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const struct mt_live_row *row = &answer->rows[i];
        uint64_t wanted = 0;

        for (uint32_t j = 0; j < answer->row_count; j++)
            if (answer->rows[j].role == row->role && !strcmp(answer->rows[j].label, row->label))
                wanted += answer->rows[j].bytes;
        assert_int_equal(bytes_like(history, bytes, row->label, row->role), wanted);
    }
}

/* Of one column, chosen at random: what a question about its instant says. */
static void ask(struct fake *fake, const struct mt_device_report *device, uint32_t at)
{
    const struct mt_history *history = device->history;
    const struct mt_question question = {
        .at = MT_AT_EVENT, .value = history->columns[at].event, .by = MT_BY_SITE};
    struct mt_analyze_options options = {.path = "random", .question = &question};
    int64_t *bytes = calloc((size_t)history->group_count + 1, sizeof *bytes);
    struct mt_report *report;
    struct mt_error error;

    for (uint32_t i = 0; i < history->columns[at].first_change + history->columns[at].change_count;
         i++)
        bytes[history->changes[i].group] += history->changes[i].bytes;
    options.replay.policy = "recorded";
    assert_int_equal(mt_source_rewind(&fake->source, &error), MT_OK);
    assert_int_equal(mt_analyze(&fake->source, &options, &report, &error), MT_OK);
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == device->device)
            check_answer(history, &history->columns[at], bytes, report->devices[i].answer);
    mt_report_release(report);
    free(bytes);
}

static void run(uint64_t round, bool middle)
{
    struct mt_analyze_options options = {.path = "random", .models = mt_report_html_models()};
    struct mt_report *report;
    struct mt_error error;
    static struct fake fake;

    seed = 77172645463325252u + round * 7919 + middle;
    make(&fake, false, middle, false);
    options.replay.policy = "recorded";
    assert_int_equal(mt_analyze(&fake.source, &options, &report, &error), MT_OK);
    check_page(report);
    for (uint32_t i = 0; i < report->device_count; i++)
        for (int j = 0; j < 3; j++)
            ask(&fake, &report->devices[i],
                (uint32_t)below(report->devices[i].history->column_count));
    mt_report_release(report);
    unmake(&fake);
}

TEST(random_traces)
{
    for (uint64_t round = 0; round < 16; round++)
        run(round, false);
    assert_true(claims > 0 && exact_columns > 0);
}

TEST(random_rings)
{
    for (uint64_t round = 0; round < 16; round++)
        run(round, true);
}

TEST(wild_traces)
{
    static struct fake fake;

    for (uint64_t round = 0; round < 24; round++) {
        struct mt_analyze_options options = {.path = "wild</script>",
                                             .models = mt_report_html_models()};
        struct mt_report *report;
        struct mt_error error;

        seed = 89172645463325252u + round * 104729;
        make(&fake, true, round % 3 == 0, round % 5 > 2);
        if (!mt_analyze(&fake.source, &options, &report, &error)) {
            check_page(report);
            mt_report_release(report);
        }
        unmake(&fake);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
