/* Findings about the course of the steps: memory that each step leaves behind, and a peak that
 * occurs once.
 *
 * Growth: every step leaves memory behind that nothing frees. Two things are required: evidence,
 * which is blocks allocated in consecutive steps at one line of the program that all exist when the
 * last step begins; and the trend, memory after a step rises with the steps (trend.h). Replaced
 * blocks are evidence if the new one is made from the old one (finding.h), but not otherwise (the
 * output of a longer batch). Blocks that a queue of several steps frees later are not evidence.
 *
 * Warm-up steps count neither for the rate nor against it. It is still unknown what the last two
 * steps leave behind. */
#include <stdlib.h>

#include "finding.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

/* A peak that occurs once: in set-up or in the first two steps, with all later steps well below it
 * and similar. The device must still have room for it. */

enum {
    FIRST_STEPS = 2,
    LATER_STEPS = 3, /* minimum number of steps to compare with */
    SWING_PARTS = 4  /* they may differ by this part of the excess */
};

static enum mt_status find_first_steps(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_step_list steps = mt_judged_steps(search->analysis->report, device);
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t later = 0, least = UINT64_MAX;
    const char *evidence[1];
    char n[3][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "first-steps",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice = device->peak_role_bytes[MT_ROLE_KV_CACHE]
                      ? "shorter or fewer prompts at a time, or a prefill in chunks: the pass over "
                        "the prompt needs it, later tokens do not"
                      : "run memtrace live --at peak and look for memory that is gone later: the "
                        "checkpoint that a model was loaded from, a copy in another dtype, a "
                        "search for algorithms (torch.backends.cudnn.benchmark)"};

    if (steps.count < FIRST_STEPS + LATER_STEPS || search->analysis->report->starts_in_middle ||
        search->analysis->report->is_driver_level)
        return MT_OK;
    for (uint32_t i = FIRST_STEPS; i < steps.count; i++) {
        later = mt_max_u64(later, steps.list[i].peak.allocated);
        least = mt_min_u64(least, steps.list[i].peak.allocated);
    }
    uint64_t most = later;
    for (uint32_t i = 0; i < device->step_count; i++) /* other loops may need as much */
        if (device->steps[i].begin_event > steps.list[FIRST_STEPS].begin_event)
            later = mt_max_u64(later, device->steps[i].peak.allocated);
    if (later >= peak || device->allocated_peak.event >
                             mt_step_begin(search->analysis->report, &steps.list[FIRST_STEPS]))
        return MT_OK;
    uint64_t excess = peak - later;
    if (!mt_finding_matters(excess, peak) || most - least > excess / SWING_PARTS)
        return MT_OK;
    bool in_setup =
        device->allocated_peak.event < mt_step_begin(search->analysis->report, &device->steps[0]);
    finding.bytes = excess;
    finding.saving = MT_SAVING_AT_MOST;
    finding.saves_bytes = excess;
    finding.title = mt_arena_printf(arena, "%s extra is needed only %s: %s, then %s",
                                    mt_format_bytes(n[0], excess),
                                    in_setup ? "before the first step" : "in the first steps",
                                    mt_format_bytes(n[1], peak), mt_format_bytes(n[2], later));
    evidence[0] = mt_arena_printf(
        arena, "the peaks of the %s steps after the second differ by at most %s",
        mt_format_count(n[0], steps.count - FIRST_STEPS), mt_format_bytes(n[1], most - least));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_first_steps = {.find = find_first_steps};

enum {
    MAX_LINES = 16, /* lines that grow, of which the largest are named */
    NAMED_LINES = 3,
    GRAPH_BLOCKS = 3, /* per step, of... */
    GRAPH_STACKS = 2, /* in one line: more than one kept value */
    FAR_STEPS =
        10000, /* slower growth, which does not reach a peak in this many steps, is not reported */
    MIN_BYTES = 1 << 20
};

struct line {
    struct mt_replaced is; /* frame MT_NO_ID: no stack; old_bytes and new_bytes 0: permanent */
    uint64_t bytes;        /* left by the steps that count */
    uint32_t activations;  /* of its blocks, those that forward made */
};

struct look {
    struct mt_finding_search *search;
    struct mt_trend trend; /* its slope */
    const struct mt_lives *lives;
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    struct mt_step_list steps;
    uint32_t begin, end;       /* steps that count: [begin, end) */
    struct mt_line_life *left; /* blocks alive when the last step begins, by line and step */
    uint32_t left_count;
    struct line lines[MAX_LINES]; /* that grow; largest first */
    uint32_t line_count;
    uint64_t bytes_per_step, gathered_bytes; /* of all lines */
    uint64_t left_bytes;                     /* of those that are not replaced */
    bool even;                               /* each step left the same amount */
};

static void choose_steps(struct look *look, uint32_t step_count)
{
    look->begin = mt_warm_up_steps(step_count);
    look->end = step_count - 2;
}

/* Whether memory rises by at least half of the amount that steps leave behind. */
static bool rises(const struct look *look, double bytes_per_step)
{
    double found = (double)look->trend.bytes_per_step;

    return look->trend.has_slope && found > 0 && found >= bytes_per_step / 2;
}

MT_DEFINE_ORDER(by_line, struct mt_line_life,
                MT_ASCENDING(line) || MT_ASCENDING(step) || MT_ASCENDING(life->stack) ||
                    MT_ASCENDING(life->birth_event))

static void take_left(struct look *look)
{
    const struct mt_lives *lives = look->lives;

    look->left = mt_memory_zeroed((size_t)lives->count + 1, sizeof *look->left);
    for (uint32_t i = 0; i < lives->count; i++) {
        const struct mt_life *life = &lives->lives[i];
        const struct mt_line_life left = mt_line_life(look->search->analysis, lives, life);

        if (mt_lives_step(lives, life->end_event) + 1 >= lives->step_count &&
            left.step < look->end && life->role != MT_ROLE_WORKSPACE)
            look->left[look->left_count++] = left;
    }
    if (look->left_count)
        qsort(look->left, look->left_count, sizeof *look->left, by_line);
}

struct halves {
    uint32_t middle;   /* first step of the second */
    uint32_t steps[2]; /* that left something */
    uint64_t bytes[2];
};

/* Whether it continues: neither a warm-up that ends, nor a queue that drains. */
static bool goes_on(const struct look *look, const struct halves *halves)
{
    uint64_t counts[2] = {halves->middle - look->begin, look->end - halves->middle};
    uint64_t first = halves->bytes[0] / counts[0], second = halves->bytes[1] / counts[1];

    return halves->steps[0] * 2u >= counts[0] && halves->steps[1] * 2u >= counts[1] &&
           first / 2 <= second && second / 2 <= first;
}

static void count_last(struct line *line, const struct mt_line_life *lives, uint32_t count,
                       uint32_t step)
{
    uint32_t last = MT_NO_ID;

    for (uint32_t i = 0; i < count; i++) {
        if (lives[i].step != step)
            continue;
        line->is.blocks++;
        line->activations += lives[i].life->role == MT_ROLE_ACTIVATIONS;
        line->is.stacks += !line->is.stacks || lives[i].life->stack != last;
        last = lives[i].life->stack;
    }
}

static void add_line(struct look *look, const struct line *line)
{
    uint32_t at = look->line_count;

    if (at == MAX_LINES && look->lines[--at].bytes >= line->bytes)
        return;
    for (; at > 0 && look->lines[at - 1].bytes < line->bytes; at--)
        look->lines[at] = look->lines[at - 1];
    look->lines[at] = *line;
    look->line_count += look->line_count < MAX_LINES;
}

/* All blocks that one line left. */
static void judge(struct look *look, const struct mt_line_life *lives, uint32_t count)
{
    struct halves halves = {.middle = look->begin + (look->end - look->begin) / 2};
    struct line line = {.is = {.frame = lives[0].line, .stack = lives[0].life->stack}};
    uint32_t last = MT_NO_ID, last_left = 0, run = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t step = lives[i].step;
        if (step != last && (last == MT_NO_ID || (step != last + 1 && step < look->begin)))
            run = step; /* a gap in the warm-up: earlier blocks do not count */
        if (step >= look->begin) {
            uint32_t half = step >= halves.middle;
            halves.bytes[half] += lives[i].life->bytes;
            halves.steps[half] += step != last;
            last_left = step;
        }
        last = step;
    }
    line.bytes = halves.bytes[0] + halves.bytes[1];
    line.is.first_step = run;
    count_last(&line, lives, count, last_left);
    if (goes_on(look, &halves))
        add_line(look, &line);
}

static void judge_lines(struct look *look)
{
    uint32_t begin = 0;

    for (uint32_t i = 1; i <= look->left_count; i++) {
        if (i < look->left_count && look->left[i].line == look->left[begin].line)
            continue;
        judge(look, look->left + begin, i - begin);
        begin = i;
    }
}

static enum mt_status add_replaced(struct look *look)
{
    const struct mt_replaced_question question = {.device = look->search->device,
                                                  .lives = look->lives,
                                                  .begin = look->begin,
                                                  .end = look->end,
                                                  .least_bytes = MIN_BYTES};
    struct mt_replaced found[MT_MAX_REPLACED];
    uint32_t count;
    enum mt_status status = mt_replaced_find(look->search->analysis, &question, found, &count);

    for (uint32_t i = 0; status == MT_OK && i < count; i++) {
        const struct line line = {.is = found[i], .bytes = found[i].new_bytes - found[i].old_bytes};

        add_line(look, &line);
        look->even = look->even && found[i].even;
    }
    return status;
}

static bool is_growing_line(const struct look *look, uint32_t frame)
{
    for (uint32_t i = 0; i < look->line_count; i++)
        if (look->lines[i].is.frame == frame && !look->lines[i].is.new_bytes)
            return true;
    return false;
}

static void add_up(struct look *look)
{
    uint32_t steps = look->end - look->begin;
    uint64_t *by_step = mt_memory_zeroed(look->end, sizeof *by_step);

    for (uint32_t i = 0; i < look->left_count; i++)
        if (is_growing_line(look, look->left[i].line))
            by_step[look->left[i].step] =
                mt_add_most_u64(by_step[look->left[i].step], look->left[i].life->bytes);
    for (uint32_t i = look->begin; i < look->end; i++) {
        look->gathered_bytes = mt_add_most_u64(look->gathered_bytes, by_step[i]);
        look->even = look->even && by_step[i] == by_step[look->begin];
    }
    look->left_bytes = look->gathered_bytes;
    for (uint32_t i = 0; i < look->line_count; i++)
        if (look->lines[i].is.new_bytes)
            look->gathered_bytes = mt_add_most_u64(look->gathered_bytes, look->lines[i].bytes);
    look->bytes_per_step = mt_add_most_u64(look->gathered_bytes, steps / 2) / steps;
    free(by_step);
}

/* One scalar per step is not reported. */
static bool matters(const struct look *look)
{
    return look->gathered_bytes >= MIN_BYTES &&
           look->bytes_per_step >= look->search->device->allocated_peak.bytes / FAR_STEPS;
}

static const char *label_of(const struct look *look, const struct line *line)
{
    return line->is.frame == MT_NO_ID
               ? "the autograd engine (no Python stack)"
               : mt_site_label(look->arena, look->symbols, line->is.stack, false);
}

static int64_t number_of(const struct look *look, uint32_t step)
{
    return look->steps.list[step].step;
}

static const char *tell_replaced(const struct look *look, const struct line *line,
                                 const char *label)
{
    char n[4][MT_UNITS_TEXT];

    return mt_arena_printf(
        look->arena,
        "%s per step from %s: each step replaces %s with longer copies, %s after step "
        "%lld, %s after step %lld",
        mt_format_change(n[0], (int64_t)(line->bytes / (look->end - look->begin))), label,
        mt_format_counted(n[1], line->is.blocks, "block"),
        mt_format_bytes(n[2], line->is.old_bytes), (long long)number_of(look, look->begin - 1),
        mt_format_bytes(n[3], line->is.new_bytes), (long long)number_of(look, look->end - 1));
}

static const char *tell_line(const struct look *look, const struct line *line)
{
    uint32_t steps = look->end - look->begin;
    const char *label = label_of(look, line);
    char n[3][MT_UNITS_TEXT];

    if (line->is.new_bytes)
        return tell_replaced(look, line, label);
    return mt_arena_printf(look->arena, "%s per step from %s: %s from %s",
                           mt_format_change(n[0], (int64_t)(line->bytes / steps)), label,
                           mt_format_counted(n[1], line->is.blocks, "block"),
                           mt_format_counted(n[2], line->is.stacks, "stack"));
}

/* The largest need of a step when the last one begins, if all steps are like the earlier ones. */
static uint64_t level(const struct look *look)
{
    uint64_t most = 0;

    for (uint32_t i = look->begin; i < look->steps.count; i++)
        most = mt_max_u64(most, mt_add_most_u64(look->steps.list[i].peak.allocated,
                                                mt_mul_most_u64(look->bytes_per_step,
                                                                look->steps.count - 1 - i)));
    return most;
}

/* From one step to the next; 0 if the trace has no times. */
static uint64_t step_ns(const struct look *look)
{
    const struct mt_step_use *steps = look->steps.list;
    const uint64_t begin_t_ns = steps[look->begin].begin_t_ns,
                   last_t_ns = steps[look->steps.count - 1].begin_t_ns;

    return (last_t_ns - begin_t_ns) / (look->lives->step_count - 1 - look->begin);
}

/* " (3.20 s)": the duration of that many steps; "" if the duration of a step is unknown. */
static const char *duration_text(const struct look *look, uint64_t steps)
{
    const uint64_t ns = step_ns(look);
    char text[MT_UNITS_TEXT];

    return ns ? mt_arena_printf(look->arena, " (%s)",
                                mt_format_duration(text, mt_mul_most_u64(steps, ns)))
              : "";
}

static const char *forecast(const struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    bool is_limit = mt_limit_is_known(&device->replay);
    uint64_t capacity = is_limit ? device->replay.limit_bytes : device->total_memory_bytes;
    uint64_t used = level(look);
    char n[2][MT_UNITS_TEXT];

    if (!capacity)
        return mt_arena_printf(
            look->arena, "%s more steps add %s (the device's memory was not recorded)",
            mt_format_count(n[0], FAR_STEPS),
            mt_format_bytes(n[1], mt_mul_most_u64(look->bytes_per_step, FAR_STEPS)));
    uint64_t steps = used < capacity ? (capacity - used) / look->bytes_per_step + 1 : 0;
    if (mt_mul_most_u64(steps, step_ns(look)) > UINT64_MAX / 2)
        return "at this rate, no run is long enough to fill the device";
    const char *duration = duration_text(look, steps);
    return duration
               ? mt_arena_printf(look->arena,
                                 "at this rate, the %s of the %s fills up after at most %s%s",
                                 mt_format_bytes(n[0], capacity), is_limit ? "limit" : "device",
                                 mt_format_counted(n[1], steps, "more step"), duration)
               : NULL;
}

/* More than one value per step: the inputs of one backward pass. */
static bool is_graph(const struct look *look, const struct line *line)
{
    return mt_framework_of(look->search) == MT_FRAMEWORK_TORCH &&
           line->activations >= GRAPH_BLOCKS && line->is.stacks >= GRAPH_STACKS;
}

static void tell_evidence(struct look *look, struct mt_finding *finding)
{
    const char **evidence = mt_arena_array(look->arena, NAMED_LINES + 3, sizeof *evidence);
    char n[MT_UNITS_TEXT];
    uint32_t count = 0;

    if (look->left_bytes)
        evidence[count++] = mt_arena_printf(
            look->arena,
            "%s left behind by steps %lld to %lld is still allocated when step %lld begins",
            mt_format_bytes(n, look->left_bytes), (long long)number_of(look, look->begin),
            (long long)number_of(look, look->end - 1),
            (long long)number_of(look, look->lives->step_count - 1));
    for (uint32_t i = 0; i < look->line_count && i < NAMED_LINES; i++)
        evidence[count++] = tell_line(look, &look->lines[i]);
    if (is_graph(look, &look->lines[0]))
        evidence[count++] = "this many blocks from one line are typical of graphs that autograd "
                            "keeps because backward() never ran";
    evidence[count++] = forecast(look);
    mt_finding_set_evidence(finding, evidence, count);
}

static const struct mt_framework_texts replaced_advice = {
    {[MT_FRAMEWORK_UNKNOWN] = "it grows in each step: keep only its latest part, keep the sum or "
                              "count that you need, or move it to the host",
     [MT_FRAMEWORK_TORCH] =
         "torch.cat, torch.stack or append makes it longer in each step: keep only its latest "
         "part, keep the sum or count that you need, or move it to the host (.cpu())"}};

static const struct mt_framework_texts kept_advice = {
    {[MT_FRAMEWORK_UNKNOWN] =
         "something keeps this memory from step to step: copy what you need to "
         "the host, or free it",
     [MT_FRAMEWORK_TORCH] = "a list, dict or attribute keeps these tensors: store .item() or "
                            ".detach().cpu() in it, or clear it",
     [MT_FRAMEWORK_JAX] = "a list, dict or attribute keeps these arrays: copy what you need to the "
                          "host (jax.device_get), or clear it",
     [MT_FRAMEWORK_TENSORFLOW] =
         "a list, dict or attribute keeps these tensors: copy what you need "
         "to the host (.numpy()), or clear it"}};

static bool is_kv_cache(const struct look *look, const struct line *line)
{
    for (uint32_t i = 0; i < look->lives->count; i++)
        if (look->lives->lives[i].stack == line->is.stack)
            return look->lives->lives[i].role == MT_ROLE_KV_CACHE;
    return false;
}

/* A cache of keys and values grows by design: each step replaces it by a longer one, by the same
 * bytes with each token. A cache that a request leaves behind is a leak. */
static bool only_kv_cache_grows(const struct look *look)
{
    for (uint32_t i = 0; i < look->line_count; i++)
        if (!look->lines[i].is.new_bytes || !is_kv_cache(look, &look->lines[i]))
            return false;
    return look->even;
}

static const char *advice_of(const struct look *look, const struct line *most, bool is_cache)
{
    if (is_cache)
        return "fewer or shorter sequences, a cache in fewer bits, or one with a window: each step "
               "adds its tokens of all sequences";
    if (most->is.new_bytes)
        return mt_framework_text(look->search, &replaced_advice);
    return is_graph(look, most)
               ? "use loss.item() or loss.detach() where a value keeps its graph (total += loss), "
                 "and run code that needs no backward under torch.no_grad()"
               : mt_framework_text(look->search, &kept_advice);
}

static void say(struct look *look)
{
    const struct line *most = &look->lines[0];
    struct mt_finding *finding = mt_finding_add(look->search);
    const char *label = label_of(look, most);
    const bool is_cache = only_kv_cache_grows(look);
    char n[2][MT_UNITS_TEXT];

    if (!finding)
        return;
    finding->id = "growth";
    finding->severity = is_cache ? "info" : "error";
    finding->bytes = look->gathered_bytes;
    finding->bytes_per_step = look->bytes_per_step;
    finding->title = mt_arena_printf(
        look->arena, "%s%s after each step%s since step %lld, %s of it from %s",
        mt_format_bytes(n[0], look->bytes_per_step), is_cache ? " more KV cache" : " more",
        look->even ? "" : " on average", (long long)number_of(look, most->is.first_step),
        look->line_count == 1 ? "all"
                              : mt_format_bytes(n[1], most->bytes / (look->end - look->begin)),
        label);
    finding->advice = advice_of(look, most, is_cache);
    tell_evidence(look, finding);
}

/* Finds the growing lines: their sum per step. */
static enum mt_status look_at(struct look *look)
{
    enum mt_status status = MT_OK;

    take_left(look);
    judge_lines(look);
    status = add_replaced(look);
    if (status == MT_OK)
        add_up(look);
    free(look->left);
    return status;
}

/* Too few steps for `growth`: after each step of training, and at each peak, memory is higher by
 * the same bytes, and lines leave the same bytes in each step. A step that began before the
 * recording also has its peak and its end. */

enum { FEW_STEPS_MIN = 3 };

/* By how much memory is higher after each step, if that is the same and peaks rise as much; else
 * 0. */
static uint64_t even_rise(const struct look *look, const struct mt_step_use *first)
{
    const struct mt_step_use *end = look->steps.list + look->steps.count;
    const uint64_t rise =
        first[1].exit.allocated - mt_min_u64(first->exit.allocated, first[1].exit.allocated);

    for (const struct mt_step_use *step = first; step + 1 < end; step++)
        if (step[1].exit.allocated != step->exit.allocated + rise ||
            step[1].peak.allocated != step->peak.allocated + rise)
            return 0;
    return rise;
}

/* What each step before the last left of one line; 0: not the same. */
static uint64_t even_left(const struct look *look, const struct mt_line_life *lives, uint32_t count)
{
    uint64_t bytes = 0, first = 0;
    uint32_t step = 0, i = 0;

    for (; step < look->end; step++, bytes = 0) {
        for (; i < count && lives[i].step == step; i++)
            bytes += lives[i].life->bytes;
        if (step && bytes != first)
            return 0;
        first = bytes;
    }
    return first;
}

static void say_few(struct look *look, uint64_t rise, const struct mt_life *most,
                    uint64_t most_bytes, uint32_t steps)
{
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    const struct mt_finding finding = {
        .id = "possible-growth",
        .severity = "info",
        .bytes = rise,
        .bytes_per_step = rise,
        .title = mt_arena_printf(
            look->arena, "%u recorded steps rise by %s each: looks like a leak, %s of it from %s",
            steps, mt_format_bytes(n[0], rise), mt_format_bytes(n[1], most_bytes),
            mt_site_label(look->arena, look->symbols, most->stack, false)),
        .evidence = evidence,
        .evidence_count = 1,
        .advice = mt_arena_printf(
            look->arena, "record at least %d steps to be sure; if all of them rise: %s",
            MT_GROWTH_MIN_STEPS, mt_framework_text(look->search, &kept_advice))};

    evidence[0] = "each step leaves the same bytes, which the last step still has; a cache that "
                  "fills looks the same in so few steps";
    mt_finding_publish(look->search, &finding);
}

static void look_at_few(struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    const struct mt_step_use *first = look->steps.list;
    const struct mt_life *most = NULL;
    uint64_t most_bytes = 0;
    uint32_t count = look->steps.count;

    if (first != device->steps && first != device->loop_steps) {
        first--;
        count++;
    }
    if (count < FEW_STEPS_MIN || look->steps.count < 2 ||
        !look->search->analysis->report->saw_backward)
        return;
    look->end = look->steps.count - 1;
    uint64_t rise = even_rise(look, first);
    if (rise < MIN_BYTES)
        return;
    take_left(look);
    for (uint32_t i = 1, begin = 0; i <= look->left_count; i++) {
        if (i < look->left_count && look->left[i].line == look->left[begin].line)
            continue;
        uint64_t bytes = look->left[begin].life->stack == MT_NO_ID
                             ? 0
                             : even_left(look, look->left + begin, i - begin);
        if (bytes > most_bytes) {
            most_bytes = bytes;
            most = look->left[begin].life;
        }
        begin = i;
    }
    if (most && most_bytes >= rise / 2)
        say_few(look, rise, most, most_bytes, count);
    free(look->left);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const struct mt_device_report *device = search->device;
    struct look look = {.search = search,
                        .lives = &search->held->lives,
                        .arena = &search->analysis->report->arena,
                        .symbols = &search->analysis->source->symbols,
                        .steps = mt_judged_steps(report, device),
                        .even = true};

    if (look.lives->too_many)
        return MT_OK;
    if (look.steps.count < MT_GROWTH_MIN_STEPS) {
        look_at_few(&look);
        return MT_OK;
    }
    mt_trend_fit(report, device, &look.trend);
    choose_steps(&look, look.steps.count);
    search->growth =
        (struct mt_growth){.judged = true, .steps = look.end - look.begin, .stack = MT_NO_ID};
    if (!rises(&look, 0))
        return MT_OK;
    enum mt_status status = look_at(&look);
    if (status != MT_OK || !look.line_count || !rises(&look, (double)look.bytes_per_step))
        return status;
    search->growth.bytes_per_step = look.bytes_per_step;
    search->growth.stack = look.lines[0].is.stack;
    if (matters(&look))
        say(&look);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_growth = {.find = find};
