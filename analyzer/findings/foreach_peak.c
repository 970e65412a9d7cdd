/* A peak in the optimizer's step, made by temporaries of all parameters at once: the
 * foreach implementation of torch.optim. */
#include "findings.h"

#include <string.h>

#include "units.h"

enum { LEAST_SHARE = 10 }; /* of the peak */

static bool is_foreach(const struct mt_symbols *symbols, uint32_t stack)
{
    static const char prefix[] = "_multi_tensor_";

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t function = symbols->frames[symbols->stacks[stack].frame].function;
        if (strncmp(mt_symbols_text(symbols, function), prefix, sizeof prefix - 1) == 0)
            return true;
    }
    return false;
}

enum mt_status mt_find_foreach_peak(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t bytes = 0, blocks = 0;
    uint32_t i;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "foreach-peak",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice =
            "fused=True, or foreach=False, for the optimizer: no temporaries of all parameters "
            "at once"};

    for (i = 0; device->instant_count && i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];
        if (holding->role != MT_ROLE_TEMPORARIES ||
            !is_foreach(&search->analysis->source->symbols, holding->stack))
            continue;
        bytes += holding->bytes;
        blocks += holding->blocks;
    }
    if (!mt_finding_matters(bytes, peak) || bytes < peak / LEAST_SHARE)
        return MT_OK;
    finding.bytes = bytes;
    finding.title = mt_arena_printf(
        arena,
        "%s of the peak, %s, are temporaries of the optimizer's step, of all parameters at once",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak));
    evidence[0] =
        mt_arena_printf(arena, "%s blocks, made by the optimizer's foreach implementation",
                        mt_format_count(n[0], blocks));
    return mt_finding_say(search, &finding);
}
