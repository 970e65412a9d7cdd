/* A layer that is most of the model: one or two parameters of a size, with other blocks of that
 * size at the peak, which are gradients, the optimizer's state and its temporaries. Only the size
 * connects them, so the text counts them and does not attribute them to the layer. The layer's
 * output is not included: a trace has no shapes. */
#include "finding.h"

#include <string.h>

#include "frame_judge.h"
#include "site.h"
#include "units.h"
#include "util.h"

enum {
    MIN_SHARE = 4,        /* of the peak */
    PARAMETERS_SHARE = 2, /* of all parameters: the model does not consist of such layers */
    MAX_PARAMETERS = 2,   /* of one size: an embedding, and an equally large output layer, */
    MIN_OTHERS = 8        /* with layers between them: parameters of other sizes */
};

/* The blocks of one size. */
struct layer {
    uint64_t each_bytes; /* requested */
    uint64_t bytes, parameter_bytes;
    uint64_t blocks[MT_ROLE_COUNT];
    uint64_t others; /* parameters of other sizes */
    uint32_t stack;  /* of the parameters */
};

static uint64_t each_of(const struct mt_holding *holding)
{
    return holding->requested_bytes / holding->blocks;
}

static bool is_counted(enum mt_role role)
{
    return role == MT_ROLE_PARAMETERS || role == MT_ROLE_GRADIENTS ||
           role == MT_ROLE_OPTIMIZER_STATE || role == MT_ROLE_TEMPORARIES;
}

static struct layer layer_of(const struct mt_instant *peak, uint64_t each_bytes)
{
    struct layer layer = {.each_bytes = each_bytes, .stack = MT_NO_ID};

    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const struct mt_holding *holding = &peak->holdings[i];
        if (each_of(holding) != each_bytes) {
            layer.others += holding->role == MT_ROLE_PARAMETERS ? holding->blocks : 0;
            continue;
        }
        if (!is_counted(holding->role))
            continue;
        layer.bytes += holding->bytes;
        layer.blocks[holding->role] += holding->blocks;
        if (holding->role != MT_ROLE_PARAMETERS)
            continue;
        layer.parameter_bytes += holding->bytes;
        layer.stack = holding->stack;
    }
    return layer;
}

/* The largest of the parameters. */
static struct layer largest_layer(const struct mt_instant *peak)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < peak->holding_count; i++)
        if (peak->holdings[i].role == MT_ROLE_PARAMETERS)
            most = mt_max_u64(most, each_of(&peak->holdings[i]));
    return layer_of(peak, most);
}

/* The class that made the parameter, if its __init__ is in the stack: if it was made on the device,
 * not moved there. */
static const char *kind_of(const struct mt_symbols *symbols, uint32_t stack)
{
    static const struct {
        const char *file, *kind;
    } kinds[] = {{"torch/nn/modules/sparse.py", "an embedding"},
                 {"torch/nn/modules/linear.py", "a linear layer"}};

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        const char *file = mt_symbols_text(symbols, frame->file);
        for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++)
            if (mt_path_has(file, kinds[i].file) &&
                strcmp(mt_symbols_text(symbols, frame->function), "__init__") == 0)
                return kinds[i].kind;
    }
    return NULL;
}

/* If the kind of layer is unknown. */
static const struct mt_framework_texts ways = {
    {[MT_FRAMEWORK_UNKNOWN] = "for an embedding: fewer or shorter rows; for an output layer: reuse "
                              "the embedding's weight, or adaptive or sampled softmax",
     [MT_FRAMEWORK_TORCH] =
         "for an embedding: sparse=True (with SGD or SparseAdam), so that only used rows have "
         "gradients; for an output layer: reuse the embedding's weight, or adaptive or sampled "
         "softmax",
     [MT_FRAMEWORK_TENSORFLOW] = "for an embedding: fewer or shorter rows; for an output layer: "
                                 "reuse the embedding's weight, or tf.nn.sampled_softmax_loss"}};

static const struct mt_framework_texts sharding = {
    {[MT_FRAMEWORK_UNKNOWN] = "for either: shard it over the devices",
     [MT_FRAMEWORK_TORCH] = "for either: shard it over the ranks (FSDP, TorchRec)",
     [MT_FRAMEWORK_JAX] = "for either: shard it over the devices (jax.sharding)",
     [MT_FRAMEWORK_TENSORFLOW] = "for either: shard it over the devices (tf.distribute)"}};

/* `kind`: of PyTorch's modules. */
static const char *advice_for(const struct mt_finding_search *search, const char *kind)
{
    const char *way = mt_framework_text(search, &ways),
               *shard = mt_framework_text(search, &sharding);

    if (kind && strcmp(kind, "an embedding") == 0) {
        way = "sparse=True (with SGD or SparseAdam), so that only used rows have gradients; fewer "
              "or shorter rows";
        shard = "or shard the table over the ranks (TorchRec, FSDP)";
    } else if (kind) {
        way = "adaptive or sampled softmax, or a low-rank layer; reuse the embedding's weight if "
              "it is as large";
        shard = "or shard it over the ranks (FSDP)";
    }
    return mt_run_is_sharded(search)
               ? way
               : mt_arena_printf(&search->analysis->report->arena, "%s; %s", way, shard);
}

static const char *tell_blocks(struct mt_arena *arena, const struct layer *layer)
{
    const uint64_t *blocks = layer->blocks;
    char n[4][MT_UNITS_TEXT];

    return mt_arena_printf(arena,
                           "blocks of this size, by role: parameters %s, gradients %s, optimizer "
                           "state %s, temporaries %s",
                           mt_format_count(n[0], blocks[MT_ROLE_PARAMETERS]),
                           mt_format_count(n[1], blocks[MT_ROLE_GRADIENTS]),
                           mt_format_count(n[2], blocks[MT_ROLE_OPTIMIZER_STATE]),
                           mt_format_count(n[3], blocks[MT_ROLE_TEMPORARIES]));
}

static const char *tell_origin(const struct mt_finding_search *search, const struct layer *layer,
                               const char *kind)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *label =
        mt_site_label(arena, &search->analysis->source->symbols, layer->stack, false);

    return kind ? mt_arena_printf(arena, "created by %s: %s", kind, label)
                : mt_arena_printf(arena,
                                  "the recording does not show which module created it; it reached "
                                  "the device at %s",
                                  label);
}

/* One parameter, or the two ends of a model. A block that has all parameters is no layer: flat
 * parameters, or a program of one operation, which may have one more, small input. */
static bool is_layer(const struct layer *layer, uint64_t parameter_bytes)
{
    const uint64_t parameters = layer->blocks[MT_ROLE_PARAMETERS];
    const uint64_t other_bytes = parameter_bytes - layer->parameter_bytes;

    return (parameters == 1 &&
            (layer->others > 1 || (layer->others && other_bytes >= parameter_bytes / 100))) ||
           (parameters == MAX_PARAMETERS && layer->others >= MIN_OTHERS);
}

/* A benchmark of an operation has no model: its inputs are the kept blocks. */
static bool has_model(const struct mt_finding_search *search)
{
    const struct mt_role_clock *roles = &search->analysis->survey.roles;

    return search->analysis->report->is_driver_level || roles->now.calls || roles->moves_models;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes,
                   parameters = device->peak_role_bytes[MT_ROLE_PARAMETERS];
    const char *evidence[3];
    char n[3][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "large-layer", .severity = "info", .evidence = evidence, .evidence_count = 3};

    if (!search->analysis->report->saw_backward || !device->instant_count || !has_model(search))
        return MT_OK;
    struct layer layer = largest_layer(&device->instants[0]);
    if (!is_layer(&layer, parameters) || layer.parameter_bytes < parameters / PARAMETERS_SHARE ||
        !mt_finding_matters(layer.bytes, peak) || layer.bytes < peak / MIN_SHARE)
        return MT_OK;
    const char *kind = kind_of(&search->analysis->source->symbols, layer.stack);
    finding.bytes = layer.bytes;
    search->scope.each_bytes = layer.each_bytes;
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        search->scope.roles |= is_counted((enum mt_role)role) ? 1u << role : 0;
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++)
        if (each_of(&device->instants[0].holdings[i]) == layer.each_bytes &&
            is_counted(device->instants[0].holdings[i].role))
            mt_finding_mark(search, i);
    finding.advice = advice_for(search, kind);
    bool is_one = layer.blocks[MT_ROLE_PARAMETERS] == 1;
    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: the %s and other blocks of %s size, %s each",
                        mt_format_bytes(n[0], layer.bytes),
                        mt_format_percent(n[1], (double)layer.bytes / (double)peak),
                        is_one ? "largest parameter" : "two largest parameters",
                        is_one ? "its" : "their", mt_format_bytes(n[2], layer.each_bytes));
    evidence[0] = tell_blocks(arena, &layer);
    evidence[1] = tell_origin(search, &layer, kind);
    evidence[2] =
        mt_arena_printf(arena, "all parameters together: %s", mt_format_bytes(n[0], parameters));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_large_layer = {.find = find};
