/* Memory that forward keeps although no backward is recorded: autograd saves it. Inference under
 * no_grad frees each result when the next layer has used it, so few lines of the model hold
 * anything. If many do, either a backward follows that is not in the recording, or there is none
 * and gradients were not disabled. The text names both. */
#include "finding.h"

#include <string.h>

#include "site.h"
#include "units.h"

enum {
    MIN_SHARE = 10,  /* of the peak */
    MIN_BLOCKS = 16, /* a list of results, or a cache, has one or two lines; */
    MIN_LINES = 4,   /* a graph has blocks of all layers */
    MAX_LINES = 64,  /* that are told apart */
    MAX_LEAD = 2     /* the largest line holds no more than half */
};

struct line {
    struct mt_site site;
    uint64_t bytes;
    uint32_t stack;
};

struct look {
    struct line lines[MAX_LINES];
    uint32_t count;
    uint64_t bytes, blocks;
    const struct line *largest;
};

/* The outermost range that it is in. */
static int32_t root_of(const struct mt_report *report, int32_t phase)
{
    while (phase != MT_NO_PHASE && report->phases[phase].parent != MT_NO_PHASE)
        phase = report->phases[phase].parent;
    return phase;
}

static bool is_kept(const struct mt_report *report, const struct mt_instant *peak,
                    const struct mt_holding *holding)
{
    return holding->role == MT_ROLE_ACTIVATIONS && holding->stack != MT_NO_ID &&
           holding->phase != MT_NO_PHASE &&
           root_of(report, holding->phase) == root_of(report, peak->phase);
}

static void add(struct look *look, struct mt_site site, const struct mt_holding *holding)
{
    uint32_t at = 0;

    look->bytes += holding->bytes;
    look->blocks += holding->blocks;
    while (at < look->count &&
           (look->lines[at].site.frame != site.frame || look->lines[at].site.own != site.own))
        at++;
    if (at == MAX_LINES)
        return;
    if (at == look->count)
        look->lines[look->count++] = (struct line){.site = site, .stack = holding->stack};
    look->lines[at].bytes += holding->bytes;
    if (!look->largest || look->lines[at].bytes > look->largest->bytes)
        look->largest = &look->lines[at];
}

static bool is_graph(const struct look *look)
{
    return look->blocks >= MIN_BLOCKS && look->count >= MIN_LINES &&
           look->largest->bytes <= look->bytes / MAX_LEAD;
}

/* State and gradients in addition to the parameters: a backward pass follows. */
static bool trains(const struct mt_device_report *device)
{
    const uint64_t *bytes = device->peak_role_bytes;

    return bytes[MT_ROLE_OPTIMIZER_STATE] + bytes[MT_ROLE_GRADIENTS] >
           bytes[MT_ROLE_PARAMETERS] / 2;
}

static void say(struct mt_finding_search *search, const struct look *look)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes;
    const char *label =
        mt_site_text(arena, &search->analysis->source->symbols, look->largest->site);
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "kept-forward",
                                 .severity = "info",
                                 .bytes = look->bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    finding.advice =
        trains(search->device)
            ? "torch.utils.checkpoint around the modules that make them: backward recomputes them"
            : "if no backward pass follows, call the model under torch.no_grad() or "
              "torch.inference_mode(), which keep none of them; otherwise torch.utils.checkpoint "
              "around the modules that make them";
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: activations that forward keeps; no backward pass was recorded",
        mt_format_bytes(n[0], look->bytes),
        mt_format_percent(n[1], (double)look->bytes / (double)peak));
    evidence[0] =
        mt_arena_printf(arena, "%s blocks from %u%s lines; the line with most bytes is %s: %s",
                        mt_format_count(n[0], look->blocks), look->count,
                        look->count == MAX_LINES ? " or more" : "", label,
                        mt_format_bytes(n[1], look->largest->bytes));
    mt_finding_publish(search, &finding);
}

/* Autocast keeps those regardless of autograd; they have their own finding. */
static uint64_t weight_copies(const struct mt_device_report *device)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < device->finding_count; i++)
        if (!strcmp(device->findings[i].id, "cast-weights"))
            bytes += device->findings[i].bytes;
    return bytes;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    const uint64_t peak = device->allocated_peak.bytes;
    struct look look = {.count = 0};

    if (report->saw_backward || report->is_driver_level || !device->instant_count)
        return MT_OK;
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];

        if (is_kept(report, &device->instants[0], holding))
            add(&look, mt_site_table_at(&search->analysis->attribution.sites, holding->stack),
                holding);
    }
    if (!is_graph(&look))
        return MT_OK;
    look.bytes -= mt_min_u64(weight_copies(device), look.bytes);
    if (mt_finding_matters(look.bytes, peak) && look.bytes >= peak / MIN_SHARE)
        say(search, &look);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_kept_forward = {.find = find};
