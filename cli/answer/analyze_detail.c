/* Chooses how much of a report is printed: everything if it is short, otherwise less of the least
 * important parts. */
#include "analyze_output.h"
#include "util.h"

#define ALL UINT32_MAX

const struct mt_detail mt_detail_all = {ALL, ALL, 12, ALL, ALL, 3, ALL, 3, 8, true, false, true};

/* From most to least detail. */
static const struct mt_detail details[] = {
    {ALL, ALL, 12, ALL, ALL, 3, 5, 3, 8, true, false, false},
    {6, 3, 10, 12, 8, 1, 5, 3, 8, true, false, false},
    {4, 3, 8, 8, 8, 1, 5, 3, 6, true, false, false},
    {3, 2, 8, 8, 6, 1, 4, 3, 6, true, false, false},
    {3, 2, 6, 6, 6, 0, 4, 3, 6, true, false, false},
    {3, 1, 8, 6, 6, 0, 3, 3, 6, true, false, false},
    {3, 0, 8, 6, 6, 0, 3, 3, 6, true, false, false},
    {3, 0, 6, 5, 5, 0, 3, 3, 6, true, false, false},
    {2, 0, 4, 4, 4, 0, 3, 3, 6, true, false, false},
    {1, 0, 3, 3, 4, 0, 3, 3, 4, true, false, false},
    {1, 0, 4, 0, 4, 0, 3, 3, 5, true, false, false},
    {1, 0, 0, 0, 4, 0, 3, 3, 4, true, false, false},
    {0, 0, 0, 0, 4, 0, 3, 3, 3, true, false, false},
    {0, 0, 0, 0, 4, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 2, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 2, 1, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 1, 1, 3, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 1, 2, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 0, 2, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 0, 0, false, false, false},
};

static size_t count_lines(const struct mt_buf *out)
{
    size_t count = 0;

    for (size_t i = 0; i < out->length; i++)
        count += out->data[i] == '\n';
    return count;
}

/* Prints at this level of detail. Returns true if the text and the `more` lines that follow it
 * fit. */
static bool report_at(const struct mt_reporter *shared, struct mt_buf *text,
                      const struct mt_detail *detail, size_t more)
{
    struct mt_arena arena = {0};
    struct mt_reporter reporter = *shared;
    size_t lines;

    reporter.out = text;
    reporter.arena = &arena;
    reporter.detail = detail;
    mt_buf_reset(text);
    mt_report_everything(&reporter);
    mt_arena_release(&arena);
    lines = count_lines(text);
    return lines + more <= MT_ANALYZE_LINES;
}

/* Prints with as much detail as fits, or with the least detail if nothing fits. */
static bool report_most(const struct mt_reporter *reporter, struct mt_buf *text, bool worst_device)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(details); i++) {
        struct mt_detail detail = details[i];

        detail.worst_device = worst_device;
        if (report_at(reporter, text, &detail, 1))
            return true;
    }
    return false;
}

void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all)
{
    const struct mt_reporter reporter = {.report = report, .style = style, .chart = chart};
    struct mt_buf text = {0};

    if (!report_at(&reporter, &text, &mt_detail_all, 0) && !all) {
        if (!report_most(&reporter, &text, false))
            (void)report_most(&reporter, &text, true);
        mt_buf_add_text(&text, "(abridged: --all has the rest)\n");
    }
    mt_buf_add(out, text.data ? text.data : "", text.length);
    mt_buf_release(&text);
}
