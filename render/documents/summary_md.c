#include "summary_md.h"

#include <stdio.h>
#include <string.h>

#include "device_choice.h"
#include "document_tables.h"
#include "escape.h"
#include "report_query.h"
#include "text_chart.h"
#include "units.h"
#include "verdict.h"

enum {
    MAX_ROWS = 64, /* maximum number of gates in the table */
    MAX_SITES = 10,
    MAX_FINDINGS = 5,
    LINE_COLUMNS = 48, /* columns of the line of memory over time */
    END_BYTES = 2000   /* reserved for the last part */
};

/* The state of the summary. Rows that do not fit are omitted and counted. */
struct page {
    struct mt_buf *out, row;
    size_t begin, omitted;
};

static void end_row(struct page *page)
{
    if (page->out->length - page->begin + page->row.length + END_BYTES <= MT_SUMMARY_BYTES)
        mt_buf_add(page->out, page->row.data, page->row.length);
    else
        page->omitted++;
    mt_buf_reset(&page->row);
}

static void say_omitted(struct page *page)
{
    char count[MT_UNITS_TEXT];

    if (page->omitted)
        mt_buf_printf(page->out, "\n%s omitted\n", mt_format_counted(count, page->omitted, "row"));
    page->omitted = 0;
}

static void add_bytes(struct mt_buf *out, uint64_t bytes)
{
    char text[MT_UNITS_TEXT];

    mt_buf_add_text(out, mt_format_bytes(text, bytes));
}

/* Writes the table and releases it. */
static void add_table(struct page *page, struct mt_table *table)
{
    mt_markdown_add_head(page->out, table);
    for (size_t i = 0; i < mt_table_rows(table); i++) {
        mt_markdown_add_row(&page->row, table, i);
        end_row(page);
    }
    mt_table_release(table);
}

static void add_verdict(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_gates *gates)
{
    struct mt_buf verdict = {0};

    mt_verdict_add(&verdict, report, gates);
    mt_buf_add_text(out, "### memtrace: ");
    mt_escape_add_markdown(out, verdict.data ? verdict.data : "", MT_MARKDOWN_SENTENCE);
    mt_buf_add_text(out, "\n\n");
    mt_buf_release(&verdict);
}

static void add_dry_run(struct mt_buf *out, const struct mt_dry_run *dry_run)
{
    struct mt_buf words = {0};

    mt_header_add_simulated_card(&words, dry_run);
    mt_buf_add_text(&words, ": times and values are meaningless");
    mt_buf_add_text(out, "Dry run on a ");
    mt_escape_add_markdown(out, words.data ? words.data : "", MT_MARKDOWN_SENTENCE);
    mt_buf_add_text(out, ".\n\n");
    mt_buf_release(&words);
}

static void add_peak(struct mt_table *table, const char *name, uint64_t now, const uint64_t *base)
{
    MT_CELLS(table, MT_TEXT(name));
    if (base)
        MT_CELLS(table, MT_BYTES(*base));
    MT_CELLS(table, MT_BYTES(now));
    if (base)
        MT_CELLS(table, MT_CHANGE_OF(*base, now));
}

/* Appends a line of memory over time: "`memory ▁▁▃▅▂` peak 6.45 GiB in backward, step 1". */
static void add_line(struct page *page, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    const struct mt_peak *peak = &device->allocated_peak;
    struct mt_buf *row = &page->row;

    if (!device->timeline || !peak->bytes)
        return;
    mt_buf_add_text(row, "`memory ");
    mt_text_chart_add_sparkline(row, report, device, LINE_COLUMNS);
    mt_buf_add_text(row, "` peak ");
    add_bytes(row, peak->bytes);
    if (peak->phase != MT_NO_PHASE && !report->phases[peak->phase].is_step) {
        mt_buf_add_text(row, " in ");
        mt_escape_add_markdown(row, report->phases[peak->phase].name, MT_MARKDOWN_NAME);
    }
    if (peak->step != MT_NO_STEP)
        mt_buf_printf(row, ", step %lld", (long long)peak->step);
    mt_buf_add_text(row, "\n\n");
    end_row(page);
}

static void add_peaks(struct page *page, const struct mt_report *report,
                      const struct mt_device_report *device, const struct mt_baseline_device *base)
{
    bool has_reserved = mt_knows_reserved(report);
    const uint64_t *reserved = base && base->has_reserved ? &base->reserved_peak_bytes : NULL;
    char text[MT_UNITS_TEXT];
    struct mt_table table;

    if (report->device_count > 1)
        mt_buf_printf(page->out, "Device %u\n\n", device->device);
    mt_table_begin(&table, base ? "peak|#base|#this run|#change" : "peak|#this run");
    add_peak(&table, "requested", device->requested_peak.bytes,
             base ? &base->requested_peak_bytes : NULL);
    add_peak(&table, "allocated", device->allocated_peak.bytes,
             base ? &base->allocated_peak_bytes : NULL);
    has_reserved = has_reserved && (reserved || !base);
    if (has_reserved)
        add_peak(&table, "reserved", device->reserved_peak.bytes, reserved);
    add_table(page, &table);
    if (has_reserved) {
        mt_buf_printf(
            &page->row, "\n%s of reserved memory was unused at the %s.\n",
            mt_format_percent(text, mt_unused_share(&mt_fragmentation_peak(device)->then)),
            mt_fragmentation_instant(device));
        end_row(page);
    }
    mt_buf_add_char(page->out, '\n');
}

/* Returns the mark of a rule, which lets a reader find failures in a list. */
static const char *mark_of(const struct mt_gate_result *result)
{
    if (result->state == MT_GATE_PASS)
        return "\xE2\x9C\x85 ";
    return result->state == MT_GATE_FAIL && !result->excused ? "\xE2\x9D\x8C " : "";
}

static void add_gates(struct page *page, const struct mt_gates *gates)
{
    size_t shown = gates->count < MAX_ROWS ? gates->count : MAX_ROWS;
    char state[40];
    struct mt_table table;

    mt_table_begin(&table, "~rule|result|measured");
    for (size_t i = 0; i < shown; i++) {
        const struct mt_gate_result *result = &gates->results[i];

        snprintf(state, sizeof state, "%s%s%s", mark_of(result), mt_gate_state_name(result->state),
                 result->excused ? " (allowed)" : "");
        MT_CELLS(&table, MT_SITE(result->name), MT_TEXT(state), MT_SENTENCE(result->verdict));
    }
    add_table(page, &table);
    page->omitted += gates->count - shown;
    say_omitted(page);
    mt_buf_add_char(page->out, '\n');
}

static void add_advice(struct mt_buf *out, const char *advice)
{
    struct mt_advice_part part = {.is_setting = false};

    while (mt_advice_next(&advice, &part))
        if (part.is_setting)
            mt_markdown_add_code(out, part.text.data ? part.text.data : "");
        else
            mt_escape_add_markdown(out, part.text.data ? part.text.data : "", MT_MARKDOWN_SENTENCE);
    mt_buf_release(&part.text);
}

/* Returns true if an earlier rule has the same cause, which is printed once with its advice. */
static bool said_before(const struct mt_gates *gates, size_t index)
{
    const struct mt_gate_result *result = &gates->results[index];

    for (size_t i = 0; i < index; i++) {
        const struct mt_gate_result *other = &gates->results[i];

        if (other->culprit && result->culprit && strcmp(other->culprit, result->culprit) == 0)
            return true;
    }
    return false;
}

static void add_why(struct page *page, const struct mt_gates *gates)
{
    for (size_t i = 0; i < gates->count; i++) {
        const struct mt_gate_result *result = &gates->results[i];

        if ((!result->culprit && !result->advice) || said_before(gates, i))
            continue;
        mt_buf_add_text(&page->row, "- ");
        mt_markdown_add_code(&page->row, result->name);
        mt_buf_add_text(&page->row, ": ");
        if (result->culprit)
            mt_escape_add_markdown(&page->row, result->culprit, MT_MARKDOWN_SENTENCE);
        if (result->advice) {
            mt_buf_add_text(&page->row, result->culprit ? ". **Try:** " : "**Try:** ");
            add_advice(&page->row, result->advice);
        }
        mt_buf_add_char(&page->row, '\n');
        end_row(page);
    }
    say_omitted(page);
    mt_buf_add_char(page->out, '\n');
}

static void add_findings(struct page *page, const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->finding_count && i < MAX_FINDINGS; i++) {
        const struct mt_finding *finding = &device->findings[i];

        mt_buf_add_text(&page->row, "- ");
        mt_escape_add_markdown(&page->row, finding->title, MT_MARKDOWN_SENTENCE);
        mt_buf_add_text(&page->row, ". **Do:** ");
        add_advice(&page->row, finding->advice);
        mt_buf_add_char(&page->row, '\n');
        end_row(page);
    }
    if (device->finding_count)
        mt_buf_add_char(page->out, '\n');
}

static void add_sites(struct page *page, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    uint32_t shown = device->peak_site_count < MAX_SITES ? device->peak_site_count : MAX_SITES;
    struct mt_table table;

    if (!shown)
        return;
    mt_buf_printf(page->out,
                  "<details><summary>Largest holders %s of device %u (%u of "
                  "%u)</summary>\n\n",
                  mt_is_one_instant(report, device) ? "in the snapshot" : "at the allocated peak",
                  device->device, shown, device->peak_site_count);
    mt_table_begin(&table, "#bytes|#blocks|role|~site|phase");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_site_use *use = &device->peak_sites[i];

        MT_CELLS(&table, MT_BYTES(use->bytes), MT_COUNT(use->blocks),
                 MT_TEXT(mt_role_name(use->role)), MT_SITE(use->site), MT_TEXT(use->phase));
    }
    add_table(page, &table);
    say_omitted(page);
    mt_buf_add_text(page->out, "\n</details>\n\n");
}

static void add_end(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_baseline *base)
{
    mt_buf_add_text(out, "<sub>");
    mt_markdown_add_code(out, report->name);
    if (*report->sha256)
        mt_buf_printf(out, ", sha256 %.12s", report->sha256);
    if (base && base->name) {
        mt_buf_add_text(out, "; base ");
        mt_markdown_add_code(out, base->name);
    }
    if (report->what_if) {
        mt_buf_add_text(out, "; simulated with ");
        mt_escape_add_markdown(out, report->policy, MT_MARKDOWN_NAME);
    }
    mt_buf_add_text(out, "</sub>\n");
    mt_markdown_add_marker(out, "memtrace", report->name);
}

void mt_summary_md_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_gates *gates, const struct mt_baseline *base)
{
    const struct mt_device_choice choice = mt_devices_in_order(report);
    struct page page = {.out = out, .begin = out->length};
    uint32_t shown = 0;

    add_verdict(out, report, gates);
    if (report->is_dry_run)
        add_dry_run(out, &report->dry_run);
    if (gates && gates->count) {
        add_gates(&page, gates);
        add_why(&page, gates);
    }
    for (; shown < choice.count; shown++) {
        const struct mt_device_report *device = choice.devices[shown];

        if (out->length - page.begin + 2 * END_BYTES > MT_SUMMARY_BYTES)
            break;
        if (mt_is_one_instant(report, device)) {
            mt_buf_printf(out, "%s.\n\n", mt_no_history_help(report));
        } else {
            add_peaks(&page, report, device, mt_baseline_device(base, device->device));
            add_line(&page, report, device);
        }
        add_findings(&page, device);
        add_sites(&page, report, device);
    }
    if (shown < report->device_count)
        mt_buf_printf(
            out,
            "\n%u of %u devices are shown; `memtrace live TRACE --device N` shows another "
            "one, `memtrace analyze TRACE --all` all of them\n\n",
            shown, report->device_count);
    page.omitted = 0;
    add_end(out, report, base);
    mt_buf_release(&page.row);
}
