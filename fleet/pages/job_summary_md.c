#include "job_summary_md.h"

#include "document_tables.h"
#include "escape.h"
#include "job_page.h"
#include "job_tables.h"
#include "job_words.h"

enum {
    MAX_GATES = 64,
    ROWS = 12,       /* maximum number of rows of a table */
    END_BYTES = 2000 /* reserved for the last part */
};

struct page {
    struct mt_buf *out, row;
    size_t begin;
    uint32_t omitted; /* number of rows of a table that do not fit */
    struct mt_job_words words;
    struct mt_job_rows rows;
};

static void end_row(struct page *page)
{
    if (page->out->length - page->begin + page->row.length + END_BYTES <= MT_JOB_SUMMARY_BYTES)
        mt_buf_add(page->out, page->row.data, page->row.length);
    else
        page->omitted++;
    mt_buf_reset(&page->row);
}

/* Writes the table and releases it. */
static void add_table(struct page *page, struct mt_table *table, uint32_t omitted)
{
    mt_markdown_add_head(page->out, table);
    for (size_t i = 0; i < mt_table_rows(table); i++) {
        mt_markdown_add_row(&page->row, table, i);
        end_row(page);
    }
    mt_table_release(table);
    omitted += page->omitted;
    page->omitted = 0;
    if (omitted)
        mt_buf_printf(page->out, "\n%u more row%s omitted\n", (unsigned)omitted,
                      omitted == 1 ? "" : "s");
    mt_buf_add_char(page->out, '\n');
}

/* Writes the sentences as a list and clears them. */
static void add_sentences(struct page *page, const struct mt_job_sentence *first)
{
    for (const struct mt_job_sentence *at = first; at; at = at->next) {
        mt_buf_add_text(&page->row, "- ");
        mt_escape_add_markdown(&page->row, at->text, MT_MARKDOWN_SENTENCE);
        mt_buf_add_char(&page->row, '\n');
        end_row(page);
    }
    if (first)
        mt_buf_add_char(page->out, '\n');
    page->omitted = 0;
    mt_job_words_reset(&page->words);
}

static void add_gates(struct page *page, const struct mt_job_document *document)
{
    static const char *const marks[] = {"\xE2\x9C\x85", "\xE2\x9A\xA0", "\xE2\x9D\x8C"};
    uint32_t shown = (uint32_t)mt_min_u64(document->gate_count, MAX_GATES);
    struct mt_table table;

    if (!shown)
        return;
    mt_table_begin(&table, "rule|ranks|result|measured");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_job_gate *gate = &document->gates[i];

        MT_CELLS(&table, MT_TEXT(gate->rule), MT_TEXT(gate->group),
                 MT_TEXT(mt_arena_printf(page->rows.arena, "%s %s", marks[mt_job_gate_mark(gate)],
                                         mt_gate_state_name(gate->state))),
                 MT_SENTENCE(gate->verdict));
    }
    add_table(page, &table, document->gate_count - shown);
}

static void add_answer(struct page *page, const struct mt_job_document *document)
{
    mt_job_describe_death(&page->words);
    mt_job_describe_peak(&page->words);
    mt_job_describe_outliers(&page->words);
    mt_job_describe_growth(&page->words);
    mt_job_describe_steps(&page->words);
    const struct mt_job_sentence *first = page->words.first;
    if (first && !document->gate_count) /* the first sentence is the heading */
        first = first->next;
    add_sentences(page, first);
}

/* Adds a table of the whole job between two texts. */
static void add_section(struct page *page, const char *before, mt_job_table *make,
                        const char *after)
{
    struct mt_table table;
    uint32_t omitted = make(&table, &page->rows);

    mt_buf_add_text(page->out, before);
    add_table(page, &table, omitted);
    mt_buf_add_text(page->out, after);
}

static void add_axes(struct page *page)
{
    const struct mt_job_report *report = page->rows.report;

    if (!report->axis_count)
        return;
    mt_buf_printf(page->out, "**%c%s**\n\n", mt_job_axes_title(report)[0] & ~0x20,
                  mt_job_axes_title(report) + 1);
    for (uint32_t i = 0; i < report->axis_count; i++)
        mt_job_describe_axis(&page->words, &report->axes[i]);
    mt_job_describe_overlap(&page->words);
    add_sentences(page, page->words.first);
}

void mt_job_summary_add(struct mt_buf *out, const struct mt_job_document *document)
{
    const struct mt_job_report *report = document->report;
    struct mt_arena arena = {0};
    struct page page = {.out = out,
                        .begin = out->length,
                        .words = {.report = report},
                        .rows = {report, &arena, ROWS}};
    struct mt_buf verdict = {0};

    mt_job_page_add_verdict(&verdict, document);
    mt_buf_add_text(out, "### memtrace fleet: ");
    mt_escape_add_markdown(out, verdict.data ? verdict.data : "", MT_MARKDOWN_SENTENCE);
    mt_buf_add_text(out, "\n\n");
    add_gates(&page, document);
    add_answer(&page, document);
    if (report->outlier_count)
        add_section(&page, "**Ranks that differ from their replicas**\n\n", mt_job_outliers_table,
                    "");
    add_axes(&page);
    if (report->path_count)
        add_section(&page, "<details><summary>What holds the allocated peaks</summary>\n\n",
                    mt_job_paths_table, "</details>\n\n");
    mt_buf_add_text(out, "<sub>");
    mt_markdown_add_code(out, *report->job ? report->job : "a job");
    mt_buf_add_text(out, "</sub>\n");
    mt_markdown_add_marker(out, "memtrace-fleet", report->job);
    mt_buf_release(&verdict);
    mt_buf_release(&page.row);
    mt_job_words_release(&page.words);
    mt_arena_release(&arena);
}
