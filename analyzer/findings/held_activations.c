/* Activations that wait for backward, by the line of the model that made them: memory that
 * checkpointing could recompute instead. Only the peak counts, and there only blocks of the peak's
 * own step: older ones wait for nothing. A recording without steps has at most one, which did not
 * end. The loss is excluded, since it has its own finding. */
#include <string.h>

#include "arena.h"
#include "finding.h"
#include "frame_judge.h"
#include "held_activations.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

/* Libraries whose models have a switch, by the folder of their models. */
static const struct {
    const char *folder, *call;
} libraries[] = {
    {"/transformers/models/",
     "model.gradient_checkpointing_enable(), or TrainingArguments(gradient_checkpointing=True)"},
    {"/timm/models/", "model.set_grad_checkpointing(True)"},
    {"/diffusers/models/", "model.enable_gradient_checkpointing()"},
};

static const char *call_of(const struct mt_symbols *symbols, uint32_t frame)
{
    const char *file =
        frame == MT_NO_ID ? NULL : mt_symbols_text(symbols, symbols->frames[frame].file);

    for (size_t i = 0; file && i < MT_ARRAY_LEN(libraries); i++)
        if (mt_path_has(file, libraries[i].folder))
            return libraries[i].call;
    return NULL;
}

/* "LlamaMLP" of "LlamaMLP.forward", NULL if the recording has no class. */
static const char *module_of(struct mt_arena *arena, const struct mt_symbols *symbols,
                             uint32_t frame)
{
    static const char method[] = ".forward";
    const char *function = frame == MT_NO_ID ? NULL : mt_frame_function(arena, symbols, frame);
    size_t length = function ? strlen(function) : 0;

    if (length < sizeof method || strcmp(function + length - (sizeof method - 1), method) != 0)
        return NULL;
    return mt_arena_text(arena, function, length - (sizeof method - 1));
}

const char *mt_checkpoint_advice(struct mt_arena *arena, const struct mt_symbols *symbols,
                                 struct mt_site site)
{
    const char *call = call_of(symbols, site.frame);
    const char *module = call ? NULL : module_of(arena, symbols, site.frame);

    if (call)
        return call;
    return mt_arena_printf(arena,
                           "torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False) "
                           "around %s; or torch.autograd.graph.save_on_cpu(), which keeps them in "
                           "host memory",
                           module ? module : "the modules that make them");
}

enum {
    MIN_SHARE = 4,  /* of the peak */
    MAX_LINES = 64, /* that are told apart */
    NAMED_LINES = 3
};

struct line {
    struct mt_site site;
    uint64_t bytes, blocks, first_t_ns;
};

static bool waits(const struct mt_finding_search *search, const struct mt_holding *holding)
{
    const struct mt_report *report = search->analysis->report;
    const int64_t step = search->device->instants[0].step;

    return holding->role == MT_ROLE_ACTIVATIONS && holding->stack != MT_NO_ID &&
           holding->phase != MT_NO_PHASE && report->phases[holding->phase].step == step &&
           !mt_finding_is_loss(search, holding->stack);
}

/* Adds to its line; the lines stay sorted by their bytes. */
static uint32_t add(struct line *lines, uint32_t count, struct mt_site site,
                    const struct mt_holding *holding)
{
    struct line line = {site, holding->bytes, holding->blocks, holding->first_birth_t_ns};
    uint32_t at = 0;

    while (at < count && (lines[at].site.frame != site.frame || lines[at].site.own != site.own))
        at++;
    if (at < count) {
        line.bytes += lines[at].bytes;
        line.blocks += lines[at].blocks;
        if (lines[at].first_t_ns < line.first_t_ns)
            line.first_t_ns = lines[at].first_t_ns;
    } else if (count == MAX_LINES) {
        return count;
    } else {
        count++;
    }
    for (; at > 0 && lines[at - 1].bytes < line.bytes; at--)
        lines[at] = lines[at - 1];
    lines[at] = line;
    return count;
}

static const char *tell(const struct mt_finding_search *search, const struct line *line)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *label = mt_site_text(arena, &search->analysis->source->symbols, line->site);
    const uint64_t age_ns = search->device->instants[0].t_ns - line->first_t_ns;
    char n[3][MT_UNITS_TEXT];

    if (!mt_report_has_times(search->analysis->report))
        return mt_arena_printf(
            arena, "%s in %s block%s from %s", mt_format_bytes(n[0], line->bytes),
            mt_format_count(n[1], line->blocks), line->blocks == 1 ? "" : "s", label);
    return mt_arena_printf(arena,
                           "%s in %s block%s from %s, the oldest allocated %s before the peak",
                           mt_format_bytes(n[0], line->bytes), mt_format_count(n[1], line->blocks),
                           line->blocks == 1 ? "" : "s", label, mt_format_duration(n[2], age_ns));
}

/* PyTorch's names the modules (held_activations.h). */
static const struct mt_framework_texts advice = {
    {[MT_FRAMEWORK_UNKNOWN] =
         "gradient checkpointing: recompute them in backward instead of keeping them",
     [MT_FRAMEWORK_JAX] = "jax.checkpoint around the functions that make them, with a policy "
                          "(jax.checkpoint_policies) for values that are expensive to recompute",
     [MT_FRAMEWORK_TENSORFLOW] = "tf.recompute_grad around the functions that make them"}};

static const char *advice_for(const struct mt_finding_search *search, struct mt_site site)
{
    if (mt_framework_of(search) != MT_FRAMEWORK_TORCH)
        return mt_framework_text(search, &advice);
    return mt_checkpoint_advice(&search->analysis->report->arena,
                                &search->analysis->source->symbols, site);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    struct line lines[MAX_LINES];
    const char *evidence[NAMED_LINES];
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    const char *label;
    char n[3][MT_UNITS_TEXT];
    uint32_t i, count = 0;
    struct mt_finding finding = {
        .id = "held-activations",
        .severity = "info",
        .evidence = evidence,
        .cost = "backward runs the forward pass of these modules a second time"};

    if (!report->saw_backward || !device->instant_count ||
        (device->instants[0].step == MT_NO_STEP && report->step_count))
        return MT_OK;
    mt_finding_mark_losses(search);
    for (i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];
        if (!waits(search, holding))
            continue;
        finding.bytes += holding->bytes;
        count =
            add(lines, count,
                mt_site_table_at(&search->analysis->attribution.sites, holding->stack), holding);
    }
    if (!mt_finding_matters(finding.bytes, peak) || finding.bytes < peak / MIN_SHARE)
        return MT_OK;
    for (i = 0; i < count && i < NAMED_LINES; i++)
        evidence[i] = tell(search, &lines[i]);
    finding.evidence_count = i;
    label = mt_site_text(arena, symbols, lines[0].site);
    finding.advice = advice_for(search, lines[0].site);
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: activations waiting for backward, %s of it from %s",
        mt_format_bytes(n[0], finding.bytes),
        mt_format_percent(n[1], (double)finding.bytes / (double)peak),
        count == 1 ? "all" : mt_format_bytes(n[2], lines[0].bytes), label);
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_held_activations = {.find = find};
