/* Values that survive into the next step: `out`, `loss`, the contents of a list until it is filled
 * again. A name keeps its value until another one is assigned, so two exist for a while. The
 * finding looks at results of forward that end in the next step, after a block of the same stack,
 * their successor, was allocated there. The saving of an earlier `del` is that of a replay in which
 * they end with their step.
 *
 * A trace has allocations and frees, not uses. That the next step does not read them is assumed,
 * only for training, and the text says so. Nothing is assumed about batches, which may be
 * prefetched. */
#include "retime.h"

#include "map.h"
#include "site.h"
#include "units.h"

struct look {
    struct mt_finding_search *search;
    struct mt_analysis *analysis;
    const struct mt_lives *lives;
    struct mt_arena *arena;
    struct mt_map successors;      /* stack and step -> its first block there, of lives */
    const struct mt_life *largest; /* at the peak */
    uint64_t peak_bytes;           /* of all candidates, at the peak */
    uint32_t peak_blocks;
    struct mt_retime retime; /* all candidates end with their step */
    struct mt_retimed_peaks after;
};

static uint64_t key_of(uint32_t stack, uint32_t step)
{
    return (uint64_t)stack << 32 | step;
}

/* Records the first block of each stack in each step, including those that outlive the step. */
static void note_successors(struct look *look)
{
    const struct mt_life *lives = look->lives->lives;
    uint32_t i, at;

    for (i = 0; i < look->lives->count; i++) {
        uint64_t key = key_of(lives[i].stack, lives[i].birth_step);
        at = mt_map_get(&look->successors, key);
        if (at == MT_MAP_NONE || lives[at].birth_event > lives[i].birth_event)
            mt_map_put(&look->successors, key, i);
    }
}

/* The successor in the last step need not outlive it, so it is unknown: the step before is the
 * evidence. */
static bool is_suspect(const struct look *look, const struct mt_life *life)
{
    bool in_last = life->end_step == look->lives->step_count - 1;
    uint32_t at, step = in_last ? life->birth_step - 1 : life->end_step;

    if (life->role != MT_ROLE_ACTIVATIONS || life->stack == MT_NO_ID ||
        life->end_step != life->birth_step + 1 || life->end_event == UINT64_MAX)
        return false;
    if (in_last && !life->birth_step)
        return false;
    at = mt_map_get(&look->successors, key_of(life->stack, step));
    if (at == MT_MAP_NONE)
        return false;
    return in_last ? look->lives->lives[at].end_event > life->birth_event
                   : look->lives->lives[at].birth_event < life->end_event;
}

static void free_early(struct look *look, const struct mt_life *life)
{
    mt_retime_free(&look->retime, look->search->device->device, look->lives->begins[life->end_step],
                   life);
}

static void take_suspects(struct look *look)
{
    const uint64_t peak = look->search->device->allocated_peak.event;
    uint32_t i;

    for (i = 0; i < look->lives->count; i++) {
        const struct mt_life *life = &look->lives->lives[i];
        if (!is_suspect(look, life))
            continue;
        free_early(look, life);
        if (peak < look->lives->begins[life->end_step] || peak >= life->end_event)
            continue;
        look->peak_bytes += life->bytes;
        look->peak_blocks++;
        if (!look->largest || life->bytes > look->largest->bytes)
            look->largest = life;
    }
}

static void say(struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    struct mt_finding *finding = mt_finding_add(look->search);
    const char *label =
        mt_site_label(look->arena, &look->analysis->source->symbols, look->largest->stack, false);
    const char **evidence = mt_arena_array(look->arena, 3, sizeof *evidence);
    char n[3][MT_UNITS_TEXT];

    if (!finding)
        return;
    finding->id = "kept-values";
    finding->severity = "warning";
    finding->bytes = device->allocated_peak.bytes - look->after.allocated_bytes;
    finding->title = mt_arena_printf(
        look->arena, "%s less at the peak if the results of %s are freed before the next step",
        mt_format_bytes(n[0], finding->bytes), label);
    evidence[0] = mt_arena_printf(look->arena,
                                  "at the peak, %s in %s block%s of the previous step is still "
                                  "allocated; it is freed only after its replacement exists",
                                  mt_format_bytes(n[0], look->peak_bytes),
                                  mt_format_count(n[1], look->peak_blocks),
                                  look->peak_blocks == 1 ? "" : "s");
    evidence[1] = mt_arena_printf(
        look->arena,
        "replay with these blocks freed at the end of their step: %s allocated instead of %s",
        mt_format_bytes(n[0], look->after.allocated_bytes),
        mt_format_bytes(n[1], device->allocated_peak.bytes));
    evidence[2] = mt_arena_printf(look->arena, "in the same replay: %s reserved instead of %s",
                                  mt_format_bytes(n[0], look->after.reserved_bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.bytes));
    finding->evidence = evidence;
    finding->evidence_count = 3;
    finding->advice = "if the next step does not read them, delete them at the end of the step "
                      "(del out, loss), or put the step into a function";
}

/* Only for a run that the replay explains, in training. */
static bool is_worth_a_replay(const struct look *look)
{
    const struct mt_report *report = look->analysis->report;
    const struct mt_device_report *device = look->search->device;

    return report->saw_backward && mt_finding_replayable(look->search) &&
           !look->analysis->source->header.starts_in_middle && device->step_count >= 2;
}

static bool matters(const struct look *look, uint64_t bytes)
{
    return mt_finding_matters(bytes, look->search->device->allocated_peak.bytes);
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct look look = {.search = search,
                        .retime = {.within_reserved = true},
                        .analysis = search->analysis,
                        .arena = &search->analysis->report->arena};
    const struct mt_device_report *device = search->device;
    enum mt_status status;

    if (!is_worth_a_replay(&look))
        return MT_OK;
    mt_finding_lives(search, &look.lives);
    status = MT_OK;
    if (look.lives->too_many)
        return MT_OK;
    note_successors(&look);
    take_suspects(&look);
    if (look.largest && matters(&look, look.peak_bytes)) {
        status = mt_retime_replay(&look.retime, search, &look.after);
        if (status == MT_OK && look.after.known &&
            look.after.allocated_bytes < device->allocated_peak.bytes &&
            matters(&look, device->allocated_peak.bytes - look.after.allocated_bytes))
            say(&look);
    }
    mt_map_release(&look.successors);
    mt_retime_release(&look.retime);
    return status;
}

const struct mt_finding_ops mt_finding_kept_values = {.find = find};
