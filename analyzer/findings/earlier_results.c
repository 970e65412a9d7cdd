/* Results of earlier calls of a model that are alive while a later call makes them again: `out =
 * model(x)` keeps the old result until the new one exists, and a list keeps all of them. Only for
 * programs without backward, where nothing else needs them. A result is one block that its stack
 * makes in each call; a cache has one or two per layer. */
#include "finding.h"

#include "site.h"
#include "units.h"

enum {
    MIN_SHARE = 10 /* of the peak */
};

struct look {
    uint64_t bytes, blocks;
    const struct mt_holding *largest;
};

static bool is_result(const struct mt_report *report, const struct mt_holding *holding)
{
    return holding->role == MT_ROLE_ACTIVATIONS && holding->stack != MT_NO_ID &&
           holding->phase != MT_NO_PHASE && holding->blocks == 1 &&
           report->phases[holding->phase].end_event > report->phases[holding->phase].begin_event;
}

/* The stack made such a block again, in a phase that began when that one had ended. */
static bool is_earlier(const struct mt_report *report, const struct mt_instant *peak,
                       const struct mt_holding *holding)
{
    const uint64_t end = report->phases[holding->phase].end_event;
    bool again = false;

    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const struct mt_holding *other = &peak->holdings[i];

        if (other->stack != holding->stack || other == holding)
            continue;
        if (!is_result(report, other))
            return false;
        again |= other->block_bytes == holding->block_bytes &&
                 report->phases[other->phase].begin_event >= end;
    }
    return again;
}

static void say(struct mt_finding_search *search, const struct look *look)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes;
    const char *label =
        mt_site_label(arena, &search->analysis->source->symbols, look->largest->stack, false);
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "earlier-results",
                                 .severity = "info",
                                 .bytes = look->bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1,
                                 .advice = "delete the result (del out) or copy it to the host "
                                           "(out.cpu()) before the model is called again"};

    finding.title =
        mt_arena_printf(arena,
                        "%s (%s) of the peak: results of earlier calls that a later call has "
                        "computed again, from %s",
                        mt_format_bytes(n[0], look->bytes),
                        mt_format_percent(n[1], (double)look->bytes / (double)peak), label);
    evidence[0] =
        mt_arena_printf(arena, "%s block%s of up to %s", mt_format_count(n[0], look->blocks),
                        look->blocks == 1 ? "" : "s", mt_format_bytes(n[1], look->largest->bytes));
    mt_finding_publish(search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    const struct mt_instant *peak = device->instants;
    const uint64_t least = device->allocated_peak.bytes / 1000;
    struct look look = {.bytes = 0};

    if (report->saw_backward || report->is_driver_level || !device->instant_count)
        return MT_OK;
    /* Sorted by size: at most a thousand are compared with all others. */
    for (uint32_t i = 0; i < peak->holding_count && peak->holdings[i].bytes > least; i++) {
        const struct mt_holding *holding = &peak->holdings[i];

        if (!is_result(report, holding) || !is_earlier(report, peak, holding))
            continue;
        look.bytes += holding->bytes;
        look.blocks++;
        if (!look.largest)
            look.largest = holding;
    }
    if (!mt_finding_matters(look.bytes, device->allocated_peak.bytes) ||
        look.bytes < device->allocated_peak.bytes / MIN_SHARE)
        return MT_OK;
    say(search, &look);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_earlier_results = {.find = find};
