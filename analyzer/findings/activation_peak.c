/* Findings about activations at the peak: those that wait for backward, those of the loss, and
 * matrices of attention. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "ascii.h"
#include "finding.h"
#include "frame_judge.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

/* A peak that the loss makes: memory of cross_entropy and similar functions, and their backward, at
 * the peak. For logits over a large vocabulary this is several copies in full precision. */

enum { LOSS_PEAK_MIN_SHARE = 5 }; /* of the peak */

/* A function of that name elsewhere belongs to the program: its caller is not a loss. */
enum { LOSS = 1, NAMESAKE, LINE_OF_LOSS /* that calls it: logits.float() */ };

static uint8_t judge_frame(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    static const char *const functions[] = {"cross_entropy", "nll_loss", "log_softmax",
                                            "binary_cross_entropy_with_logits"};
    const char *function = mt_symbols_text(symbols, frame->function);

    for (size_t i = 0; i < MT_ARRAY_LEN(functions); i++)
        if (strcmp(function, functions[i]) == 0)
            return strstr(mt_symbols_text(symbols, frame->file), "functional.py") ? LOSS : NAMESAKE;
    return 0;
}

/* Marks the stacks that end in a line that calls a loss. */
static void mark_lines(struct mt_stack_marks *marks, const struct mt_symbols *symbols)
{
    bool *calls = mt_memory_zeroed((size_t)symbols->frame_count + 1, sizeof *calls);

    for (uint32_t id = 0; id < symbols->stack_count; id++) {
        const uint32_t parent = symbols->stacks[id].parent;

        if (marks->stacks[id] == LOSS && parent < id && marks->stacks[parent] != LOSS)
            calls[symbols->stacks[parent].frame] = true;
    }
    for (uint32_t id = 0; id < symbols->stack_count; id++)
        if (!marks->stacks[id] && calls[symbols->stacks[id].frame])
            marks->stacks[id] = LINE_OF_LOSS;
    free(calls);
}

/* Marks the stacks with cross_entropy or similar functions, for finding_is_loss. */
static void finding_mark_losses(struct mt_finding_search *search)
{
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    const bool is_made = search->marks->loss.count == symbols->stack_count;

    mt_stack_marks_make(&search->marks->loss, symbols, judge_frame);
    if (!is_made)
        mark_lines(&search->marks->loss, symbols);
}

static bool finding_is_loss(const struct mt_finding_search *search, uint32_t stack)
{
    return mt_stack_mark(&search->marks->loss, stack) == LOSS;
}

static bool is_cross_entropy(const struct mt_symbols *symbols, uint32_t stack)
{
    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent)
        if (!strcmp(
                mt_symbols_text(symbols, symbols->frames[symbols->stacks[stack].frame].function),
                "cross_entropy"))
            return true;
    return false;
}

static enum mt_status find_loss_peak(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t bytes = 0, blocks = 0, most = 0;
    uint32_t stack = MT_NO_ID;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "loss-peak",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "compute the loss over chunks of the tokens, or fuse it with the last layer "
                  "(LigerFusedLinearCrossEntropyLoss, cut_cross_entropy)"};

    if (!device->instant_count)
        return MT_OK;
    finding_mark_losses(search);
    /* Backward may have made blocks without a stack for the loss. */
    search->scope = (struct mt_finding_scope){.roles = UINT32_MAX,
                                              .stackless_roles = 1u << MT_ROLE_ACTIVATIONS |
                                                                 1u << MT_ROLE_TEMPORARIES,
                                              .stacks = &search->marks->loss,
                                              .marks = 1u << LOSS | 1u << LINE_OF_LOSS};
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];
        uint32_t of = holding->tied != MT_NO_ID ? holding->tied : holding->stack;
        if (!finding_is_loss(search, of))
            continue;
        mt_finding_mark(search, i);
        bytes += holding->bytes;
        blocks += holding->blocks;
        if (holding->bytes > most) {
            most = holding->bytes;
            stack = of;
        }
    }
    if (!mt_finding_matters(bytes, peak) || bytes < peak / LOSS_PEAK_MIN_SHARE)
        return MT_OK;
    finding.bytes = bytes;
    if (is_cross_entropy(symbols, stack))
        finding.change = "chunked-loss=8";
    const char *label = mt_site_label(arena, symbols, stack, false);
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: the loss and its backward pass, %s",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak), label);
    evidence[0] = mt_arena_printf(arena, "%s of up to %s", mt_format_counted(n[0], blocks, "block"),
                                  mt_format_bytes(n[1], most));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_loss_peak = {.find = find_loss_peak};

/* Activations that wait for backward, by the line of the model that made them: memory that
 * checkpointing could recompute instead. Only the peak counts, and there only blocks of the peak's
 * own step: older ones wait for nothing. A recording without steps has at most one, which did not
 * end. The loss is excluded, since it has its own finding. */

/* Libraries whose models have a switch, by the folder of their models. */
static const struct {
    const char *folder, *call;
} libraries[] = {
    {"/transformers/models/", "model.gradient_checkpointing_enable()"},
    {"/timm/models/", "model.set_grad_checkpointing(True)"},
    {"/diffusers/models/", "model.enable_gradient_checkpointing()"},
};

/* Models of transformers whose switch raises an error (supports_gradient_checkpointing is False, in
 * 5.24 and before). */
static const char *const without_switch[] = {
    "models/convnext/",     "models/convnextv2/",     "models/d_fine/",   "models/dinat/",
    "models/efficientnet/", "models/grounding_dino/", "models/hgnet_v2/", "models/mask2former/",
    "models/oneformer/",    "models/regnet/",         "models/resnet/",   "models/rt_detr/",
    "models/rt_detr_v2/",   "models/sam2/",           "models/xlnet/",
};

static const char *call_of(const struct mt_symbols *symbols, uint32_t frame)
{
    const char *file =
        frame == MT_NO_ID ? NULL : mt_symbols_text(symbols, symbols->frames[frame].file);

    if (file && mt_path_has(file, libraries[0].folder))
        for (size_t i = 0; i < MT_ARRAY_LEN(without_switch); i++)
            if (mt_path_has(file, without_switch[i]))
                return NULL;
    for (size_t i = 0; file && i < MT_ARRAY_LEN(libraries); i++)
        if (mt_path_has(file, libraries[i].folder))
            return libraries[i].call;
    return NULL;
}

enum { MIN_REPEATED_SHARE = 4 }; /* of the activations: layers that hold less are not worth it */

/* "12 layers Block"; without classes, "12 layers called from train.py:65", or the turns of a loop
 * of the model itself. */
static const char *name_layers(struct mt_arena *arena, const struct mt_module_repeat *layers)
{
    const char *path = layers->path, *last = strrchr(path, '/'), *caller = path;

    if (!strchr(last ? last : path, ':'))
        return mt_arena_printf(arena, "%u layers %s", layers->times, last ? last + 1 : path);
    if (!last)
        return mt_arena_printf(arena, "%u turns of the loop at %s", layers->times, path);
    for (const char *at = path; at < last; at++)
        if (*at == '/')
            caller = at + 1;
    return mt_arena_printf(arena, "%u layers called from %.*s", layers->times, (int)(last - caller),
                           caller);
}

/* The module of a class inside the model that holds at least half; NULL: none. */
static const char *largest_module(const struct mt_modules *modules, uint64_t bytes)
{
    for (uint32_t i = modules->layer_count; i < modules->row_count; i++) {
        const struct mt_module_row *row = &modules->rows[i];
        const char *last = strrchr(row->path, '/');

        if (row->kind == MT_MODULE_OTHER && last && !strchr(last, ':') &&
            row->role_bytes[MT_ROLE_ACTIVATIONS] >= bytes / 2)
            return last + 1;
    }
    return NULL;
}

static uint64_t activation_bytes(const struct mt_modules *modules)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < modules->row_count; i++)
        if (modules->rows[i].kind == MT_MODULE_LAYER || modules->rows[i].kind == MT_MODULE_OTHER)
            bytes += modules->rows[i].role_bytes[MT_ROLE_ACTIVATIONS];
    return bytes;
}

/* Returns how many of the first repeats to checkpoint; 0: none of them. */
static uint32_t layers_to_checkpoint(const struct mt_modules *modules, uint64_t bytes)
{
    const struct mt_module_repeat *repeats = modules->repeats;
    uint64_t repeated = 0;

    for (uint32_t i = 0; i < modules->repeat_count; i++)
        repeated += repeats[i].activation_bytes;
    if (repeated < bytes / MIN_REPEATED_SHARE || !modules->repeat_count)
        return 0;
    return modules->repeat_count > 1 &&
                   repeats[1].activation_bytes >= repeats[0].activation_bytes / 2
               ? 2
               : 1;
}

/* What to checkpoint: "each of the 12 layers Block"; NULL: nothing. */
static const char *part_to_checkpoint(struct mt_arena *arena, const struct mt_modules *modules)
{
    const struct mt_module_repeat *repeats = modules->repeats;
    const uint64_t bytes = activation_bytes(modules);

    if (!bytes)
        return NULL;
    switch (layers_to_checkpoint(modules, bytes)) {
    case 0: return largest_module(modules, bytes);
    case 1: return mt_arena_printf(arena, "each of the %s", name_layers(arena, &repeats[0]));
    default: break;
    }
    return mt_arena_printf(arena, "each of the %s and of the %s", name_layers(arena, &repeats[0]),
                           name_layers(arena, &repeats[1]));
}

/* The last part of a path; NULL if it is not a class. */
static const char *class_of(const char *path)
{
    const char *last = path ? strrchr(path, '/') : NULL;

    last = last ? last + 1 : path;
    return last && !strpbrk(last, ":()<>+ ") ? last : NULL;
}

const char *mt_checkpoint_change(struct mt_arena *arena, const struct mt_modules *modules)
{
    const uint64_t bytes = activation_bytes(modules);
    const uint32_t layers = bytes ? layers_to_checkpoint(modules, bytes) : 0;
    const char *first, *second = NULL;

    if (layers)
        first = class_of(modules->repeats[0].path);
    else
        first = bytes ? class_of(largest_module(modules, bytes)) : NULL;
    if (layers == 2)
        second = class_of(modules->repeats[1].path);
    if (!first || (second && !strcmp(first, second)))
        second = NULL;
    return first ? mt_arena_printf(arena, "checkpoint=%s%s%s", first, second ? "," : "",
                                   second ? second : "")
                 : NULL;
}

static const char offload[] = "torch.autograd.graph.save_on_cpu(), which keeps them in host memory";

const char *mt_checkpoint_advice(struct mt_arena *arena, const struct mt_symbols *symbols,
                                 struct mt_site site, const struct mt_modules *modules)
{
    const char *call = call_of(symbols, site.frame);

    if (call == libraries[0].call && mt_loop_words_of(symbols).checkpoint)
        return mt_loop_words_of(symbols).checkpoint;
    if (call)
        return call;
    const char *part = modules ? part_to_checkpoint(arena, modules) : NULL;
    if (!part)
        return mt_arena_printf(arena, "%s; or a smaller batch", offload);
    return mt_arena_printf(
        arena,
        "torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False) "
        "around %s; or %s",
        part, offload);
}

enum {
    HELD_ACTIVATIONS_MIN_SHARE = 4, /* of the peak */
    MAX_LINES = 64,                 /* that are told apart */
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
           !finding_is_loss(search, holding->stack);
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
        return mt_arena_printf(arena, "%s in %s from %s", mt_format_bytes(n[0], line->bytes),
                               mt_format_counted(n[1], line->blocks, "block"), label);
    return mt_arena_printf(arena, "%s in %s from %s, the oldest allocated %s before the peak",
                           mt_format_bytes(n[0], line->bytes),
                           mt_format_counted(n[1], line->blocks, "block"), label,
                           mt_format_duration(n[2], age_ns));
}

/* PyTorch's names the modules (finding.h). */
static const struct mt_framework_texts advice = {
    {[MT_FRAMEWORK_UNKNOWN] =
         "gradient checkpointing: recompute them in backward instead of keeping them",
     [MT_FRAMEWORK_JAX] = "jax.checkpoint around the functions that make them, with a policy "
                          "(jax.checkpoint_policies) for values that are expensive to recompute",
     [MT_FRAMEWORK_TENSORFLOW] = "tf.recompute_grad around the functions that make them"}};

/* Activations of a checkpointed function: its inputs, or what backward computes again. */
static uint8_t checkpoints(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    return mt_path_has(mt_symbols_text(symbols, frame->file), "torch/utils/checkpoint.py");
}

static const char *advice_for(const struct mt_finding_search *search, struct mt_site site,
                              bool is_recomputed)
{
    if (mt_framework_of(search) != MT_FRAMEWORK_TORCH)
        return mt_framework_text(search, &advice);
    if (is_recomputed)
        return mt_arena_printf(&search->analysis->report->arena,
                               "%s; or a smaller batch: most of them are checkpointed already",
                               offload);
    return mt_checkpoint_advice(&search->analysis->report->arena,
                                &search->analysis->source->symbols, site, search->device->modules);
}

static enum mt_status find_held_activations(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_report *report = search->analysis->report;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    struct line lines[MAX_LINES];
    const char *evidence[NAMED_LINES];
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    char n[3][MT_UNITS_TEXT];
    uint64_t recomputed = 0;
    uint32_t i, count = 0;
    struct mt_finding finding = {
        .id = "held-activations", .severity = "info", .evidence = evidence};

    if (!report->saw_backward || !device->instant_count ||
        (device->instants[0].step == MT_NO_STEP && report->step_count))
        return MT_OK;
    finding_mark_losses(search);
    mt_stack_marks_make(&search->marks->checkpoint, symbols, checkpoints);
    search->scope = (struct mt_finding_scope){
        .roles = 1u << MT_ROLE_ACTIVATIONS, .stacks = &search->marks->loss, .marks = ~(1u << LOSS)};
    for (i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];
        if (!waits(search, holding))
            continue;
        mt_finding_mark(search, i);
        finding.bytes += holding->bytes;
        recomputed +=
            mt_stack_mark(&search->marks->checkpoint, holding->stack) ? holding->bytes : 0;
        count =
            add(lines, count,
                mt_site_table_at(&search->analysis->attribution.sites, holding->stack), holding);
    }
    if (!mt_finding_matters(finding.bytes, peak) ||
        finding.bytes < peak / HELD_ACTIVATIONS_MIN_SHARE)
        return MT_OK;
    for (i = 0; i < count && i < NAMED_LINES; i++)
        evidence[i] = tell(search, &lines[i]);
    finding.evidence_count = i;
    const char *label = mt_site_text(arena, symbols, lines[0].site);
    finding.advice = advice_for(search, lines[0].site, recomputed > finding.bytes / 2);
    if (mt_framework_of(search) == MT_FRAMEWORK_TORCH && recomputed <= finding.bytes / 2 &&
        device->modules)
        finding.change = mt_checkpoint_change(arena, device->modules);
    finding.cost = strncmp(finding.advice, offload, sizeof offload - 1) == 0
                       ? "copies to the host and back take time"
                       : "backward runs the forward pass of these modules a second time";
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: activations waiting for backward, %s of it from %s",
        mt_format_bytes(n[0], finding.bytes),
        mt_format_percent(n[1], (double)finding.bytes / (double)peak),
        count == 1 ? "all" : mt_format_bytes(n[2], lines[0].bytes), label);
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_held_activations = {.find = find_held_activations};

/* Attention that stores its matrix: one number for each pair of tokens and each head, so memory
 * grows with the square of the sequence length. Sizes alone prove nothing, but stacks do: blocks
 * that softmax makes below a function named after attention. Only these blocks are counted, so the
 * true amount is larger: scores and masks have the same size. */

enum {
    ATTENTION_MATRICES_MIN_SHARE = 5, /* of the peak */
    MAX_CALLERS = 3                   /* from softmax to attention */
};

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);

    for (; *text; text++) {
        size_t i = 0;

        while (i < length && mt_lower(text[i]) == word[i])
            i++;
        if (i == length)
            return true;
    }
    return false;
}

enum { SOFTMAX = 1, LOG_SOFTMAX };

static uint8_t judge_softmax(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    const char *function = mt_symbols_text(symbols, frame->function);

    return has_word(function, "log_softmax") ? LOG_SOFTMAX
           : has_word(function, "softmax")   ? SOFTMAX
                                             : 0;
}

/* From the innermost frame outwards: softmax, and at most MAX_CALLERS frames further attention. Not
 * log_softmax: that belongs to a loss or a classifier, whatever the model's name. */
static bool is_matrix(const struct mt_symbols *symbols, uint32_t stack)
{
    uint32_t callers = MAX_CALLERS;
    bool below_softmax = false;

    for (; stack < symbols->stack_count && callers; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        const char *function = mt_symbols_text(symbols, frame->function);

        if (has_word(function, "log_softmax"))
            return false;
        if (has_word(function, "softmax")) {
            below_softmax = true;
            callers = MAX_CALLERS;
            continue;
        }
        if (below_softmax && (has_word(function, "attention") || has_word(function, "attn")))
            return true;
        callers -= below_softmax;
    }
    return false;
}

static bool is_stored(const struct mt_holding *holding)
{
    return holding->stack != MT_NO_ID &&
           (holding->role == MT_ROLE_ACTIVATIONS || holding->role == MT_ROLE_TEMPORARIES);
}

static enum mt_status find_attention_matrices(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_holding *largest = NULL;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t blocks = 0, largest_block_bytes = 0;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "attention-matrices",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice =
            "torch.nn.functional.scaled_dot_product_attention: its fused kernels do not store "
            "these matrices, so memory grows with the sequence length, not with its square"};

    if (!device->instant_count)
        return MT_OK;
    mt_stack_marks_make(&search->marks->softmax, symbols, judge_softmax);
    search->scope =
        (struct mt_finding_scope){.roles = 1u << MT_ROLE_ACTIVATIONS | 1u << MT_ROLE_TEMPORARIES,
                                  .stacks = &search->marks->softmax,
                                  .marks = 1u << SOFTMAX};
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];

        if (!is_stored(holding) ||
            mt_stack_mark(&search->marks->softmax, holding->stack) != SOFTMAX ||
            !is_matrix(symbols, holding->stack))
            continue;
        mt_finding_mark(search, i);
        finding.bytes += holding->bytes;
        blocks += holding->blocks;
        largest_block_bytes = mt_max_u64(largest_block_bytes, holding->block_bytes);
        if (!largest)
            largest = holding;
    }
    if (!mt_finding_matters(finding.bytes, peak) ||
        finding.bytes < peak / ATTENTION_MATRICES_MIN_SHARE)
        return MT_OK;
    const char *label = mt_site_label(arena, symbols, largest->stack, false);
    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: matrices that attention stores, in %s",
                        mt_format_bytes(n[0], finding.bytes),
                        mt_format_percent(n[1], (double)finding.bytes / (double)peak), label);
    evidence[0] =
        mt_arena_printf(arena, "%s of up to %s; scores and masks of that size are not counted",
                        mt_format_counted(n[0], blocks, "softmax result"),
                        mt_format_bytes(n[1], largest_block_bytes));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_attention_matrices = {.find = find_attention_matrices};
