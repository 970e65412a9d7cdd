/* The text about a job: the first out-of-memory error, the highest peak, ranks that differ from
 * their replicas, and the share of the differences that each axis explains. */
#include "fleet_tune_output.h"

#include "job_tables.h"
#include "job_words.h"
#include "text_table.h"

enum { ROWS = 12 }; /* maximum number of rows of a table without --all */

struct text {
    struct mt_buf *out;
    const struct mt_job_report *report;
    const struct mt_style *style;
    struct mt_job_words words;
    struct mt_job_rows rows;
};

static uint32_t shown(const struct text *text, uint32_t count)
{
    return (uint32_t)mt_min_u64(text->rows.limit, count);
}

/* Prints the sentences and clears them. */
static void add_notes(struct text *text, const struct mt_job_sentence *first, size_t indent)
{
    for (const struct mt_job_sentence *at = first; at; at = at->next)
        mt_text_table_add_note(text->out, indent, "%s", at->text);
    mt_job_words_reset(&text->words);
}

/* Prints the first sentence as a headline. */
static void add_answer(struct text *text)
{
    const struct mt_job_sentence *first = text->words.first;

    if (!first) {
        add_notes(text, NULL, 0);
        return;
    }
    mt_buf_add_text(text->out, text->style->bold);
    mt_text_table_add_note(text->out, 0, "%s", first->text);
    mt_buf_add_text(text->out, text->style->reset);
    add_notes(text, first->next, 2);
}

static void add_heading(const struct text *text, const char *words)
{
    mt_buf_printf(text->out, "\n%s%s%s\n", text->style->bold, words, text->style->reset);
}

static void add_table(const struct text *text, struct mt_table *table, unsigned indent,
                      uint32_t omitted)
{
    mt_text_table_add(text->out, table, indent, text->style);
    if (omitted)
        mt_text_table_add_note(text->out, indent, "and %u more", (unsigned)omitted);
}

/* Adds a heading and a table of the whole job. */
static void add_section(const struct text *text, const char *heading, mt_job_table *make)
{
    struct mt_table table;
    uint32_t omitted = make(&table, &text->rows);

    add_heading(text, heading);
    add_table(text, &table, 2, omitted);
}

static void add_axis(struct text *text, const struct mt_job_axis *axis)
{
    const struct mt_job_sentence *first;
    struct mt_table table;
    uint32_t omitted;

    mt_job_describe_axis(&text->words, axis);
    first = text->words.first;
    if (first)
        mt_text_table_add_note(text->out, 2, "%s", first->text);
    add_notes(text, first ? first->next : NULL, 4);
    if (!axis->separates || axis->group_count < 2)
        return;
    omitted = mt_job_axis_table(&table, &text->rows, axis);
    add_table(text, &table, 4, omitted);
}

static void add_axes(struct text *text)
{
    if (!text->report->axis_count)
        return;
    add_heading(text, mt_job_axes_title(text->report));
    for (uint32_t i = 0; i < text->report->axis_count; i++)
        add_axis(text, &text->report->axes[i]);
    mt_job_describe_overlap(&text->words);
    add_notes(text, text->words.first, 2);
}

static void add_course(struct text *text)
{
    mt_job_describe_growth(&text->words);
    if (text->words.first)
        add_heading(text, "growth");
    add_notes(text, text->words.first, 2);
    mt_job_describe_steps(&text->words);
    if (text->words.first)
        add_heading(text, "steps");
    add_notes(text, text->words.first, 2);
}

static void add_devices(struct text *text)
{
    uint32_t count = shown(text, text->report->device_count);
    struct mt_table table;
    uint32_t omitted;

    if (!count)
        return;
    add_heading(text, "devices that several processes share");
    for (uint32_t i = 0; i < count; i++) {
        mt_job_describe_device(&text->words, &text->report->devices[i]);
        add_notes(text, text->words.first, 2);
        omitted = mt_job_tenants_table(&table, &text->rows, &text->report->devices[i]);
        add_table(text, &table, 4, omitted);
    }
    if (text->report->device_count > count)
        mt_text_table_add_note(text->out, 2, "and %u more device%s",
                               (unsigned)(text->report->device_count - count),
                               text->report->device_count - count == 1 ? "" : "s");
    mt_text_table_add_note(text->out, 2, "%s", mt_job_devices_caveat(text->report));
}

void mt_fleet_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                   const struct mt_style *style)
{
    struct text text = {.out = out,
                        .report = answer->report,
                        .style = style,
                        .words = {.report = answer->report, .all = answer->all},
                        .rows = {answer->report, answer->arena, answer->all ? UINT32_MAX : ROWS}};

    mt_fleet_gates_text(out, answer->gates, style);
    mt_job_describe_death(&text.words);
    if (text.words.first) {
        add_answer(&text);
        mt_buf_add_char(out, '\n');
    }
    mt_fleet_tune_text(out, answer, style);
    mt_job_describe_peak(&text.words);
    add_answer(&text);
    if (answer->report->outlier_count)
        add_section(&text, "ranks that differ from their replicas", mt_job_outliers_table);
    add_axes(&text);
    if (answer->report->path_count)
        add_section(&text, "what holds the allocated peaks", mt_job_paths_table);
    add_course(&text);
    add_devices(&text);
    mt_job_words_release(&text.words);
}
