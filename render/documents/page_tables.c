/* The tables and answers of the page about a run. */
#include <stdlib.h>

#include <string.h>

#include "card_words.h"
#include "buf.h"
#include "chart_frame.h"
#include "document_tables.h"
#include "escape.h"
#include "page_head.h"
#include "process_memory.h"
#include "report.h"
#include "report_page.h"
#include "report_query.h"
#include "report_rows.h"

enum { MAX_HOLDERS = 3 };

static void begin(struct mt_buf *out, const struct mt_report *report,
                  const struct mt_device_report *device, const char *question)
{
    mt_buf_add_text(out, "<div><dt>");
    if (report->device_count > 1)
        mt_buf_printf(out, "Device %u: ", (unsigned)device->device);
    mt_buf_printf(out, "%s</dt><dd><strong>", question);
}

static void end_answer(struct mt_buf *out)
{
    mt_buf_add_text(out, "</dd></div>\n");
}

static void add_peaks(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    const bool has_reserved = mt_knows_reserved(report);
    const struct mt_peak *peak = has_reserved ? &device->reserved_peak : &device->allocated_peak;
    char bytes[MT_UNITS_TEXT];

    begin(out, report, device, has_reserved ? "Reserved peak" : "Allocated peak");
    mt_buf_printf(out, "%s</strong> ", mt_format_bytes(bytes, peak->bytes));
    if (mt_fatal_oom(device))
        mt_buf_printf(out,
                      "when the run died: a request for <span class=\"quantity\">%s</span> failed",
                      mt_format_bytes(bytes, mt_fatal_oom(device)->request_bytes));
    else if (has_reserved)
        mt_buf_printf(out, "of which <span class=\"quantity\">%s</span> was allocated",
                      mt_format_bytes(bytes, peak->then.allocated));
    end_answer(out);
}

static void add_card(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    struct mt_card_use use;
    struct mt_buf words = {0};

    if (!mt_card_use_of(report, device, &use)) {
        add_peaks(out, report, device);
        return;
    }
    mt_card_words_add(&words, report, &use);
    mt_card_words_add_cards(&words, &use, 3);
    begin(out, report, device, "Card");
    size_t sum = strcspn(words.data, "=");
    mt_buf_add(out, words.data, sum);
    mt_buf_add_text(out, "</strong>");
    mt_page_add_name(out, words.data + sum);
    end_answer(out);
    mt_buf_release(&words);
}

static void add_roles(struct mt_buf *out, const struct mt_device_report *device)
{
    const uint64_t *bytes = device->peak_role_bytes;
    const double peak = (double)device->allocated_peak.bytes;
    char share[MT_UNITS_TEXT];
    enum mt_role order[MT_ROLE_COUNT];

    mt_roles_by_bytes(bytes, order);
    for (int i = 0; i < MAX_HOLDERS && bytes[order[i]]; i++)
        mt_buf_printf(out, "%s%s <span class=\"quantity\">%s</span>", i ? ", " : "",
                      mt_holder_role_name(order[i], i == 0),
                      mt_format_percent(share, (double)bytes[order[i]] / peak));
}

/* Appends the first row of the table of live blocks: of one role, phase and site. */
static void add_largest(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    const struct mt_instant *peak = device->instant_count ? device->instants : NULL;
    const struct mt_contribution *largest = peak ? peak->holders : NULL;
    char bytes[MT_UNITS_TEXT];

    if (!largest || !peak->holder_count || !largest->site)
        return;
    mt_buf_add_text(out, report->is_plain ? "largest: " : "; largest: ");
    if (!report->is_plain)
        mt_buf_printf(out, "%s of ",
                      largest->role == MT_ROLE_OTHER ? "blocks" : mt_role_name(largest->role));
    mt_page_add_name(out, largest->site);
    mt_buf_printf(out, ", <span class=\"quantity\">%s</span>",
                  mt_format_bytes(bytes, (uint64_t)largest->bytes));
}

static void add_holders(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    char bytes[MT_UNITS_TEXT];

    if (!device->allocated_peak.bytes)
        return;
    begin(out, report, device, "What holds the allocated peak");
    mt_buf_printf(out, "%s</strong> ", mt_format_bytes(bytes, device->allocated_peak.bytes));
    if (!report->is_plain) /* a program without a framework has no roles */
        add_roles(out, device);
    add_largest(out, report, device);
    end_answer(out);
}

static void add_change(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device, bool links)
{
    if (!device->finding_count)
        return;
    begin(out, report, device, "What to change first");
    mt_buf_add_text(out, links ? "</strong><a href=\"#findings\">" : "</strong>");
    mt_page_add_words(out, device->findings[0].title);
    mt_buf_add_text(out, links ? "</a>" : "");
    end_answer(out);
}

void mt_page_add_answers(struct mt_buf *out, const struct mt_report *report, bool links)
{
    const struct mt_device_report *device = mt_worst_device(report);

    if (!device || mt_is_one_instant(report, device) || mt_lacks_requests(device))
        return;
    mt_buf_add_text(out, "<dl class=\"answers\">\n");
    add_card(out, report, device);
    add_holders(out, report, device);
    add_change(out, report, device, links);
    mt_buf_add_text(out, "</dl>\n");
}

enum { MAX_ROWS = 200, MAX_STEPS = 100, MAX_NAMES = 60 };

/* Returns the cell for an instant, below a title from when_title. */
static struct mt_table_cell when_cell(const struct mt_report *report, uint64_t t_ns, uint64_t event)
{
    return mt_report_has_times(report) ? MT_TIME(report->first_t_ns, t_ns) : MT_COUNT(event);
}

static const char *when_title(const struct mt_report *report)
{
    return mt_report_has_times(report) ? "#at" : "#at event";
}

/* Adds a cell with a phase and a step: "backward, step 1". */
static void add_where(struct mt_table *table, const struct mt_report *report, int32_t phase,
                      int64_t step)
{
    struct mt_drawing words;

    mt_drawing_init(&words, 1, 1, "words");
    MT_CELLS(table, MT_TEXT(mt_chart_frame_where(&words, report, phase, step)));
    mt_drawing_release(&words);
}

static void end(struct mt_buf *out, struct mt_table *table, const char *name,
                const struct mt_device_report *device, uint64_t omitted)
{
    mt_html_table_add(out, table,
                      &(struct mt_html_table){"sortable", name, device->device, omitted});
}

static void add_peak(struct mt_table *table, const struct mt_report *report, const char *name,
                     const struct mt_peak *peak)
{
    MT_CELLS(table, MT_TEXT(name), MT_BYTES(peak->bytes), MT_COUNT(peak->bytes),
             when_cell(report, peak->t_ns, peak->event));
    add_where(table, report, peak->phase, peak->step);
    MT_CELLS(table, MT_BYTES(peak->then.allocated), MT_BYTES(peak->then.reserved));
}

void mt_page_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    struct mt_table table;

    mt_table_begin(&table, "peak|#bytes|#exact");
    mt_table_columns(&table, when_title(report));
    mt_table_columns(&table, "during|#allocated then|#reserved then");
    add_peak(&table, report, "requested", &device->requested_peak);
    add_peak(&table, report, "allocated", &device->allocated_peak);
    add_peak(&table, report, "active", &device->active_peak);
    if (mt_knows_reserved(report))
        add_peak(&table, report, "reserved", &device->reserved_peak);
    end(out, &table, "peaks", device, 0);
}

void mt_page_add_live_table(struct mt_buf *out, const struct mt_device_report *device)
{
    uint32_t shown = device->peak_site_count < MAX_ROWS ? device->peak_site_count : MAX_ROWS;
    struct mt_table table;

    mt_table_begin(&table, "#bytes|#share|#blocks|role|allocated in|~site");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_site_use *use = &device->peak_sites[i];

        MT_CELLS(&table, MT_BYTES(use->bytes), MT_SHARE(use->bytes, device->allocated_peak.bytes),
                 MT_COUNT(use->blocks), MT_TEXT(mt_role_name(use->role)), MT_TEXT(use->phase),
                 MT_SITE(use->site));
    }
    mt_html_table_add(
        out, &table,
        &(struct mt_html_table){"live", "live", device->device, device->peak_site_count - shown});
}

void mt_page_add_modules_table(struct mt_buf *out, const struct mt_device_report *device)
{
    const struct mt_modules *modules = device->modules;
    struct mt_arena words = {0};
    struct mt_table table;

    if (!mt_modules_has_rows(modules))
        return;
    mt_buf_add_text(out, "<h3>Modules at the allocated peak</h3>\n");
    for (uint32_t row = 0; row < modules->layer_count;) {
        const char *group = mt_module_group_text(&words, modules, &row);

        mt_buf_add_text(out, "<p>");
        mt_escape_add_xml_line(out, group);
        mt_buf_add_text(out, "</p>\n");
    }
    mt_arena_release(&words);
    mt_buf_add_text(out, "<p class=\"small\">The layer of a block is known at the end of the run, "
                         "for the blocks of one instant. The timeline therefore has no layers by "
                         "module. For another instant run <code>memtrace live TRACE --at EVENT "
                         "--by module</code>.</p>\n");
    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_report_rows_add_modules(&table, modules, MAX_ROWS);
    end(out, &table, "modules", device, 0);
}

void mt_page_add_pools_table(struct mt_buf *out, const struct mt_device_report *device)
{
    struct mt_table table;

    if (!device->pool_count)
        return;
    mt_buf_add_text(out, "<h3>Pools of the allocator, at the end</h3>\n");
    mt_table_begin(&table, MT_POOL_TITLES);
    mt_report_rows_add_pools(&table, device, MAX_ROWS);
    end(out, &table, "pools", device, 0);
}

/* Finds the MAX_STEPS steps with the highest peaks that the trace covers. */
static void highest_steps(const struct mt_report *report, const struct mt_device_report *device,
                          struct mt_largest *largest)
{
    uint64_t *peaks = mt_memory_new(device->step_count * sizeof *peaks);
    size_t count = 0;

    for (uint32_t i = 0; i < device->step_count; i++)
        if (mt_report_covers(report, device, device->steps[i].end_event))
            peaks[count++] = device->steps[i].peak.allocated;
    *largest = mt_largest_of(peaks, count, MAX_STEPS);
    free(peaks);
}

void mt_page_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    struct mt_largest highest;
    struct mt_table table;
    uint64_t shown = 0;

    if (!device->step_count)
        return;
    highest_steps(report, device, &highest);
    mt_buf_add_text(out, "<h3>Steps</h3>\n");
    mt_table_begin(&table, mt_report_has_times(report)
                               ? "#step|#before|#peak|#after|#change|#reserved|#time|#peak at"
                               : "#step|#before|#peak|#after|#change|#reserved|#events|#peak at "
                                 "event");
    for (uint32_t i = 0; i < device->step_count; i++) {
        const struct mt_step_use *step = &device->steps[i];

        if (!mt_report_covers(report, device, step->end_event) ||
            !mt_report_rows_is_large(&highest, step->peak.allocated))
            continue;
        mt_report_rows_add_step(&table, report, step);
        MT_CELLS(&table, when_cell(report, step->peak_allocated_t_ns, step->peak_allocated_event));
        shown++;
    }
    end(out, &table, "steps", device, device->step_count - shown);
}

void mt_page_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                              const struct mt_device_report *device)
{
    struct mt_phase_sum sums[MAX_NAMES];
    struct mt_table table;
    size_t count;

    mt_report_rows_sum_phases(report, device, sums, MAX_NAMES, &count);
    if (!count)
        return;
    mt_buf_add_text(out, "<h3>Phases</h3>\n");
    mt_table_begin(&table, "phase|#instances|#highest peak|#most left|#allocations|#frees");
    if (mt_report_has_times(report))
        mt_table_columns(&table, "#time");
    for (size_t i = 0; i < count && i < MAX_NAMES; i++) {
        MT_CELLS(&table, MT_TEXT(sums[i].name), MT_COUNT(sums[i].instances),
                 MT_BYTES(sums[i].peak_bytes), MT_CHANGE(sums[i].most_left),
                 MT_COUNT(sums[i].allocations), MT_COUNT(sums[i].frees));
        if (mt_report_has_times(report))
            MT_CELLS(&table, MT_TIME(0, sums[i].time_ns));
    }
    end(out, &table, "phases", device, count > MAX_NAMES ? count - MAX_NAMES : 0);
}

void mt_page_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                            const struct mt_device_report *device)
{
    uint32_t shown = device->oom_count < MAX_ROWS ? device->oom_count : MAX_ROWS;
    struct mt_table table;

    if (!device->oom_count)
        return;
    mt_buf_add_text(out, "<h3>Requests that ran out of memory</h3>\n");
    mt_table_begin(&table, when_title(report));
    mt_table_columns(&table, "during|#requested|#device free|#allocated then|#reserved then|");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_oom *oom = &device->oom_list[i];

        MT_CELLS(&table, when_cell(report, oom->t_ns, oom->event));
        add_where(&table, report, oom->phase, oom->step);
        MT_CELLS(&table, MT_BYTES(oom->request_bytes), MT_BYTES(oom->device_free_bytes),
                 MT_BYTES(oom->then.allocated), MT_BYTES(oom->then.reserved),
                 MT_TEXT(oom->fatal ? "ended the program" : ""));
    }
    end(out, &table, "ooms", device, device->oom_count - shown);
}
