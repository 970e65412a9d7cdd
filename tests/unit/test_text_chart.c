/* Memory over time as text, on constructed reports: heights are those of the columns' fullest
 * instants, and lines use only what the terminal supports. */
#include "cmocka_all.h"

#include <math.h>

#include "synthetic_report.h"
#include "text_chart.h"
#include "units.h"

#define MAX_LINES 80

static const char *const heights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

struct page {
    struct mt_buf text;
    char *lines[MAX_LINES];
    size_t count;
};

static void print(struct page *page, const struct mt_report *report,
                  const struct mt_text_chart *chart)
{
    memset(page, 0, sizeof *page);
    mt_text_chart_add(&page->text, report, &report->devices[0], chart);
    for (char *at = page->text.data; at && *at; page->count++) {
        char *end = strchr(at, '\n');

        assert_non_null(end); /* the last line also has an end */
        assert_true(page->count < MAX_LINES);
        page->lines[page->count] = at;
        *end = '\0';
        at = end + 1;
    }
}

static size_t length_of(const char *line)
{
    size_t length = 0;

    for (; *line; line++)
        length += ((unsigned char)*line & 0xC0) != 0x80;
    return length;
}

/* Character number `column`, NUL-terminated; " " after the end of a line. */
static const char *character(const char *line, size_t column, char text[5])
{
    size_t n = 0;

    for (; *line && column; column--)
        for (line++; ((unsigned char)*line & 0xC0) == 0x80;)
            line++;
    do {
        text[n++] = *line ? *line++ : ' ';
    } while (*line && ((unsigned char)*line & 0xC0) == 0x80 && n < 4);
    text[n] = '\0';
    return text;
}

static size_t find_character(const char *line, const char *wanted)
{
    char text[5];

    for (size_t i = 0; i < length_of(line); i++)
        if (!strcmp(character(line, i, text), wanted))
            return i;
    return SIZE_MAX;
}

/* Eighths of a row that are filled in a column, from below. */
static unsigned filled(const struct page *page, unsigned rows, size_t column)
{
    unsigned sum = 0;
    char text[5];

    for (unsigned row = 0; row < rows; row++) {
        character(page->lines[rows - 1 - row], column, text);
        for (unsigned i = 1; i <= 8; i++) {
            if (strcmp(text, heights[i]) != 0)
                continue;
            assert_int_equal(sum, 8 * row); /* nothing is above a gap */
            sum += i;
        }
    }
    return sum;
}

/* The largest bin of a column, in eighths of the highest row. */
static unsigned expected(const struct mt_report *report, bool by_event, uint32_t columns,
                         uint32_t column, unsigned rows)
{
    const struct mt_device_report *device = &report->devices[0];
    const struct mt_timeline *timeline = device->timeline;
    const struct mt_bin *bins = by_event ? timeline->event_bins : timeline->time_bins;
    double top = (double)mt_max_u64(device->allocated_peak.bytes, device->reserved_peak.bytes);
    uint64_t most = 0;

    for (uint32_t i = 0; i < timeline->bin_count; i++)
        if ((uint64_t)i * columns / timeline->bin_count == column)
            most = mt_max_u64(most, bins[i].allocated);
    return most ? (unsigned)fmax(1, floor((double)most * 8 * rows / top + 0.5)) : 0;
}

static void check_heights(const struct mt_report *report, const struct page *page,
                          const struct mt_text_chart *chart, bool by_event)
{
    const char *axis = page->lines[chart->rows];
    size_t left = find_character(axis, "└") + 1, peak = find_character(axis, "▲");
    uint32_t columns = (uint32_t)(length_of(axis) - left);
    unsigned highest = 0;

    assert_true(columns >= mt_min_u64(chart->columns / 2, report->devices[0].timeline->bin_count));
    for (uint32_t i = 0; i < columns; i++) {
        unsigned height = filled(page, chart->rows, left + i);

        assert_int_equal(height, expected(report, by_event, columns, i, chart->rows));
        highest = height > highest ? height : highest;
    }
    assert_int_equal(filled(page, chart->rows, peak), highest);
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80 || (unsigned char)*text < 0x20)
            return false;
    return true;
}

static void check_page(const struct mt_report *report, const struct mt_text_chart *chart,
                       bool by_event)
{
    char peak[MT_UNITS_TEXT], words[MT_UNITS_TEXT + 8];
    struct page page;

    print(&page, report, chart);
    assert_in_range(page.count, chart->rows + 2, chart->rows + MT_TEXT_CHART_EXTRA);
    for (size_t i = 0; i < page.count; i++) {
        assert_true(length_of(page.lines[i]) <= chart->columns);
        assert_true(chart->unicode || is_ascii(page.lines[i]));
        assert_null(strchr(page.lines[i], '\033'));
    }
    snprintf(words, sizeof words, "peak %s",
             mt_format_bytes(peak, report->devices[0].allocated_peak.bytes));
    assert_non_null(strstr(page.lines[page.count - 1], words));
    if (chart->unicode)
        check_heights(report, &page, chart, by_event);
    else
        assert_non_null(strchr(page.lines[chart->rows], '^'));
    mt_buf_release(&page.text);
}

static const struct mt_text_chart charts[] = {
    {.columns = 100, .rows = 8, .unicode = true},  {.columns = 100, .rows = 8},
    {.columns = 40, .rows = 1, .unicode = true},   {.columns = 41, .rows = 3},
    {.columns = 160, .rows = 40, .unicode = true}, {.columns = 400, .rows = 6, .unicode = true}};

static void check_all(const struct synthetic_options *options)
{
    struct mt_report report;

    synthetic_report(&report, options);
    for (size_t i = 0; i < MT_ARRAY_LEN(charts); i++) {
        struct mt_text_chart chart = charts[i];

        chart.allocated = chart.reserved = chart.mark = chart.reset = "";
        check_page(&report, &chart, options->fatal);
    }
    synthetic_release(&report);
}

TEST(columns_show_their_fullest_instant)
{
    static const struct synthetic_options all[] = {{.steps = 8, .bins = MT_TEXT_CHART_BINS},
                                                   {.steps = 1, .bins = 57},
                                                   {.steps = 200, .bins = 1024},
                                                   {.steps = 3, .ooms = 2, .bins = 512},
                                                   {.steps = 3, .ooms = 1, .fatal = true},
                                                   {.steps = 10000, .bins = 300},
                                                   {.kind = SYNTHETIC_NO_PHASES, .bins = 700}};

    for (size_t i = 0; i < MT_ARRAY_LEN(all); i++)
        check_all(&all[i]);
}

TEST(random_runs)
{
    struct synthetic_options options = {.kind = SYNTHETIC_RANDOM, .seed = 1, .bins = 1024};

    for (; options.seed < 60; options.seed++) {
        options.ooms = (uint32_t)(options.seed % 3);
        options.fatal = options.seed % 5 == 2 && options.ooms;
        check_all(&options);
    }
}

/* A single event among very many is shown at full height, with its name. */
TEST(a_spike_is_not_lost)
{
    struct mt_text_chart chart = {100, 6, true, "", "", "", ""};
    struct mt_timeline_builder *builder;
    struct mt_device_report device = {.allocated_peak = {.bytes = MT_GIB}};
    struct mt_report report = {.devices = &device, .device_count = 1};
    struct mt_span *spans;
    uint32_t span_count;
    struct page page;

    mt_timeline_spans(&report.arena, 0, 999999, NULL, 0, NULL, 0, &spans, &span_count);
    mt_timeline_builder_new(&report.arena, spans, span_count, 0, 999999, MT_TEXT_CHART_BINS,
                            &builder);
    for (uint64_t i = 0; i < 1000000; i++) {
        uint64_t bytes = i == 654321 ? MT_GIB : MT_MIB, roles[MT_ROLE_COUNT] = {bytes};
        struct mt_bytes now = {bytes, bytes, bytes, MT_GIB};

        mt_timeline_builder_add(builder, i, i, &now, roles);
    }
    device.timeline = mt_timeline_builder_finish(builder);
    print(&page, &report, &chart);
    const char *axis = page.lines[chart.rows];
    size_t at = find_character(axis, "▲");
    assert_int_equal(filled(&page, chart.rows, at), 8 * chart.rows);
    assert_int_equal(filled(&page, chart.rows, at - 1), 1);
    assert_int_equal(filled(&page, chart.rows, at + 1), 1);
    at -= find_character(axis, "└") + 1;
    assert_int_equal(at, 654321 * (length_of(axis) - find_character(axis, "└") - 1) / 1000000);
    assert_non_null(strstr(page.lines[chart.rows + 1], "▲ peak 1.00 GiB"));
    mt_buf_release(&page.text);
    mt_arena_release(&report.arena);
}

TEST(a_line_of_text)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_report report;
    struct mt_buf line = {0};
    char text[5];

    synthetic_report(&report, &options);
    mt_text_chart_add_sparkline(&line, &report, &report.devices[0], 48);
    assert_int_equal(length_of(line.data), 48);
    size_t highest = find_character(line.data, "█");
    assert_true(highest < 48);
    for (uint32_t i = 0; i < 48; i++) {
        unsigned height = 0;

        report.devices[0].reserved_peak.bytes = 0; /* allocated alone is the measure */
        while (strcmp(character(line.data, i, text), heights[height]) != 0)
            assert_true(++height < MT_ARRAY_LEN(heights));
        assert_int_equal(height, expected(&report, false, 48, i, 1));
    }
    mt_buf_release(&line);
    synthetic_release(&report);
}

TEST(nothing_to_show_is_nothing)
{
    struct mt_text_chart chart = {100, 6, true, "", "", "", ""};
    struct mt_device_report device = {0};
    struct mt_report report = {.devices = &device, .device_count = 1};
    struct mt_buf out = {0};

    mt_text_chart_add(&out, &report, &device, &chart);
    mt_text_chart_add_sparkline(&out, &report, &device, 48);
    assert_int_equal(out.length, 0);
    mt_buf_release(&out);
}

/* Every line resets its colors. */
TEST(colors_end_with_their_line)
{
    struct mt_text_chart chart = {90, 6, true, "<A>", "<R>", "<M>", "<0>"};
    struct synthetic_options options = {.steps = 8, .ooms = 1};
    struct mt_report report;
    struct page page;

    synthetic_report(&report, &options);
    print(&page, &report, &chart);
    for (size_t i = 0; i < page.count; i++) {
        bool on = false;

        for (const char *at = page.lines[i]; (at = strchr(at, '<')); at++) {
            assert_int_equal(on, at[1] == '0'); /* one at a time */
            on = at[1] != '0';
        }
        assert_false(on);
    }
    assert_non_null(strstr(page.lines[chart.rows], "<M>▲<0>"));
    mt_buf_release(&page.text);
    synthetic_release(&report);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
