/* The part of the text that only recorded traces have: memory that the process requested from the
 * driver, memory outside of the framework, and memory that no allocation explains. */
#include "analyze_output.h"
#include "heaps.h"
#include "report_query.h"
#include "site.h"
#include "text_table.h"
#include "units.h"

#define MAX_OWNERS   12
#define MAX_FAILURES 6

/* "NCCL, communicator 2 of 3 with 8 ranks (ncclCommSplit)" */
static const char *owner_words(const struct mt_reporter *reporter,
                               const struct mt_driver_report *driver,
                               const struct mt_owner_use *owner)
{
    const char *text = mt_owner_text(reporter->arena, driver, owner);

    return text && owner->call ? mt_reporter_format(reporter, "%s (%s)", text, owner->call) : text;
}

static void report_owners(const struct mt_reporter *reporter, const struct mt_driver_report *driver)
{
    struct mt_table table;
    uint64_t rest_bytes = 0, rest_blocks = 0;

    mt_table_begin(&table, "#bytes|#blocks|library|~called from");
    for (uint32_t i = 0; i < driver->owner_count; i++) {
        const struct mt_owner_use *owner = &driver->owners[i];

        if (i >= MAX_OWNERS) {
            rest_bytes += owner->bytes;
            rest_blocks += owner->blocks;
            continue;
        }
        MT_CELLS(&table, MT_BYTES(owner->bytes), MT_COUNT(owner->blocks),
                 MT_TEXT(owner_words(reporter, driver, owner)), MT_SITE(owner->site));
    }
    if (rest_blocks)
        MT_CELLS(&table, MT_BYTES(rest_bytes), MT_COUNT(rest_blocks),
                 MT_TEXT("all others together"), MT_TEXT(""));
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* Registered buffers belong to the program or the framework, so they have no row. */
static void report_registered(const struct mt_reporter *reporter,
                              const struct mt_driver_report *driver)
{
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < driver->told_communicator_count; i++) {
        const struct mt_communicator_use *of = &driver->communicators[i];
        const char *which = "";

        if (!of->registered_peak_bytes)
            continue;
        if (of->communicator != MT_NO_COMMUNICATOR && driver->communicator_count > 1)
            which = mt_reporter_format(reporter, " %d of %u", of->communicator + 1,
                                       driver->communicator_count);
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(
                reporter,
                "Buffers that the program registered with NCCL communicator%s: %s (%s B) at most",
                which, mt_format_bytes(bytes, of->registered_peak_bytes),
                mt_format_count(exact, of->registered_peak_bytes)));
    }
}

static void report_outside(const struct mt_reporter *reporter,
                           const struct mt_driver_report *driver)
{
    const struct mt_driver_level *then = &driver->then;
    char outside[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], all[MT_UNITS_TEXT], own[MT_UNITS_TEXT];

    if (!driver->has_calls || !driver->has_then)
        return;
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(reporter,
                           "At the framework's peak, the process held %s from the driver: %s "
                           "in segments of the framework and %s (%s B) outside them%s",
                           mt_format_bytes(all, then->bytes),
                           mt_format_bytes(own, then->framework_bytes),
                           mt_format_bytes(outside, then->bytes - then->framework_bytes),
                           mt_format_count(exact, then->bytes - then->framework_bytes),
                           driver->owner_count ? ":" : ""));
    report_owners(reporter, driver);
    report_registered(reporter, driver);
}

static void report_peak(const struct mt_reporter *reporter, const struct mt_driver_report *driver)
{
    const struct mt_driver_level *peak = &driver->peak;
    const char *in = mt_reporter_in_phase(reporter, peak->phase);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], own[MT_UNITS_TEXT], outside[MT_UNITS_TEXT];
    const char *split = "";

    if (!driver->has_calls || !peak->bytes || reporter->report->is_driver_level ||
        (driver->has_then && driver->then.bytes == peak->bytes)) /* report_outside prints it */
        return;
    if (driver->has_then)
        split = mt_reporter_format(reporter, ": %s for the framework, %s outside",
                                   mt_format_bytes(own, peak->framework_bytes),
                                   mt_format_bytes(outside, peak->bytes - peak->framework_bytes));
    mt_reporter_line(reporter, 2,
                     mt_reporter_format(reporter, "Peak from the driver: %s (%s B)%s%s, at %s%s",
                                        mt_format_bytes(bytes, peak->bytes),
                                        mt_format_count(exact, peak->bytes), *in ? " " : "", in,
                                        mt_reporter_at(reporter, peak->t_ns, peak->event), split));
}

static void report_heaps(const struct mt_reporter *reporter, const struct mt_driver_report *driver)
{
    struct mt_table table;

    mt_table_begin(&table, "heap|#peak|#at the end|#allocations|~");
    for (uint32_t i = 0; i < driver->heap_count; i++) {
        const struct mt_heap_use *heap = &driver->heaps[i];

        MT_CELLS(&table, MT_TEXT(heap->name), MT_BYTES(heap->peak_bytes),
                 MT_BYTES(heap->live_bytes), MT_COUNT(heap->allocations),
                 MT_TEXT(mt_reporter_format(reporter, "%s%s", heap->what,
                                            heap->is_device_memory ? "" : " (not counted)")));
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* Formats a difference. It is negative if the driver counts bytes that NVML does not. */
static const char *difference(char text[MT_UNITS_TEXT], int64_t bytes)
{
    return bytes < 0 ? mt_format_change(text, bytes) : mt_format_bytes(text, (uint64_t)bytes);
}

/* Returns "the only sample" or "the highest use of 80 samples; 500 MiB to 501 MiB over all
 * samples". */
static const char *which_sample(const struct mt_reporter *reporter,
                                const struct mt_residual *residual)
{
    char count[MT_UNITS_TEXT], least[MT_UNITS_TEXT], most[MT_UNITS_TEXT];

    if (residual->samples == 1)
        return "the only sample";
    return mt_reporter_format(reporter, "the highest use of %s samples; %s to %s over all samples",
                              mt_format_count(count, residual->samples),
                              difference(least, residual->least_bytes),
                              difference(most, residual->most_bytes));
}

static void report_residual(const struct mt_reporter *reporter,
                            const struct mt_driver_report *driver)
{
    const struct mt_residual *residual = &driver->residual;
    bool from_driver = residual->tracked_from == MT_TRACKED_DRIVER;
    char rest[MT_UNITS_TEXT], used[MT_UNITS_TEXT], tracked[MT_UNITS_TEXT];

    if (reporter->report->is_dry_run) /* the answer has the memory of CUDA, taken from a table */
        return;
    if (!residual->samples) {
        mt_reporter_line(
            reporter, 2,
            residual->unknown_samples
                ? "NVML does not report the memory used by this process, so what CUDA "
                  "itself takes (context, modules) is unknown"
                : "The memory used by the process was not sampled, so what CUDA itself "
                  "takes (context, modules) is unknown");
        return;
    }
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter, "%s: %s = %s used by the process (NVML) - %s tracked%s, at %s, %s",
            from_driver ? "CUDA itself (context, modules, ...)"
                        : "CUDA itself and everything else outside the framework",
            difference(rest, (int64_t)(residual->used_bytes - residual->tracked_bytes)),
            mt_format_bytes(used, residual->used_bytes),
            mt_format_bytes(tracked, residual->tracked_bytes),
            from_driver ? "" : " (segments; driver calls were not recorded)",
            mt_reporter_at(reporter, residual->t_ns, residual->event),
            which_sample(reporter, residual)));
}

static void report_failures(const struct mt_reporter *reporter,
                            const struct mt_driver_report *driver)
{
    const struct mt_symbols *symbols = reporter->report->symbols;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];

    if (!driver->failures_in_all)
        return;
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(reporter, "The driver refused %s:",
                           mt_format_counted(count, driver->failures_in_all, "request")));
    for (uint32_t i = 0; i < driver->failure_count && i < MAX_FAILURES; i++) {
        const struct mt_driver_failure *failure = &driver->failures[i];
        const char *in = mt_reporter_in_phase(reporter, failure->phase);
        const char *by = "";

        if (failure->stack != MT_NO_ID)
            by = mt_site_label(reporter->arena, symbols, failure->stack, false);
        mt_reporter_line(
            reporter, 4,
            mt_reporter_format(
                reporter, "%s of %s%s%s, at %s%s%s", mt_format_bytes(bytes, failure->request_bytes),
                mt_heap_meaning(symbols, failure->heap), *in ? ", " : "", in,
                mt_reporter_at(reporter, failure->t_ns, failure->event), *by ? ", by " : "", by));
    }
    if (driver->failures_in_all > MAX_FAILURES)
        mt_reporter_line(reporter, 4, "and more");
}

static void report_driver(const struct mt_reporter *reporter, const struct mt_driver_report *driver)
{
    mt_reporter_heading(reporter, reporter->report->is_driver_level ? "From the driver"
                                                                    : "Outside the framework");
    if (!driver->has_calls)
        mt_reporter_line(
            reporter, 2,
            "Driver calls were not recorded: memory that libraries take from the driver "
            "is not shown separately");
    report_outside(reporter, driver);
    report_peak(reporter, driver);
    report_heaps(reporter, driver);
    report_residual(reporter, driver);
    report_failures(reporter, driver);
}

void mt_reporter_driver(const struct mt_reporter *reporter)
{
    const struct mt_driver_report *driver =
        mt_driver_of(reporter->report, reporter->device->device);

    if (driver)
        report_driver(reporter, driver);
}

void mt_reporter_other_devices(const struct mt_reporter *reporter)
{
    for (uint32_t i = 0; i < reporter->report->driver_count; i++) {
        const struct mt_driver_report *driver = &reporter->report->drivers[i];

        if (mt_report_device(reporter->report, driver->device))
            continue;
        mt_buf_printf(reporter->out, "\n%sDevice %u: no memory of the framework%s\n",
                      reporter->style->bold, driver->device, reporter->style->reset);
        report_driver(reporter, driver);
    }
}
