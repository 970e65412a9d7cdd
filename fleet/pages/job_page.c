/* The page is made in parts. The answer, tables and charts take their room first, and single ranks
 * use the rest. */
#include <string.h>

#include "backends.h"
#include "buf.h"
#include "document_tables.h"
#include "job_chart.h"
#include "job_document.h"
#include "job_page.h"
#include "job_page_data.h"
#include "job_tables.h"
#include "job_words.h"
#include "page_head.h"
#include "units.h"

enum { MAX_GATES = 64 };

void mt_job_page_add_verdict(struct mt_buf *out, const struct mt_job_document *document)
{
    struct mt_job_words words = {.report = document->report};

    if (document->gate_count) {
        uint32_t failed = document->failed_count;

        mt_buf_printf(out, "%s: %u of %u rules", failed ? "FAIL" : "PASS",
                      (unsigned)(failed ? failed : document->gate_count - document->skipped_count),
                      (unsigned)document->gate_count);
        if (document->skipped_count)
            mt_buf_printf(out, "; %u not evaluated", (unsigned)document->skipped_count);
        return;
    }
    mt_job_describe_death(&words);
    if (!words.first)
        mt_job_describe_peak(&words);
    if (words.first)
        mt_buf_add_text(out, words.first->text);
    mt_job_words_release(&words);
}

static const char *verdict_class(const struct mt_job_document *document)
{
    if (document->gate_count)
        return document->failed_count ? "fail" : "pass";
    return document->report->death ? "fail" : "";
}

static void add_gates(struct mt_buf *out, const struct mt_job_document *document)
{
    uint32_t shown = (uint32_t)mt_min_u64(document->gate_count, MAX_GATES);

    if (!shown)
        return;
    mt_buf_add_text(out, "<div class=\"scroll\"><table class=\"sortable\" id=\"rules\"><thead><tr>"
                         "<th>rule</th><th>ranks</th><th>measured</th><th>state</th></tr></thead>\n"
                         "<tbody>\n");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_job_gate *gate = &document->gates[i];

        mt_buf_add_text(out, "<tr><td>");
        mt_page_add_name(out, gate->rule);
        mt_buf_add_text(out, "</td><td>");
        mt_page_add_name(out, gate->group);
        mt_buf_add_text(out, "</td><td>");
        mt_page_add_words(out, gate->verdict);
        mt_buf_printf(out, "</td><td class=\"state %s\">%s</td></tr>\n",
                      mt_gate_state_name(mt_job_gate_mark(gate)), mt_gate_state_name(gate->state));
    }
    mt_buf_add_text(out, "</tbody></table></div>\n");
    if (document->gate_count > shown)
        mt_buf_printf(out, "<p class=\"omitted\">%u rules omitted: fleet.json has them</p>\n",
                      (unsigned)(document->gate_count - shown));
}

static void begin_card(struct mt_buf *out, const char *title)
{
    mt_buf_printf(out, "<div><dt>%s</dt><dd><strong>", title);
}

/* Appends the sentences of a topic after the figure of its card, one per line. Omits `skip`, which
 * is already on the page. */
static void end_card(struct mt_buf *out, const struct mt_job_words *words, enum mt_job_topic topic,
                     const struct mt_job_sentence *skip)
{
    mt_buf_add_text(out, "</strong>");
    for (const struct mt_job_sentence *at = words->first; at; at = at->next) {
        if (at->topic != topic || at == skip)
            continue;
        mt_buf_add_text(out, "<span class=\"said\">");
        mt_page_add_words(out, at->text);
        mt_buf_add_text(out, "</span>");
    }
    mt_buf_add_text(out, "</dd></div>\n");
}

static void add_name(struct mt_buf *out, struct mt_job_words *words, uint32_t row)
{
    mt_page_add_name(out, mt_job_row_name(&words->arena, words->report, row));
}

static void add_need(struct mt_buf *out, const struct mt_job_words *words,
                     const struct mt_job_sentence *skip)
{
    const struct mt_job_report *report = words->report;
    char bytes[MT_UNITS_TEXT];

    if (!report->needed.max)
        return;
    begin_card(out, "Card");
    mt_buf_printf(out, "%s%s", report->needed_is_exact ? "about " : "at least ",
                  mt_format_bytes(bytes, report->needed.max));
    end_card(out, words, MT_JOB_TOPIC_NEED, skip);
}

static void job_page_answer_add_ranks(struct mt_buf *out, const struct mt_job_words *words)
{
    const struct mt_job_report *report = words->report;
    char seen[MT_UNITS_TEXT], world[MT_UNITS_TEXT];

    begin_card(out, "Ranks");
    if (report->world)
        mt_buf_printf(out, "%s of %s%s", mt_format_count(seen, report->seen_count),
                      report->world_is_known ? "" : "at least ",
                      mt_format_count(world, report->world));
    else
        mt_buf_printf(out, "%s", mt_format_count(seen, report->row_count));
    end_card(out, words, MT_JOB_TOPIC_RANKS, NULL);
}

static void add_cards(struct mt_buf *out, struct mt_job_words *words,
                      const struct mt_job_sentence *skip)
{
    const struct mt_job_report *report = words->report;
    char text[MT_UNITS_TEXT];

    mt_buf_add_text(out, "<dl class=\"answers job\">\n");
    if (report->death) {
        begin_card(out, "Out of memory first");
        add_name(out, words, report->death->row);
        end_card(out, words, MT_JOB_TOPIC_DEATH, skip);
    }
    add_need(out, words, skip);
    begin_card(out, "Highest reserved peak");
    mt_buf_add_text(out, mt_format_bytes(text, report->reserved.max));
    end_card(out, words, MT_JOB_TOPIC_PEAK, skip);
    job_page_answer_add_ranks(out, words);
    if (report->outlier_count) {
        begin_card(out, "Ranks that differ from their replicas");
        mt_buf_printf(out, "<a href=\"#outliers\">%s</a>",
                      mt_format_count(text, report->outlier_count));
        end_card(out, words, MT_JOB_TOPIC_OUTLIERS, NULL);
    }
    if (report->axis_count) {
        begin_card(out, "What the axes explain");
        end_card(out, words, MT_JOB_TOPIC_AXES, NULL);
    }
    if (report->growing_count) {
        begin_card(out, "Growth");
        mt_buf_printf(out, "%s per step", mt_format_bytes(text, report->growth.max));
        end_card(out, words, MT_JOB_TOPIC_GROWTH, NULL);
    }
    mt_buf_add_text(out, "</dl>\n");
}

static void job_page_add_answer(struct mt_buf *out, const struct mt_job_document *document)
{
    struct mt_job_words words = {.report = document->report};
    struct mt_buf verdict = {0};

    mt_job_page_add_verdict(&verdict, document);
    mt_buf_printf(out, "<p id=\"verdict\" class=\"verdict %s\">", verdict_class(document));
    mt_page_add_words(out, verdict.data ? verdict.data : "");
    mt_buf_add_text(out, "</p>\n");
    add_gates(out, document);
    mt_job_describe_death(&words);
    mt_job_describe_peak(&words);
    mt_job_describe_outliers(&words);
    mt_job_describe_growth(&words);
    for (uint32_t i = 0; i < document->report->axis_count; i++)
        mt_job_describe_axis(&words, &document->report->axes[i]);
    mt_job_describe_overlap(&words);
    add_cards(out, &words, document->gate_count ? NULL : words.first);
    mt_buf_release(&verdict);
    mt_job_words_release(&words);
}

static void job_page_add_title(struct mt_buf *out, const struct mt_job_report *report,
                               const char *name)
{
    char count[MT_UNITS_TEXT];

    mt_buf_add_text(out, "<header class=\"page-head\"><h1>");
    mt_page_add_name(out, name);
    mt_buf_printf(out, "</h1>\n<p class=\"facts\">%s %s", mt_format_count(count, report->row_count),
                  mt_job_rows_noun(report));
    if (report->host_count)
        mt_buf_printf(out, " on %s host%s", mt_format_count(count, report->host_count),
                      report->host_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < report->axis_count; i++) {
        mt_buf_add_text(out, i ? ", " : " \xC2\xB7 ");
        mt_page_add_name(out, report->axes[i].name);
        mt_buf_printf(out, " %u", (unsigned)report->axes[i].size);
    }
    if (report->planned_count)
        mt_buf_printf(out, " \xC2\xB7 %u planned", (unsigned)report->planned_count);
    mt_buf_add_text(out, "</p></header>\n");
}

#define MT_JOB_PAGE_BYTES 4000000

/* The style and the script: report.css and job.css, page.js and job.js. The build embeds them. */
extern const char mt_job_css[], mt_job_js[];

enum {
    RANK_BYTES = 2500000, /* limit for the data of single ranks */
    END_BYTES = 20000,    /* reserved for headings and for the list of missing parts */
    TABLE_ROWS = 100,
    RANK_ROWS = 200,
    MAX_DEVICES = 16
};

struct writer {
    const struct mt_job_document *document;
    const struct mt_job_report *report;
    struct mt_arena arena;
    struct mt_page_policy policy;
    struct mt_buf nav, charts, tables, data;
    struct mt_job_words words;
    struct mt_page_ranks ranks;
    struct mt_job_page_data embedded;
};

/* ---- tables -----------------------------------------------------------------------------------
 */

static void add_heading(struct writer *writer, const char *id, const char *title)
{
    mt_page_add_link(&writer->nav, id, title);
    mt_buf_printf(&writer->tables, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

/* Prints the sentences and clears them. */
static void add_sentences(struct writer *writer)
{
    for (const struct mt_job_sentence *at = writer->words.first; at; at = at->next) {
        mt_buf_add_text(&writer->tables, "<p>");
        mt_page_add_words(&writer->tables, at->text);
        mt_buf_add_text(&writer->tables, "</p>\n");
    }
    mt_job_words_reset(&writer->words);
}

static void add_table(struct writer *writer, struct mt_table *table, const char *name,
                      unsigned number, uint32_t omitted)
{
    const struct mt_html_table html = {"sortable job", name, number, 0};
    char count[MT_UNITS_TEXT];

    mt_html_table_add(&writer->tables, table, &html);
    if (omitted)
        mt_buf_printf(&writer->tables,
                      "<p class=\"omitted\">%s more rows are not on this page: <code>memtrace "
                      "fleet --json --all</code> prints all of them.</p>\n",
                      mt_format_count(count, omitted));
}

static struct mt_job_rows rows_of(struct writer *writer, uint32_t limit)
{
    return (struct mt_job_rows){writer->report, &writer->arena, limit};
}

/* Adds a heading and a table of the whole job. */
static void add_section(struct writer *writer, const char *id, const char *title, const char *name,
                        mt_job_table *make)
{
    const struct mt_job_rows rows = rows_of(writer, TABLE_ROWS);
    struct mt_table table;
    uint32_t omitted = make(&table, &rows);

    add_heading(writer, id, title);
    add_table(writer, &table, name, 0, omitted);
}

static void add_axes(struct writer *writer)
{
    const struct mt_job_rows rows = rows_of(writer, TABLE_ROWS);
    const struct mt_job_report *report = writer->report;

    if (!report->axis_count)
        return;
    add_heading(writer, "axes", "Axes");
    mt_buf_printf(&writer->tables, "<p class=\"small\">%s</p>\n", mt_job_axes_title(report));
    for (uint32_t i = 0; i < report->axis_count; i++) {
        struct mt_table table;

        mt_job_describe_axis(&writer->words, &report->axes[i]);
        add_sentences(writer);
        if (!report->axes[i].separates || report->axes[i].group_count < 2)
            continue;
        uint32_t omitted = mt_job_axis_table(&table, &rows, &report->axes[i]);
        add_table(writer, &table, "axis", i, omitted);
    }
    mt_job_describe_overlap(&writer->words);
    add_sentences(writer);
}

static void add_steps(struct writer *writer)
{
    const struct mt_job_rows rows = rows_of(writer, TABLE_ROWS);
    struct mt_table table;

    if (!writer->report->step_count)
        return;
    add_heading(writer, "steps", "Table of steps");
    mt_job_describe_growth(&writer->words);
    mt_job_describe_steps(&writer->words);
    add_sentences(writer);
    uint32_t omitted = mt_job_steps_table(&table, &rows);
    add_table(writer, &table, "step", 0, omitted);
}

static void add_devices(struct writer *writer)
{
    const struct mt_job_rows rows = rows_of(writer, TABLE_ROWS);
    const struct mt_job_report *report = writer->report;
    uint32_t count = (uint32_t)mt_min_u64(report->device_count, MAX_DEVICES);

    if (!count)
        return;
    add_heading(writer, "devices", "Shared devices");
    for (uint32_t i = 0; i < count; i++) {
        struct mt_table table;

        mt_job_describe_device(&writer->words, &report->devices[i]);
        add_sentences(writer);
        uint32_t omitted = mt_job_tenants_table(&table, &rows, &report->devices[i]);
        add_table(writer, &table, "tenants", i, omitted);
    }
    if (report->device_count > count)
        mt_buf_printf(&writer->tables,
                      "<p class=\"omitted\">%u more shared devices are not on this page.</p>\n",
                      (unsigned)(report->device_count - count));
    mt_buf_printf(&writer->tables, "<p class=\"small\">%s</p>\n", mt_job_devices_caveat(report));
}

static void add_ranks(struct writer *writer)
{
    const struct mt_job_rows rows = rows_of(writer, RANK_ROWS);
    struct mt_table table;

    add_heading(writer, "ranks", "Table of ranks");
    uint32_t omitted = mt_job_ranks_table(&table, &rows);
    if (omitted)
        mt_buf_printf(&writer->tables,
                      "<p class=\"small\">The %d with the highest reserved peaks.</p>\n",
                      RANK_ROWS);
    add_table(writer, &table, "rank-rows", 0, omitted);
}

/* ---- charts -----------------------------------------------------------------------------------
 */

static void add_picture(struct writer *writer, const struct mt_job_chart *chart,
                        const struct mt_drawing *drawing)
{
    struct mt_buf *out = &writer->charts, style = {0};

    mt_buf_printf(out, "<figure class=\"chart\" id=\"chart-%s\">\n", chart->name);
    mt_svg_write(drawing, MT_THEME_AUTO, out);
    mt_buf_add_text(out, "</figure>\n");
    mt_svg_add_style(drawing, MT_THEME_AUTO, &style);
    mt_page_policy_allow_style(&writer->policy, style.data);
    mt_buf_release(&style);
}

static void add_chart(struct writer *writer, const struct mt_job_chart *chart)
{
    const struct mt_job_chart_options options = {.width = 0};
    struct mt_drawing drawing;

    memset(&drawing, 0, sizeof drawing);
    chart->draw(writer->report, &options, &drawing);
    mt_buf_printf(&writer->nav, "<a href=\"#chart-%s\">%c%s</a>\n", chart->name,
                  chart->name[0] & ~0x20, chart->name + 1);
    add_picture(writer, chart, &drawing);
    mt_drawing_release(&drawing);
}

static void add_charts(struct writer *writer)
{
    for (size_t i = 0; mt_job_charts[i]; i++)
        if (!mt_job_charts[i]->called_for || mt_job_charts[i]->called_for(writer->report))
            add_chart(writer, mt_job_charts[i]);
}

/* ---- single ranks -----------------------------------------------------------------------------
 */

/* Adds how to see a rank that is not on the page. */
static void add_other_ranks(const struct writer *writer, struct mt_buf *out)
{
    const char *command = writer->document->command;
    char shown[MT_UNITS_TEXT], all[MT_UNITS_TEXT];

    if (writer->embedded.rank_count == writer->report->row_count)
        return;
    mt_buf_printf(out,
                  "<p class=\"omitted\">%s of %s %s can be chosen: the notable ones, one of "
                  "each group of replicas, and others while the page has room. For another one: ",
                  mt_format_count(shown, writer->embedded.rank_count),
                  mt_format_count(all, writer->report->row_count),
                  mt_job_rows_noun(writer->report));
    mt_page_add_command(out, "memtrace fleet TRACE.mtsum -o DIR");
    mt_buf_add_text(out, " writes the page of one rank, ");
    mt_page_add_command(out, "memtrace analyze TRACE");
    mt_buf_add_text(out, " analyzes its trace. For the trace of each rank, run ");
    mt_page_add_command(out, command ? command : "memtrace fleet DIR");
    mt_buf_add_text(out, " with ");
    mt_page_add_command(out, "--json --all");
    mt_buf_add_text(out, ".</p>\n");
}

static void add_picker(const struct writer *writer, struct mt_buf *out)
{
    mt_buf_add_text(out, "<section id=\"one\">\n<h2>One rank</h2>\n"
                         "<noscript><p>Choosing a rank needs JavaScript, which this browser does "
                         "not run. The charts and tables are complete without it.</p></noscript>\n"
                         "<div id=\"picker\"></div>\n<div id=\"rank-view\"></div>\n");
    add_other_ranks(writer, out);
    mt_buf_add_text(out, "</section>\n");
}

static void add_data(struct writer *writer, size_t used_bytes)
{
    size_t left = used_bytes < MT_JOB_PAGE_BYTES ? MT_JOB_PAGE_BYTES - used_bytes : 0;
    size_t index_bytes = writer->report->row_count <= MT_PAGE_INDEX_ROWS
                             ? (size_t)writer->report->row_count * 45
                             : 0; /* 20 digits of a peak, and two numbers of each of two runs */

    left = left > index_bytes ? left - index_bytes : 0;
    mt_page_ranks_choose(writer->report, &writer->arena, &writer->ranks);
    mt_job_page_add_data(&writer->data, writer->report, &writer->ranks,
                         (size_t)mt_min_u64(left, RANK_BYTES), &writer->embedded);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static const char *job_name(const struct mt_job_report *report)
{
    return *report->job ? report->job : "a job";
}

static void assemble(struct writer *writer, const struct mt_buf *head, const struct mt_buf *answer,
                     struct mt_buf *out)
{
    mt_page_add_start(out, &writer->policy);
    mt_buf_add(out, head->data, head->length);
    mt_buf_add_text(out, "<nav class=\"page-nav\"><div>");
    mt_buf_add(out, writer->nav.data, writer->nav.length);
    mt_buf_add_text(out, "<span id=\"tools\"></span></div></nav>\n");
    job_page_add_title(out, writer->report, job_name(writer->report));
    mt_buf_add_text(out, "<main>\n");
    mt_buf_add(out, answer->data, answer->length);
    mt_buf_add(out, writer->charts.data, writer->charts.length);
    add_picker(writer, out);
    mt_buf_add(out, writer->tables.data, writer->tables.length);
    mt_buf_add_text(out, "</main>\n<footer>memtrace \xC2\xB7 ");
    mt_page_add_name(out, job_name(writer->report));
    mt_buf_add_text(out, "</footer>\n<script type=\"application/json\" id=\"mt-data\">");
    mt_buf_add(out, writer->data.data, writer->data.length);
    mt_buf_add_text(out, "</script>\n<script>");
    mt_buf_add_text(out, mt_job_js);
    mt_buf_add_text(out, "</script>\n</body></html>\n");
}

static void add_tables(struct writer *writer)
{
    const struct mt_job_report *report = writer->report;

    if (report->outlier_count)
        add_section(writer, "outliers", "Ranks that differ from their replicas", "outlier",
                    mt_job_outliers_table);
    if (report->death)
        add_section(writer, "deaths", "Ranks that ran out of memory", "death", mt_job_deaths_table);
    add_axes(writer);
    if (report->path_count)
        add_section(writer, "sites", "What holds the allocated peaks", "site", mt_job_paths_table);
    add_steps(writer);
    add_devices(writer);
    add_ranks(writer);
}

static void release(struct writer *writer)
{
    mt_page_policy_release(&writer->policy);
    mt_job_words_release(&writer->words);
    mt_arena_release(&writer->arena);
    mt_buf_release(&writer->nav);
    mt_buf_release(&writer->charts);
    mt_buf_release(&writer->tables);
    mt_buf_release(&writer->data);
}

void mt_job_page_add(struct mt_buf *out, const struct mt_job_document *document)
{
    struct writer writer = {
        .document = document, .report = document->report, .words = {.report = document->report}};
    const struct mt_page_head facts = {"memtrace fleet", job_name(document->report), mt_job_css};
    struct mt_buf head = {0}, answer = {0};

    mt_page_add_head(&head, &facts, &writer.policy);
    mt_page_policy_allow_script(&writer.policy, mt_job_js);
    mt_page_add_link(&writer.nav, "verdict", "Answer");
    job_page_add_answer(&answer, document);
    add_charts(&writer);
    mt_page_add_link(&writer.nav, "one", "One rank");
    add_tables(&writer);
    add_data(&writer, END_BYTES + strlen(mt_job_js) + head.length + answer.length +
                          writer.charts.length + writer.tables.length);
    assemble(&writer, &head, &answer, out);
    mt_buf_release(&head);
    mt_buf_release(&answer);
    release(&writer);
}
