/* What the first screen of `memtrace analyze` leaves out: all digits, address orders, tags; and the
 * lines that replace it for recordings without requests, without history, or of a failure. */
#include <string.h>

#include "analyze_output.h"
#include "device_model.h"
#include "foreign_text.h"
#include "heaps.h"
#include "report_query.h"
#include "site.h"
#include "text_table.h"
#include "units.h"
#include "util.h"
#include "verdict.h"

/* The tags that the program gave its blocks. */

enum { MAX_TAGS = 8, MAX_TAG_BYTES = 60 };

/* Tags that name roles are in the line of roles. */
static bool is_worth_a_line(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->peak_tag_count; i++)
        if (!device->peak_tags[i].names_role)
            return true;
    return false;
}

static void add_tag(struct mt_buf *line, const struct mt_tag_use *use, double peak)
{
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    size_t length = strlen(use->tag);

    mt_buf_add_char(line, '\'');
    mt_buf_add_printable(line, use->tag, length > MAX_TAG_BYTES ? MAX_TAG_BYTES : length);
    mt_buf_printf(line, "%s' %s (%s)", length > MAX_TAG_BYTES ? "..." : "",
                  mt_format_bytes(size, use->bytes),
                  mt_format_percent(share, (double)use->bytes / peak));
}

/* Appends a line about the tags of the program. Appends nothing if every tag names a role. */
static void report_tags(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    double peak = (double)device->allocated_peak.bytes;
    uint64_t tagged = 0;
    char size[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!is_worth_a_line(device))
        return;
    mt_buf_add_text(&line, "tagged by the program: ");
    for (uint32_t i = 0; i < device->peak_tag_count; i++) {
        tagged += device->peak_tags[i].bytes;
        if (i >= MAX_TAGS)
            continue;
        mt_buf_add_text(&line, i ? ", " : "");
        add_tag(&line, &device->peak_tags[i], peak);
    }
    if (device->peak_tag_count > MAX_TAGS)
        mt_buf_printf(&line, " and %u more", device->peak_tag_count - MAX_TAGS);
    if (tagged < device->allocated_peak.bytes)
        mt_buf_printf(&line, "; not tagged %s",
                      mt_format_bytes(size, device->allocated_peak.bytes - tagged));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

/* The part of `memtrace analyze` for XLA and TensorFlow: a notice that requests are missing, or how
 * much the default arena would have held. */

void mt_analyze_add_missing_requests(struct mt_buf *out, const struct mt_style *style)
{
    mt_buf_printf(out,
                  "%sRequests to XLA's arena are MISSING%s: record with memtrace record "
                  "--xla-requests\n",
                  style->bold, style->reset);
}

void mt_reporter_missing_requests(const struct mt_reporter *reporter)
{
    const uint64_t bytes = reporter->device->allocated_peak.bytes;
    char held[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    mt_analyze_add_missing_requests(reporter->out, reporter->style);
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter,
            "The arena takes regions from the driver and hands out parts of them. The driver calls "
            "show a peak of %s (%s B), but not how much of it the program used, or for what",
            mt_format_bytes(held, bytes), mt_format_count(exact, bytes)));
}

static bool has_ties(const struct mt_xla_use *xla)
{
    for (uint32_t i = 0; i < xla->arena_count; i++)
        if (xla->arenas[i].address_ties)
            return true;
    return false;
}

void mt_reporter_arenas(const struct mt_reporter *reporter)
{
    const struct mt_xla_use *xla = reporter->device->xla;
    struct mt_table table;

    if (!xla || xla->requests_missing)
        return;
    mt_reporter_heading(reporter, "In XLA's own arena (bfc, the default)");
    mt_table_begin(&table, "arena|#peak pool|#peak in use|#requests|#refused|~policy");
    for (uint32_t i = 0; i < xla->arena_count; i++) {
        const struct mt_xla_arena *arena = &xla->arenas[i];

        MT_CELLS(&table, MT_TEXT(arena->preallocated ? "preallocated (75%)" : "growing"),
                 MT_BYTES(arena->pool_bytes), MT_BYTES(arena->in_use_bytes),
                 MT_COUNT(arena->requests), MT_COUNT(arena->failures), MT_TEXT(arena->policy));
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
    if (has_ties(xla))
        mt_reporter_line(
            reporter, 2,
            "from replays; approximate, because the addresses of regions decide between "
            "equal free blocks");
}

static void report_in_red(const struct mt_reporter *reporter, const char *text)
{
    mt_buf_add_text(reporter->out, reporter->style->red);
    mt_reporter_line(reporter, 0, text);
    mt_buf_add_text(reporter->out, reporter->style->reset);
}

/* The program had enough address space if fewer streams or smaller reservations took it. */
static void report_no_space(const struct mt_reporter *reporter,
                            const struct mt_driver_failure *failure)
{
    const char *options = reporter->report->options;
    char held[MT_UNITS_TEXT];

    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter,
            "The address space ran out, not the memory: %s of it was reserved, and a range as "
            "large was granted before%s",
            mt_format_bytes(held, failure->held_bytes),
            options && strstr(options, "expandable_segments:True")
                ? "; fewer streams or expandable_segments_reserve (PyTorch 2.15) reserve less"
                : ""));
}

/* Without a framework, nothing retries a refused request, so the program usually ends there; the
 * same holds for a refusal of address space. */
void mt_reporter_refused(const struct mt_reporter *reporter)
{
    const struct mt_driver_report *driver =
        mt_driver_of(reporter->report, reporter->device->device);
    const char *site = "";
    char wanted[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    if (!driver || (reporter->report->is_driver_level ? !driver->failure_count : !driver->no_space))
        return;
    const struct mt_driver_failure *failure =
        driver->no_space ? driver->no_space : &driver->failures[0];
    if (failure->stack != MT_NO_ID)
        site = mt_site_label(reporter->arena, reporter->report->symbols, failure->stack, false);
    report_in_red(reporter,
                  mt_reporter_format(
                      reporter, "The driver REFUSED %s of %s, at %s%s%s%s",
                      mt_format_bytes(wanted, failure->request_bytes),
                      mt_heap_meaning(reporter->report->symbols, failure->heap),
                      mt_reporter_at(reporter, failure->t_ns, failure->event),
                      *site ? ", requested by " : "", site,
                      driver->failures_in_all == 1
                          ? ""
                          : mt_reporter_format(reporter, "; %s requests were refused in total",
                                               mt_format_count(count, driver->failures_in_all))));
    if (driver->no_space)
        report_no_space(reporter, failure);
}

/* Appends the number of address orders, and the range of needs if they differ (fit.h). */
static void add_orders(struct mt_buf *line, const struct mt_need *need)
{
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    mt_format_bytes(low, need->low_bytes);
    if (need->is_one_of_many)
        mt_buf_printf(line, ", for one address order (memtrace fit tries %d)", MT_BASE_ORDERS);
    else if (need->low_bytes < need->bytes && !strcmp(low, mt_format_bytes(high, need->bytes)))
        mt_buf_printf(line, " in all %u address orders that were tried (%s less in the best)",
                      need->order_count, mt_format_bytes(low, need->bytes - need->low_bytes));
    else if (need->low_bytes < need->bytes)
        mt_buf_printf(line, " in all %u address orders that were tried (%s in the best)",
                      need->order_count, low);
}

static void report_need(const struct mt_reporter *reporter)
{
    const struct mt_need *need = reporter->device->need;
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], above[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!need)
        return;
    mt_buf_printf(&line, "Smallest limit of the allocator %s (%s B)",
                  mt_format_bytes(text, need->bytes), mt_format_count(exact, need->bytes));
    if (need->above_limit_bytes)
        mt_buf_printf(&line, ", with %s that expandable segments map above it",
                      mt_format_bytes(above, need->above_limit_bytes));
    add_orders(&line, need);
    if (need->depends_on_memory)
        mt_buf_add_text(&line,
                        "; under another limit the program may request other memory, because "
                        "memory ran out");
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

/* A dry run uses one order of addresses; a real run may use another. */
static void add_peak_range(struct mt_buf *line, uint64_t low_bytes, uint64_t high_bytes,
                           uint32_t order_count)
{
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (low_bytes == high_bytes)
        return;
    mt_format_bytes(low, low_bytes);
    if (!strcmp(low, mt_format_bytes(high, high_bytes)))
        mt_buf_printf(line, "; varies by up to %s", mt_format_bytes(low, high_bytes - low_bytes));
    else
        mt_buf_printf(line, "; between %s and %s", low, high);
    mt_buf_printf(line, " over %u address orders; a real device has a different one", order_count);
}

static void report_peak(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_peak *peak = &device->allocated_peak;
    const char *in = mt_reporter_in(reporter, peak->phase, peak->step);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "Allocated peak %s (%s B)%s%s, at %s", mt_format_bytes(bytes, peak->bytes),
                  mt_format_count(exact, peak->bytes), *in ? " " : "", in,
                  mt_reporter_at(reporter, peak->t_ns, peak->event));
    if (device->peak_orders)
        add_peak_range(&line, device->peak_orders->allocated_low_bytes,
                       device->peak_orders->allocated_high_bytes, device->peak_orders->order_count);
    if (peak->then.reserved != device->reserved_peak.bytes)
        mt_buf_printf(&line, ", with %s reserved", mt_format_bytes(reserved, peak->then.reserved));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

static void report_roles(const struct mt_reporter *reporter)
{
    const uint64_t *bytes = reporter->device->peak_role_bytes;
    double peak = (double)reporter->device->allocated_peak.bytes;
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    enum mt_role order[MT_ROLE_COUNT];

    mt_roles_by_bytes(bytes, order);
    if (reporter->report->is_plain) /* a program without a framework has no roles */
        return;
    mt_buf_add_text(&line, "held by ");
    for (int i = 0; i < MT_ROLE_COUNT && bytes[order[i]]; i++)
        mt_buf_printf(&line, "%s%s %s (%s)", i ? ", " : "", mt_holder_role_name(order[i], i == 0),
                      mt_format_bytes(size, bytes[order[i]]),
                      mt_format_percent(share, (double)bytes[order[i]] / peak));
    if (line.data && bytes[order[0]])
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

/* The reserved peak, and how much was unused then or at the allocated peak. */
static void report_reserved(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_peak *most = &device->reserved_peak, *full = mt_fragmentation_peak(device);
    const uint64_t waiting = mt_sub_or_0_u64(full->then.active, full->then.allocated);
    const char *in = mt_reporter_in(reporter, most->phase, most->step);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], unused[MT_UNITS_TEXT];
    char share[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "Reserved peak %s (%s B)%s%s, at %s", mt_format_bytes(bytes, most->bytes),
                  mt_format_count(exact, most->bytes), *in ? " " : "", in,
                  mt_reporter_at(reporter, most->t_ns, most->event));
    if (full->then.reserved > full->then.allocated)
        mt_buf_printf(&line, ", %s of it (%s) unused%s",
                      mt_format_bytes(unused, full->then.reserved - full->then.allocated),
                      mt_format_percent(share, mt_unused_share(&full->then)),
                      full == most ? "" : " at the allocated peak");
    if (waiting > most->bytes / 20)
        mt_buf_printf(&line, " (%s was freed and waits for a stream)",
                      mt_format_bytes(unused, waiting));
    if (device->peak_orders)
        add_peak_range(&line, device->peak_orders->reserved_low_bytes,
                       device->peak_orders->reserved_high_bytes, device->peak_orders->order_count);
    if (!mt_fatal_oom(device) && reporter->report->device_count == 1) /* else in the table */
        mt_buf_printf(&line, "; at the end, %s allocated of %s reserved",
                      mt_format_bytes(bytes, device->end.allocated),
                      mt_format_bytes(unused, device->end.reserved));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

/* The instant at which the program would have failed under another policy or limit. */
void mt_reporter_failure(const struct mt_reporter *reporter)
{
    const struct mt_oom *failure = &reporter->device->first_failure;
    const uint64_t failures = reporter->device->replay.failed_requests;
    char wanted[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];
    char count[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!reporter->device->has_failure)
        return;
    const char *in = mt_reporter_in(reporter, failure->phase, failure->step);
    mt_buf_printf(
        &line,
        "Would RUN OUT OF MEMORY%s%s, at %s: a request for %s fails with %s allocated and %s "
        "reserved. %s request%s in total; what follows the first failure is hypothetical.",
        *in ? " " : "", in, mt_reporter_at(reporter, failure->t_ns, failure->event),
        mt_format_mib(wanted, failure->request_bytes),
        mt_format_mib(allocated, failure->then.allocated),
        mt_format_mib(reserved, failure->then.reserved), mt_format_count(count, failures),
        failures == 1 ? " fails" : "s fail");
    if (line.data)
        report_in_red(reporter, line.data);
    mt_buf_release(&line);
}

/* Setup, such as the conversion of a model, may need more memory than the phases. */
static void report_setup_peak(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    uint64_t most = 0;
    char size[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!report->phase_count ||
        reporter->device->allocated_peak.event >= report->phases[0].begin_event)
        return;
    for (uint32_t i = 0; i < report->phase_count; i++)
        most = mt_max_u64(most, reporter->device->phase_uses[i].peak.allocated);
    mt_buf_printf(&line,
                  "This peak is in setup, before the first phase; within phases the peak is %s",
                  mt_format_bytes(size, most));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

void mt_reporter_run(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    bool has_history = report->device_count == 0;
    uint64_t ooms = 0, retries = 0, refusals = 0;
    char n[3][MT_UNITS_TEXT];

    for (uint32_t i = 0; i < report->device_count; i++) {
        ooms += report->devices[i].ooms;
        retries += report->devices[i].retries;
        refusals += report->devices[i].refusals;
        has_history |= !mt_is_one_instant(report, &report->devices[i]);
    }
    mt_reporter_title(
        reporter, 0,
        !mt_has_allocator(report) ? ""
        : !has_history            ? ", OOMs and retries unknown"
        : refusals && !ooms && !retries
            ? mt_reporter_format(reporter, ", %s request%s refused",
                                 mt_format_count(n[2], refusals), refusals == 1 ? " was" : "s were")
        : !ooms && !retries
            ? ", no OOM, no retries"
            : mt_reporter_format(reporter, ", %s, %s retr%s", mt_format_counted(n[0], ooms, "OOM"),
                                 mt_format_count(n[1], retries), retries == 1 ? "y" : "ies"));
}

void mt_reporter_one_instant(const struct mt_reporter *reporter)
{
    const struct mt_bytes *end = &reporter->device->end;
    char allocated[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "No history: a single instant, with %s allocated (%s B)",
                  mt_format_bytes(allocated, end->allocated),
                  mt_format_count(exact, end->allocated));
    if (mt_knows_reserved(reporter->report)) /* otherwise what was reserved is unknown */
        mt_buf_printf(&line, " of %s reserved", mt_format_bytes(reserved, end->reserved));
    mt_reporter_headline(reporter, &line);
    mt_reporter_line(reporter, 2, mt_no_history_help(reporter->report));
}

static void report_notice(const struct mt_reporter *reporter, const char *title, const char *help)
{
    mt_buf_printf(reporter->out, "%s%s%s\n", reporter->style->bold, title, reporter->style->reset);
    mt_reporter_line(reporter, 2, help);
}

/* Peaks before the first event may have been higher. */
static void report_late_start(const struct mt_reporter *reporter)
{
    if (reporter->report->starts_in_middle && reporter->device->start.allocated)
        report_notice(
            reporter, "The beginning of the run is missing: earlier peaks are unknown",
            reporter->report->is_snapshot
                ? "Recording started in the middle of the run, or its buffer overflowed. Start it "
                  "before the model is created, with a max_entries that holds the whole run"
                : "Recording started in the middle of the run");
}

/* Warns that the numbers below come from an incomplete trace. */
static void report_missing_entries(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    char count[MT_UNITS_TEXT];

    if (!report->integrity.events_dropped)
        return;
    report_notice(
        reporter,
        mt_reporter_format(reporter, "Events are missing (at least %s): no number below is exact",
                           mt_format_count(count, report->integrity.events_dropped)),
        report->is_snapshot
            ? "Either skip_actions of _record_memory_history() left them out, or the file was "
              "edited; 'memtrace info' shows what is missing"
        : report->is_imported
            ? "The imported file does not have them; 'memtrace info' shows which"
            : "The recorder could not keep all of them; 'memtrace info' shows why");
}

void mt_reporter_notices(const struct mt_reporter *reporter)
{
    report_missing_entries(reporter);
    report_late_start(reporter);
}

void mt_reporter_answer(const struct mt_reporter *reporter)
{
    if (mt_is_one_instant(reporter->report, reporter->device) ||
        mt_lacks_requests(reporter->device))
        return;
    mt_reporter_heading(reporter, "In all digits");
    report_need(reporter);
    if (reporter->report->is_dry_run)
        mt_reporter_card(reporter);
    if (mt_knows_reserved(reporter->report))
        report_reserved(reporter);
    report_peak(reporter);
    report_setup_peak(reporter);
    report_roles(reporter);
    report_tags(reporter);
}
