#include "job_page_answer.h"

#include "document_tables.h"
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
    begin_card(out, "A device must have");
    mt_buf_printf(out, "%s%s", report->needed_is_exact ? "" : "at least ",
                  mt_format_bytes(bytes, report->needed.max));
    end_card(out, words, MT_JOB_TOPIC_NEED, skip);
}

static void add_ranks(struct mt_buf *out, const struct mt_job_words *words)
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
    add_ranks(out, words);
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

void mt_job_page_add_answer(struct mt_buf *out, const struct mt_job_document *document)
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

void mt_job_page_add_title(struct mt_buf *out, const struct mt_job_report *report, const char *name)
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
