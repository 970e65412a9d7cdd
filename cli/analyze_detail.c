/* How much of a report is told: everything, if it is short, else less and less of
 * what weighs least. */
#include "analyze_output.h"
#include "util.h"

#define ALL UINT32_MAX

const struct mt_detail mt_detail_all = {ALL, ALL, 12, ALL, ALL, 3, ALL, 8, true};

/* From much to the least. */
static const struct mt_detail details[] = {
    {ALL, ALL, 12, ALL, ALL, 3, 5, 8, false}, {6, 3, 10, 12, 8, 1, 5, 8, false},
    {4, 3, 8, 8, 8, 1, 5, 6, false},          {3, 2, 8, 8, 6, 1, 4, 6, false},
    {3, 2, 6, 6, 6, 0, 4, 6, false},          {3, 1, 8, 6, 6, 0, 3, 6, false},
    {3, 0, 8, 6, 6, 0, 3, 6, false},          {3, 0, 6, 5, 5, 0, 3, 6, false},
    {2, 0, 4, 4, 4, 0, 3, 6, false},          {1, 0, 3, 3, 4, 0, 3, 4, false},
    {1, 0, 4, 0, 4, 0, 3, 5, false},          {1, 0, 0, 0, 4, 0, 3, 4, false},
    {0, 0, 0, 0, 4, 0, 3, 3, false},          {0, 0, 0, 0, 4, 0, 2, 3, false},
    {0, 0, 0, 0, 0, 0, 2, 3, false},          {0, 0, 0, 0, 0, 0, 1, 3, false},
    {0, 0, 0, 0, 0, 0, 1, 2, false},          {0, 0, 0, 0, 0, 0, 1, 0, false},
};

static size_t count_lines(const struct mt_buf *out)
{
    size_t count = 0;

    for (size_t i = 0; i < out->length; i++)
        count += out->data[i] == '\n';
    return count;
}

/* True if it has few enough lines, with `more` that follow. */
static bool tell_at(const struct mt_teller *shared, struct mt_buf *text,
                    const struct mt_detail *detail, size_t more)
{
    struct mt_arena arena = {0};
    struct mt_teller teller = *shared;
    size_t lines;

    teller.out = text;
    teller.arena = &arena;
    teller.detail = detail;
    mt_buf_reset(text);
    mt_tell_everything(&teller);
    mt_arena_release(&arena);
    lines = count_lines(text);
    return lines + more <= MT_ANALYZE_LINES;
}

void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all)
{
    const struct mt_teller teller = {.report = report, .style = style, .chart = chart};
    struct mt_buf text = {0};
    bool fits = tell_at(&teller, &text, &mt_detail_all, 0);

    if (!all && !fits) {
        for (size_t i = 0; i < MT_ARRAY_LEN(details) && !fits; i++)
            fits = tell_at(&teller, &text, &details[i], 1);
        mt_buf_add_text(&text, "(abridged: --all has the rest)\n");
    }
    mt_buf_add(out, text.data ? text.data : "", text.length);
    out->failed |= text.failed;
    mt_buf_release(&text);
}
