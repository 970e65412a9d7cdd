/* Which module and which parameter a block belongs to: modules by the names of ranges, parameters
 * by the order in which they were made. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "forward_logs.h"
#include "frame_judge.h"
#include "holding.h"
#include "module_identity.h"
#include "parameter_layers.h"
#include "phases.h"
#include "process_memory.h"
#include "python_tree.h"
#include "site.h"
#include "sorted.h"

/* The names of modules, and which ranges are those of modules. */

/* Deeper ranges are those of operators. */
#define MAX_RANGES 16
/* Larger numbers are not layers. */
#define MAX_LAYER 9999u

static bool parts(char c)
{
    return c && strchr("._-[(#:/ ", c);
}

const char *mt_layer_number(const char *name, uint32_t *layer, size_t *length)
{
    for (const char *at = name; *at; at++) {
        const char *end = at;
        uint32_t number = 0;

        if (!mt_is_digit(*at) || at == name || !parts(at[-1]))
            continue;
        while (mt_is_digit(*end) && number <= MAX_LAYER)
            number = number * 10 + (uint32_t)(*end++ - '0');
        if (number > MAX_LAYER || mt_is_alnum(*end))
            continue;
        *layer = number;
        *length = (size_t)(at - name);
        while (*length && parts(name[*length - 1]))
            --*length;
        return *length ? at : NULL;
    }
    return NULL;
}

/* Whether it begins before the call and ends after it. */
static bool is_around(const struct mt_phase *phase, const struct mt_forward_log *log)
{
    return phase->begin_event < log->first_event && phase->end_event > log->last_event;
}

/* Names within the call, innermost first. */
static size_t find_names(const struct mt_phases *phases, const struct mt_forward_log *log,
                         int32_t phase, const char *names[MAX_RANGES])
{
    size_t count = 0;

    for (; phase != MT_NO_PHASE && count < MAX_RANGES; phase = phases->phases[phase].parent) {
        const struct mt_phase *range = &phases->phases[phase];

        if (range->is_step || is_around(range, log))
            break;
        if (range->source == MT_PHASE_ANNOTATED && !range->is_plumbing)
            names[count++] = range->name;
    }
    return count;
}

/* Hooks use full names of modules: "model.layers" is in "model.layers.3". */
static const char *add_name(struct mt_arena *arena, const char *path, const char *name,
                            size_t length)
{
    size_t outer = strlen(path);

    if (!outer || (!strncmp(name, path, outer) && name[outer] == '.'))
        return mt_arena_text(arena, name, length);
    return mt_arena_printf(arena, "%s/%.*s", path, (int)length, name);
}

struct mt_module_range mt_module_range_of(struct mt_arena *arena, const struct mt_phases *phases,
                                          const struct mt_forward_log *log, int32_t phase)
{
    const char *names[MAX_RANGES];
    size_t count = find_names(phases, log, phase, names);
    struct mt_module_range range = {"", MT_NO_ID};

    while (count-- > 0 && range.path && range.layer == MT_NO_ID) {
        size_t length = strlen(names[count]);

        (void)mt_layer_number(names[count], &range.layer, &length);
        range.path = add_name(arena, range.path, names[count], length);
    }
    return range;
}

/* Deeper chains keep their inner part. */
#define MAX_NAMED 8

static uint32_t frame_of(const struct mt_module_namer *namer, uint32_t node)
{
    return namer->symbols->stacks[node].frame;
}

/* A nested function is a wrapper of something else. */
static bool speaks(const struct mt_module_namer *namer, uint32_t node)
{
    uint32_t frame = frame_of(namer, node);
    const char *function = mt_symbols_text(namer->symbols, namer->symbols->frames[frame].function);

    return mt_site_table_rank(namer->sites, frame) == MT_RANK_CODE && !strstr(function, "<locals>");
}

/* Length of the class: "LlamaMLP.forward" is LlamaMLP. */
static size_t class_length(const char *function)
{
    static const char *const methods[] = {".forward", ".__call__", ".__init__"};
    size_t length = strlen(function);

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t method = strlen(methods[i]);

        if (length > method && !strcmp(function + length - method, methods[i]))
            return length - method;
    }
    return length;
}

static const char *element(const struct mt_module_namer *namer, uint32_t node, bool with_line)
{
    struct mt_arena *arena = namer->arena;
    uint32_t frame = frame_of(namer, node);
    const char *function = mt_frame_function(arena, namer->symbols, frame);
    const char *place = mt_frame_position(arena, namer->symbols, frame);
    size_t length = class_length(function);

    if (strchr(function, '.') && !with_line)
        return mt_arena_text(arena, function, length);
    if (strchr(function, '.'))
        return mt_arena_printf(arena, "%.*s:%u", (int)length, function,
                               namer->symbols->frames[frame].line);
    if (!strcmp(function, "forward") && *place)
        return place;
    return *place ? mt_arena_printf(arena, "%s %s", function, place) : function;
}

/* An outer method of the class adds nothing: "Net/Net.features/Block" is "Net/Block". */
static const char *join(struct mt_arena *arena, const char *outer, const char *path)
{
    size_t length = strlen(outer);
    const char *inner = strchr(path, '/');

    if (!strncmp(path, outer, length) && path[length] == '.')
        path = inner ? inner + 1 : "";
    return *path ? mt_arena_printf(arena, "%s/%s", outer, path) : outer;
}

const char *mt_module_path(const struct mt_module_namer *namer, uint32_t call, uint32_t node,
                           bool with_lines, bool names_last)
{
    const char *path = "";
    uint32_t named = 0;

    for (uint32_t at = node; at != MT_NO_ID && at != call && named < MAX_NAMED;
         at = namer->tree->nodes[at].parent) {
        if (!speaks(namer, at) && !(names_last && at == node))
            continue;
        const char *name = element(namer, at, with_lines && at != node);
        if (!name)
            return NULL;
        path = *path ? join(namer->arena, name, path) : name;
        if (!path)
            return NULL;
        named++;
    }
    return path;
}

uint32_t mt_module_of_body(const struct mt_module_namer *namer, uint32_t body, uint32_t node)
{
    uint32_t outside = namer->tree->nodes[body].parent, own = MT_NO_ID;

    for (uint32_t at = node; at != MT_NO_ID && at != outside; at = namer->tree->nodes[at].parent)
        if (speaks(namer, at))
            own = at;
    return own;
}

struct by_birth {
    uint64_t event;
    uint32_t block;
};

MT_DEFINE_ORDER(by_birth, struct by_birth, MT_ASCENDING(event) || MT_ASCENDING(block))

/* Live blocks of a role, into order[]. */
static void list_role(const struct mt_module_numbers *numbers, enum mt_role role, uint32_t *order,
                      size_t *count)
{
    struct by_birth *list = mt_memory_zeroed(numbers->input->count + 1, sizeof *list);

    *count = 0;
    for (size_t i = 0; i < numbers->input->count; i++)
        if (numbers->input->blocks[i].is_live && numbers->input->blocks[i].role == role)
            list[(*count)++] =
                (struct by_birth){numbers->input->blocks[i].birth_event, (uint32_t)i};
    qsort(list, *count, sizeof *list, by_birth);
    for (size_t i = 0; i < *count; i++)
        order[i] = list[i].block;
    free(list);
}

/* The line at which the framework moves a module's tensors; 0: it was not moved. */
static uint32_t moving_line(const struct mt_module_numbers *numbers, uint32_t node)
{
    const struct mt_symbols *symbols = numbers->input->symbols;

    for (; node != MT_NO_ID; node = numbers->input->logs->tree.nodes[node].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[node].frame];

        if (strstr(mt_symbols_text(symbols, frame->function), "_apply") &&
            mt_path_has(mt_symbols_text(symbols, frame->file), "torch/nn/modules/module.py"))
            return frame->line;
    }
    return 0;
}

/* A module's buffers are moved after its parameters, on a later line of one function. */
static void find_buffers(struct mt_module_numbers *numbers)
{
    uint32_t first = UINT32_MAX;

    if (numbers->parameter_count > MT_REPEATS_TOKENS_MAX)
        return; /* layers are not needed */
    for (size_t i = 0; i < numbers->parameter_count; i++) {
        uint32_t line = moving_line(numbers, numbers->parameters[i].node);

        if (line && line < first)
            first = line;
    }
    for (size_t i = 0; i < numbers->parameter_count; i++)
        numbers->parameters[i].is_buffer =
            moving_line(numbers, numbers->parameters[i].node) > first;
}

static void list_parameters(struct mt_module_numbers *numbers, struct mt_layer_group *groups,
                            uint32_t group_count, bool shows_modules)
{
    list_role(numbers, MT_ROLE_PARAMETERS, numbers->order, &numbers->parameter_count);
    numbers->parameters =
        mt_memory_zeroed(numbers->parameter_count + 1, sizeof *numbers->parameters);
    for (size_t i = 0; i < numbers->parameter_count; i++) {
        const struct mt_module_block *block = &numbers->input->blocks[numbers->order[i]];
        uint32_t node = mt_python_node_of(&numbers->input->logs->tree, block->stack);

        numbers->number[numbers->order[i]] = (uint32_t)i;
        numbers->parameters[i] = (struct mt_parameter){
            .requested_bytes = block->requested_bytes,
            .node = node,
            .depth = node == MT_NO_ID ? 0 : numbers->input->logs->tree.nodes[node].depth,
            .has_gradient = block->has_gradient,
            .gradient_event = block->gradient_event};
    }
    find_buffers(numbers);
    mt_parameter_layers_find(numbers->parameters, numbers->parameter_count, groups, group_count,
                             shows_modules ? NULL : &numbers->own_layers);
}

static void list_states(struct mt_module_numbers *numbers)
{
    uint32_t *order = numbers->order + numbers->parameter_count;

    list_role(numbers, MT_ROLE_OPTIMIZER_STATE, order, &numbers->state_count);
    numbers->states = mt_memory_zeroed(numbers->state_count + 1, sizeof *numbers->states);
    for (size_t i = 0; i < numbers->state_count; i++)
        numbers->states[i] = (struct mt_state_block){
            .requested_bytes = numbers->input->blocks[order[i]].requested_bytes,
            .node = mt_python_node_of(&numbers->input->logs->tree,
                                      numbers->input->blocks[order[i]].stack)};
    mt_state_owners_find(numbers->states, numbers->state_count, numbers->parameters,
                         numbers->parameter_count);
    for (size_t i = 0; i < numbers->state_count; i++)
        numbers->number[order[i]] = numbers->states[i].parameter;
}

/* A gradient's parameter may have been freed. */
static void number_gradients(struct mt_module_numbers *numbers)
{
    for (size_t i = 0; i < numbers->input->count; i++) {
        const struct mt_module_block *block = &numbers->input->blocks[i];

        if (!block->is_live || block->role != MT_ROLE_GRADIENTS || block->parameter == MT_NO_ID)
            continue;
        const struct mt_module_block *parameter = &numbers->input->blocks[block->parameter];
        if (parameter->is_live && parameter->birth_event == block->parameter_birth)
            numbers->number[i] = numbers->number[block->parameter];
    }
}

/* The previous parameter of that size that is not a buffer; MT_NO_ID. */
static uint32_t parameter_before(const struct mt_module_numbers *numbers, size_t number,
                                 uint64_t bytes)
{
    while (number-- > 0)
        if (!numbers->parameters[number].is_buffer &&
            numbers->parameters[number].requested_bytes == bytes)
            return (uint32_t)number;
    return MT_NO_ID;
}

static bool has_buffer(const struct mt_module_numbers *numbers, uint64_t bytes)
{
    if (numbers->parameter_count > MT_REPEATS_TOKENS_MAX)
        return false;
    for (size_t i = 0; i < numbers->parameter_count; i++)
        if (numbers->parameters[i].is_buffer && numbers->parameters[i].requested_bytes == bytes)
            return true;
    return false;
}

/* Ties take buffers for parameters. For a size that buffers also have, the first gradient is that
 * of the last parameter, and so on: backward runs in reverse. */
static void number_beside_buffers(struct mt_module_numbers *numbers)
{
    uint32_t *order = mt_memory_zeroed(numbers->input->count + 1, sizeof *order);
    size_t count = 0;

    list_role(numbers, MT_ROLE_GRADIENTS, order, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = numbers->input->blocks[order[i]].requested_bytes;
        size_t last = numbers->parameter_count;

        if (!has_buffer(numbers, bytes))
            continue;
        if (count > MT_REPEATS_TOKENS_MAX) { /* too many to search */
            numbers->number[order[i]] = MT_NO_ID;
            continue;
        }
        for (size_t j = i; j-- > 0 && last == numbers->parameter_count;)
            if (numbers->input->blocks[order[j]].requested_bytes == bytes)
                last = numbers->number[order[j]] == MT_NO_ID ? 0 : numbers->number[order[j]];
        numbers->number[order[i]] = parameter_before(numbers, last, bytes);
    }
    free(order);
}

void mt_module_numbers_find(struct mt_module_numbers *numbers, struct mt_layer_group *groups,
                            uint32_t group_count, bool shows_modules)
{
    numbers->order = mt_memory_zeroed(numbers->input->count + 1, sizeof *numbers->order);
    numbers->number = mt_memory_new((numbers->input->count + 1) * sizeof *numbers->number);
    memset(numbers->number, 0xFF, numbers->input->count * sizeof *numbers->number);
    list_parameters(numbers, groups, group_count, shows_modules);
    list_states(numbers);
    number_gradients(numbers);
    number_beside_buffers(numbers);
}

void mt_module_numbers_release(struct mt_module_numbers *numbers)
{
    free(numbers->order);
    free(numbers->parameters);
    free(numbers->states);
    free(numbers->number);
}
