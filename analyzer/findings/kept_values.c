/* Findings about values that live longer than the program needs them.
 *
 * Values that survive into the next step: `out`, `loss`, the contents of a list until it is filled
 * again. A name keeps its value until another one is assigned, so two exist for a while. The
 * finding looks at results of forward that end in the next step, after a block of the same stack,
 * their successor, was allocated there. The saving of an earlier `del` is that of a replay in which
 * they end with their step.
 *
 * A trace has allocations and frees, not uses. That the next step does not read them is assumed,
 * only for training, and the text says so. Nothing is assumed about batches, which may be
 * prefetched. */

#include "finding.h"
#include "map.h"
#include "report_query.h"
#include "site.h"
#include "units.h"

/* Memory that forward keeps although no backward is recorded: autograd saves it. Inference under
 * no_grad frees each result when the next layer has used it, so few lines of the model hold
 * anything. If many do, either a backward follows that is not in the recording, or there is none
 * and gradients were not disabled. The text names both. */

enum {
    KEPT_FORWARD_MIN_SHARE = 10, /* of the peak */
    MIN_BLOCKS = 16,             /* a list of results, or a cache, has one or two lines; */
    MIN_LINES = 4,               /* a graph has blocks of all layers */
    MAX_LINES = 64,              /* that are told apart */
    MAX_LEAD = 2                 /* the largest line holds no more than half */
};

struct line {
    struct mt_site site;
    uint64_t bytes;
    uint32_t stack;
};

struct look_kept_forward {
    struct line lines[MAX_LINES];
    uint32_t count;
    uint64_t bytes, blocks;
    const struct line *largest;
    struct mt_map stacks;   /* of these blocks */
    uint64_t earlier_bytes; /* of calls before, by the same stacks */
};

/* The outermost range that it is in. */
static int32_t root_of(const struct mt_report *report, int32_t phase)
{
    while (phase != MT_NO_PHASE && report->phases[phase].parent != MT_NO_PHASE)
        phase = report->phases[phase].parent;
    return phase;
}

/* State and gradients in addition to the parameters: a backward pass follows. */
static bool trains(const struct mt_device_report *device)
{
    const uint64_t *bytes = device->peak_role_bytes;

    return bytes[MT_ROLE_OPTIMIZER_STATE] + bytes[MT_ROLE_GRADIENTS] >
           bytes[MT_ROLE_PARAMETERS] / 2;
}

/* The event with which the call at the peak begins: that of its step, or of the last forward pass,
 * because a loss may follow in a range of its own or in none. */
static uint64_t begin_of_call(const struct mt_report *report, const struct mt_device_report *device)
{
    int32_t root = root_of(report, device->instants[0].phase);
    uint64_t begin = UINT64_MAX;

    if (root != MT_NO_PHASE && mt_phase_kind_of(report->phases[root].name) != MT_PHASE_LOSS)
        return report->phases[root].begin_event;
    if (trains(device)) /* then memory rises further in the backward pass that follows */
        return begin;
    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        if (phase->parent == MT_NO_PHASE && phase->begin_event <= device->allocated_peak.event &&
            mt_phase_kind_of(phase->name) == MT_PHASE_FORWARD &&
            (begin == UINT64_MAX || phase->begin_event > begin))
            begin = phase->begin_event;
    }
    return begin;
}

static bool is_kept(const struct mt_holding *holding)
{
    return holding->role == MT_ROLE_ACTIVATIONS && holding->stack != MT_NO_ID &&
           holding->phase != MT_NO_PHASE;
}

static bool is_of_call(const struct mt_report *report, const struct mt_holding *holding,
                       uint64_t begin)
{
    return report->phases[root_of(report, holding->phase)].begin_event >= begin;
}

static void add(struct look_kept_forward *look, struct mt_site site,
                const struct mt_holding *holding)
{
    uint32_t at = 0;

    look->bytes += holding->bytes;
    look->blocks += holding->blocks;
    mt_map_put(&look->stacks, holding->stack, 1);
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

static bool is_graph(const struct look_kept_forward *look)
{
    return look->blocks >= MIN_BLOCKS && look->count >= MIN_LINES &&
           look->largest->bytes <= look->bytes / MAX_LEAD;
}

static void say_kept_forward(struct mt_finding_search *search, const struct look_kept_forward *look)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes,
                   bytes = look->bytes + look->earlier_bytes;
    const char *label =
        mt_site_text(arena, &search->analysis->source->symbols, look->largest->site);
    const char *evidence[2];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "kept-forward",
                                 .severity = "info",
                                 .bytes = bytes,
                                 .evidence = evidence,
                                 .evidence_count = look->earlier_bytes ? 2 : 1};
    const char *checkpoint = mt_checkpoint_advice(arena, &search->analysis->source->symbols,
                                                  look->largest->site, search->device->modules);

    finding.advice =
        trains(search->device) || mt_run_trains(search)
            ? checkpoint
            : mt_arena_printf(arena,
                              "if no backward pass follows, call the model under torch.no_grad() "
                              "or torch.inference_mode(), which keep none of them; otherwise %s",
                              checkpoint);
    if (look->earlier_bytes)
        finding.advice = mt_arena_printf(
            arena, "%s; delete results (del out, loss) before the next call", finding.advice);
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: activations that forward keeps; no backward pass was recorded",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak));
    evidence[0] =
        mt_arena_printf(arena, "%s blocks from %u%s lines; the line with most bytes is %s: %s",
                        mt_format_count(n[0], look->blocks), look->count,
                        look->count == MAX_LINES ? " or more" : "", label,
                        mt_format_bytes(n[1], look->largest->bytes));
    evidence[1] = mt_arena_printf(
        arena, "%s of it belongs to earlier calls, whose results still exist in this call",
        mt_format_bytes(n[0], look->earlier_bytes));
    mt_finding_publish(search, &finding);
}

/* Whether the run ended in the call: nobody knows what would have followed. */
static bool is_cut(const struct mt_report *report, uint64_t begin)
{
    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_oom *fatal = mt_fatal_oom(&report->devices[i]);

        if (fatal && fatal->event >= begin)
            return true;
    }
    return false;
}

/* Returns true if the call at the peak keeps a graph that matters. The caller releases
 * look->stacks. */
static bool keeps_graph(const struct mt_finding_search *search, struct look_kept_forward *look)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    const struct mt_instant *at = device->instants;
    const uint64_t peak = device->allocated_peak.bytes;

    if (report->saw_backward || report->is_driver_level || !device->instant_count)
        return false;
    uint64_t begin = begin_of_call(report, device);
    for (uint32_t i = 0; i < at->holding_count; i++)
        if (is_kept(&at->holdings[i]) && is_of_call(report, &at->holdings[i], begin))
            add(look, mt_site_table_at(&search->analysis->attribution.sites, at->holdings[i].stack),
                &at->holdings[i]);
    if (!is_graph(look))
        return false;
    for (uint32_t i = 0; i < at->holding_count; i++)
        if (is_kept(&at->holdings[i]) && !is_of_call(report, &at->holdings[i], begin) &&
            mt_map_get(&look->stacks, at->holdings[i].stack) != MT_MAP_NONE)
            look->earlier_bytes += at->holdings[i].bytes;
    if (!look->earlier_bytes && is_cut(report, begin))
        return false;
    uint64_t bytes = look->bytes + look->earlier_bytes;
    return mt_finding_matters(bytes, peak) && bytes >= peak / KEPT_FORWARD_MIN_SHARE;
}

static enum mt_status find_kept_forward(struct mt_finding_search *search)
{
    struct look_kept_forward look = {.count = 0};

    if (keeps_graph(search, &look)) {
        search->scope.roles = 1u << MT_ROLE_ACTIVATIONS;
        for (uint32_t i = 0; i < search->device->instants[0].holding_count; i++)
            if (is_kept(&search->device->instants[0].holdings[i]) &&
                mt_map_get(&look.stacks, search->device->instants[0].holdings[i].stack) !=
                    MT_MAP_NONE)
                mt_finding_mark(search, i);
        say_kept_forward(search, &look);
    }
    mt_map_release(&look.stacks);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_kept_forward = {.find = find_kept_forward};

/* Gradients that stay through forward: zero_grad(set_to_none=False) writes zeros into them, so they
 * occupy memory while the activations grow. Required: the program has zero_grad, and gradients of
 * the first two steps exist until the last. */

static bool has_zero_grad(const struct mt_report *report)
{
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (mt_phase_kind_of(report->phases[i].name) == MT_PHASE_ZERO_GRAD)
            return true;
    return false;
}

/* DDP's buckets stay by design. */
static bool is_bucket(const struct mt_finding_search *search, uint32_t stack)
{
    return mt_stack_kind(&search->analysis->survey.roles.stacks, stack) & MT_STACK_BUCKETS;
}

static enum mt_status find_kept_gradients(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_step_list steps = mt_judged_steps(search->analysis->report, device);
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    const struct mt_lives *lives = &search->held->lives;
    uint64_t kept = 0, others = 0, blocks = 0;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "kept-gradients",
                                 .severity = "info",
                                 .evidence = evidence,
                                 .evidence_count = 1,
                                 .advice = "call zero_grad(set_to_none=True), the default: it "
                                           "frees gradients before forward runs"};

    if (!has_zero_grad(search->analysis->report) ||
        !mt_finding_matters(device->peak_role_bytes[MT_ROLE_GRADIENTS], peak))
        return MT_OK;
    if (lives->too_many || lives->step_count < 3)
        return MT_OK;
    for (uint32_t i = 0; i < lives->count; i++) {
        const struct mt_life *life = &lives->lives[i];
        if (life->role != MT_ROLE_GRADIENTS || is_bucket(search, life->stack))
            continue;
        if (mt_lives_step(lives, life->birth_event) < 2 &&
            mt_lives_step(lives, life->end_event) + 1 >= lives->step_count) {
            kept += life->bytes;
            blocks++;
        } else {
            others += life->bytes;
        }
    }
    if (!mt_finding_matters(kept, peak) || others > kept)
        return MT_OK;
    mt_finding_mark_role(search, MT_ROLE_GRADIENTS);
    finding.bytes = kept;
    finding.title = mt_arena_printf(arena,
                                    "%s of gradients (%s of the peak) stays allocated during "
                                    "forward: zero_grad(set_to_none=False)",
                                    mt_format_bytes(n[0], kept),
                                    mt_format_percent(n[1], (double)kept / (double)peak));
    evidence[0] =
        mt_arena_printf(arena, "%s blocks of the first steps are still allocated in step %lld",
                        mt_format_count(n[0], blocks), (long long)steps.list[steps.count - 1].step);
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_kept_gradients = {.find = find_kept_gradients};

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

    for (uint32_t i = 0; i < look->lives->count; i++) {
        uint64_t key = key_of(lives[i].stack, mt_lives_step(look->lives, lives[i].birth_event));
        uint32_t at = mt_map_get(&look->successors, key);
        if (at == MT_MAP_NONE || lives[at].birth_event > lives[i].birth_event)
            mt_map_put(&look->successors, key, i);
    }
}

/* The successor in the last step need not outlive it, so it is unknown: the step before is the
 * evidence. */
static bool is_suspect(const struct look *look, const struct mt_life *life)
{
    const uint32_t birth_step = mt_lives_step(look->lives, life->birth_event),
                   end_step = mt_lives_step(look->lives, life->end_event);
    bool in_last = end_step == look->lives->step_count - 1;
    uint32_t step = in_last ? birth_step - 1 : end_step;

    if (life->role != MT_ROLE_ACTIVATIONS || life->stack == MT_NO_ID ||
        end_step != birth_step + 1 || life->end_event == UINT64_MAX || (in_last && !birth_step))
        return false;
    uint32_t at = mt_map_get(&look->successors, key_of(life->stack, step));
    if (at == MT_MAP_NONE)
        return false;
    return in_last ? look->lives->lives[at].end_event > life->birth_event
                   : look->lives->lives[at].birth_event < life->end_event;
}

static void take_suspects(struct look *look)
{
    const struct mt_device_report *device = look->search->device;

    for (uint32_t i = 0; i < look->lives->count; i++) {
        const struct mt_life *life = &look->lives->lives[i];
        if (!is_suspect(look, life))
            continue;
        const uint64_t end = look->lives->begins[mt_lives_step(look->lives, life->end_event)];
        mt_retime_free(&look->retime, device->device, end, life);
        if (device->allocated_peak.event < end || device->allocated_peak.event >= life->end_event)
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
    finding->saving = MT_SAVING_EXACT;
    finding->saves_bytes = mt_reserved_saving(look->search, &look->after);
    finding->title = mt_arena_printf(
        look->arena, "%s less at the peak if the results of %s are freed before the next step",
        mt_format_bytes(n[0], finding->bytes), label);
    evidence[0] = mt_arena_printf(look->arena,
                                  "at the peak, %s in %s of the previous step is still "
                                  "allocated; it is freed only after its replacement exists",
                                  mt_format_bytes(n[0], look->peak_bytes),
                                  mt_format_counted(n[1], look->peak_blocks, "block"));
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
                        .lives = &search->held->lives,
                        .retime = {.within_reserved = true},
                        .analysis = search->analysis,
                        .arena = &search->analysis->report->arena};
    const struct mt_device_report *device = search->device;

    if (!is_worth_a_replay(&look))
        return MT_OK;
    enum mt_status status = MT_OK;
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

/* Results of earlier calls of a model that are alive while a later call makes them again: `out =
 * model(x)` keeps the old result until the new one exists, and a list keeps all of them. Only for
 * programs without backward, where nothing else needs them. A result is one block that its stack
 * makes in each call; a cache has one or two per layer. */

enum {
    EARLIER_RESULTS_MIN_SHARE = 10 /* of the peak */
};

struct look_earlier_results {
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

static void say_earlier_results(struct mt_finding_search *search,
                                const struct look_earlier_results *look)
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
        mt_arena_printf(arena, "%s of up to %s", mt_format_counted(n[0], look->blocks, "block"),
                        mt_format_bytes(n[1], look->largest->bytes));
    mt_finding_publish(search, &finding);
}

static enum mt_status find_earlier_results(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    const struct mt_instant *peak = device->instants;
    const uint64_t least = device->allocated_peak.bytes / 1000;
    struct look_earlier_results look = {.bytes = 0};
    struct look_kept_forward graph = {.count = 0};
    bool is_told; /* results are part of the graph that kept-forward reports */

    if (report->saw_backward || report->is_driver_level || !device->instant_count)
        return MT_OK;
    is_told = keeps_graph(search, &graph) && graph.earlier_bytes;
    mt_map_release(&graph.stacks);
    if (is_told)
        return MT_OK;
    /* Sorted by size: at most a thousand are compared with all others. */
    for (uint32_t i = 0; i < peak->holding_count && peak->holdings[i].bytes > least; i++) {
        const struct mt_holding *holding = &peak->holdings[i];

        if (!is_result(report, holding) || !is_earlier(report, peak, holding))
            continue;
        mt_finding_mark(search, i);
        look.bytes += holding->bytes;
        look.blocks++;
        if (!look.largest)
            look.largest = holding;
    }
    if (!mt_finding_matters(look.bytes, device->allocated_peak.bytes) ||
        look.bytes < device->allocated_peak.bytes / EARLIER_RESULTS_MIN_SHARE)
        return MT_OK;
    say_earlier_results(search, &look);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_earlier_results = {.find = find_earlier_results};
