/* Groups of layers come from the calls of the model, their parameters from the order in which they
 * were made (module_identity.h); then every block is assigned to its row. */
#include "module_table.h"

#include "buf.h"
#include "grow.h"
#include "module_identity.h"
#include "process_memory.h"
#include "sorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups and rows that are distinguished; blocks beyond count as unknown. */
#define MAX_GROUPS 256u
#define MAX_ROWS   4096u

/* A row without a recorded path. */
#define BESIDE_LAYERS "(outside of layers)"
#define UNKNOWN       "(not known)"

struct group {
    uint32_t first;    /* number of the first layer */
    bool is_ambiguous; /* another one has the same name */
    const char *name;  /* as shown */
    uint64_t activation_bytes;
};

struct table {
    struct mt_arena *arena; /* the report's */
    struct mt_arena words;
    const struct mt_module_input *input;
    bool *has_ranges; /* by log: the program numbers layers in it */
    struct mt_module_namer namer;

    struct group *names; /* parallel to groups; one more for layers without calls */
    struct mt_layer_group *groups;
    uint32_t group_count;
    struct mt_strings paths;
    struct mt_map group_of_body; /* node of the body -> group */

    struct mt_module_numbers numbers;

    struct mt_map known_paths; /* call and node -> module_paths */
    const char **module_paths;
    uint32_t module_path_count;
    size_t module_path_capacity;

    struct mt_strings labels; /* of rows */
    struct mt_module_row *rows;
    size_t row_capacity;
    uint32_t row_count;
};

/* Whether a module is called on the way from the function of `body` to `node`. */
static bool calls_module(const struct table *table, uint32_t body, uint32_t node)
{
    const struct mt_python_node *nodes = table->input->logs->tree.nodes;

    for (uint32_t at = node; at != MT_NO_ID && at != nodes[body].parent; at = nodes[at].parent)
        if (mt_forward_logs_is_call(table->input->logs, at))
            return true;
    return false;
}

static void add_group(struct table *table, const struct mt_forward_log *log, uint32_t module,
                      uint32_t *group)
{
    uint32_t before = table->paths.count;
    const char *path = mt_module_path(&table->namer, log->call, module, true, true);

    mt_strings_put(&table->paths, path, strlen(path), group);
    if (*group != before || *group >= MAX_GROUPS)
        return;
    path = mt_module_path(&table->namer, log->call, module, false, true);
    table->names[*group] = (struct group){.name = path};
    table->group_count = *group + 1;
}

/* A body is a group of layers if it calls modules. It has the name of the first function of the
 * model's own code in it: bodies with the same function at the same line are one group. */
static void look_at_call(struct table *table, const struct mt_forward_log *log, uint32_t index)
{
    uint32_t body = log->calls[index].body, node = log->nodes[index];
    uint32_t module = mt_module_of_body(&table->namer, body, node), group;

    if (module == MT_NO_ID || !calls_module(table, body, node))
        return;
    add_group(table, log, module, &group);
    mt_map_put(&table->group_of_body, body, group);
}

/* The call did not end, and was in that body. */
static bool is_cut_in(const struct mt_forward_log *log, uint32_t body)
{
    return log->is_open && log->calls[log->count - 1].body == body;
}

/* A completed call gives the number of entries; an incomplete one, a minimum. */
static void count_entries(struct mt_layer_group *group, const struct mt_forward_log *log,
                          struct mt_module_call call)
{
    bool is_cut = is_cut_in(log, call.body);

    if (call.times > group->times || (call.times == group->times && !is_cut)) {
        group->times = call.times;
        group->is_cut = is_cut;
        group->call = log->call;
    }
}

static void add_range(struct table *table, uint32_t call, const struct mt_module_range *range)
{
    uint32_t before = table->paths.count, id;

    mt_strings_put(&table->paths, range->path, strlen(range->path), &id);
    if (id >= MAX_GROUPS)
        return;
    struct group *group = &table->names[id];
    if (id == before) {
        *group = (struct group){.first = range->layer, .name = table->paths.texts[id]};
        table->groups[id].call = call;
        table->group_count = id + 1;
    }
    if (range->layer < group->first) {
        table->groups[id].times += group->first - range->layer;
        group->first = range->layer;
    }
    if (range->layer - group->first >= table->groups[id].times)
        table->groups[id].times = range->layer - group->first + 1;
}

/* Ranges that the program numbers are layers: in a call with such ranges, functions are not
 * used. */
static void look_at_ranges(struct table *table, uint32_t index)
{
    const struct mt_forward_log *log = &table->input->logs->logs[index];

    for (uint32_t i = 0; i < log->count; i++) {
        if (i && log->phases[i] == log->phases[i - 1])
            continue;
        struct mt_module_range range =
            mt_module_range_of(&table->words, table->input->phases, log, log->phases[i]);
        if (range.layer == MT_NO_ID)
            continue;
        table->has_ranges[index] = true;
        add_range(table, log->call, &range);
    }
}

static void look_at_log(struct table *table, const struct mt_forward_log *log)
{
    for (uint32_t i = 0; i < log->count; i++)
        if (log->calls[i].body != MT_NO_ID &&
            mt_map_get(&table->group_of_body, log->calls[i].body) == MT_MAP_NONE)
            look_at_call(table, log, i);
    for (uint32_t i = 0; i < log->count; i++) {
        uint32_t group = log->calls[i].body == MT_NO_ID
                             ? MT_MAP_NONE
                             : mt_map_get(&table->group_of_body, log->calls[i].body);

        if (group < table->group_count)
            count_entries(&table->groups[group], log, log->calls[i]);
    }
}

/* Two groups with one name are shown with the lines that distinguish them. */
static void tell_apart(struct table *table)
{
    for (uint32_t i = 0; i < table->group_count; i++)
        for (uint32_t j = 0; j < table->group_count; j++)
            if (j != i && !strcmp(table->names[i].name, table->names[j].name))
                table->names[i].is_ambiguous = true;
    for (uint32_t i = 0; i < table->group_count; i++)
        if (table->names[i].is_ambiguous)
            table->names[i].name = table->paths.texts[i];
}

/* Whether calls of the model show modules that it calls. Those of a compiled model do not. */
static bool shows_modules(const struct table *table)
{
    for (uint32_t i = 0; i < table->input->logs->count; i++)
        for (uint32_t j = 0; j < table->input->logs->logs[i].count; j++)
            if (mt_forward_logs_is_inner(table->input->logs, table->input->logs->logs[i].nodes[j]))
                return true;
    return false;
}

static void find_groups(struct table *table)
{
    table->names = mt_memory_zeroed(MAX_GROUPS + 1, sizeof *table->names);
    table->groups = mt_memory_zeroed(MAX_GROUPS, sizeof *table->groups);
    table->has_ranges =
        mt_memory_zeroed((size_t)table->input->logs->count + 1, sizeof *table->has_ranges);
    for (uint32_t i = 0; i < table->input->logs->count; i++) {
        look_at_ranges(table, i);
        if (!table->has_ranges[i] && table->input->logs->logs[i].calls)
            look_at_log(table, &table->input->logs->logs[i]);
    }
    tell_apart(table);
    table->names[table->group_count] = (struct group){.name = "layer"};
}

/* The key that determines the row of a block. */
struct row_key {
    enum mt_module_kind kind;
    const char *path;
    uint32_t layer, group;
};

static struct row_key unknown(void)
{
    return (struct row_key){MT_MODULE_UNKNOWN, UNKNOWN, MT_NO_LAYER, 0};
}

static struct row_key of_layer(const struct table *table, uint32_t group, uint32_t layer)
{
    return (struct row_key){MT_MODULE_LAYER, table->names[group].name, layer, group};
}

static bool has_layers(const struct table *table)
{
    bool has = table->numbers.own_layers > 0;

    for (uint32_t i = 0; i < table->group_count; i++)
        has |= table->groups[i].is_confirmed;
    return has;
}

/* A role may be wrong: a block kept by a model's call or a metric is not a parameter. */
static bool is_made_with_model(const struct table *table, uint32_t number)
{
    const struct mt_module_block *block = &table->input->blocks[table->numbers.order[number]];

    return !block->is_initial &&
           mt_forward_logs_kind(table->input->logs, block->stack) == MT_PHASE_SETUP;
}

/* Outside of layers, if there are layers and the order of the parameters is known. */
static struct row_key of_parameter(const struct table *table, uint32_t number)
{
    if (number == MT_NO_ID)
        return unknown();
    const struct mt_parameter *parameter = &table->numbers.parameters[number];
    if (parameter->layer != MT_NO_LAYER)
        return of_layer(table, parameter->group,
                        table->names[parameter->group].first + parameter->layer);
    if (!has_layers(table) || parameter->is_repeated || !is_made_with_model(table, number))
        return unknown();
    return (struct row_key){MT_MODULE_BESIDE, BESIDE_LAYERS, MT_NO_LAYER, 0};
}

/* The module with the code of `node`. Many blocks share a node, so it is made once. */
static const char *module_path(struct table *table, uint32_t call, uint32_t node)
{
    uint64_t key = (uint64_t)call << 32 | node;
    uint32_t known = mt_map_get(&table->known_paths, key);

    if (known != MT_MAP_NONE)
        return table->module_paths[known];
    const char *path = mt_module_path(&table->namer, call, node, false, false);
    if (!path)
        return NULL;
    mt_grow_to(&table->module_paths, &table->module_path_capacity,
               (size_t)table->module_path_count + 1, sizeof *table->module_paths);
    mt_map_put(&table->known_paths, key, table->module_path_count);
    table->module_paths[table->module_path_count++] = path;
    return path;
}

/* From the program's ranges; a NULL path in the key: none. */
static void of_range(struct table *table, struct mt_forward_position place, struct row_key *key)
{
    const struct mt_forward_log *log = &table->input->logs->logs[place.log];
    struct mt_module_range range =
        mt_module_range_of(&table->words, table->input->phases, log, log->phases[place.at]);

    *key = (struct row_key){MT_MODULE_OTHER, NULL, MT_NO_LAYER, 0};
    uint32_t group = mt_strings_find(&table->paths, range.path, strlen(range.path));
    if (range.layer != MT_NO_ID && group < table->group_count)
        *key = of_layer(table, group, range.layer);
    else if (*range.path)
        key->path = range.path;
}

/* Whether the n-th entry of this call into a body of the group enters the n-th layer. A call with
 * fewer entries skipped layers, is a part of a call, or is of another model of the class. */
static bool enters_all(const struct table *table, uint32_t group, const struct mt_forward_log *log,
                       struct mt_module_call call)
{
    uint32_t times = table->groups[group].times;

    return call.times == times || (call.times < times && is_cut_in(log, call.body) &&
                                   table->groups[group].call == log->call);
}

/* A block of a model's call: in the layer that the call entered, otherwise in the module of the
 * code. */
static void of_call(struct table *table, struct mt_forward_position place, struct row_key *key)
{
    const struct mt_forward_log *log = &table->input->logs->logs[place.log];
    struct mt_module_call call = mt_forward_logs_call(table->input->logs, place);
    uint32_t group =
        call.body == MT_NO_ID ? MT_MAP_NONE : mt_map_get(&table->group_of_body, call.body);

    if (table->has_ranges[place.log]) {
        of_range(table, place, key);
        if (key->path)
            return;
    }
    if (group < table->group_count && table->groups[group].is_confirmed &&
        enters_all(table, group, log, call)) {
        *key = of_layer(table, group, call.entry);
        return;
    }
    const char *path = module_path(table, log->call, log->nodes[place.at]);
    *key = *path ? (struct row_key){MT_MODULE_OTHER, path, MT_NO_LAYER, 0} : unknown();
}

/* For the repeated function that the call was in. */
static void count_activations(struct table *table, const struct mt_module_block *block)
{
    const struct mt_module_call call = mt_forward_logs_call(table->input->logs, block->place);
    struct row_key key = {.group = MT_MAP_NONE};

    if (table->has_ranges[block->place.log]) {
        of_range(table, block->place, &key);
        if (key.kind != MT_MODULE_LAYER)
            return;
    } else if (call.body != MT_NO_ID) {
        key.group = mt_map_get(&table->group_of_body, call.body);
    }
    if (key.group < table->group_count)
        table->names[key.group].activation_bytes += block->block_bytes;
}

static struct row_key of_outside(const struct table *table, const struct mt_module_block *block)
{
    const char *path = NULL;

    if (block->role == MT_ROLE_INPUTS)
        path = "(inputs)";
    else if (block->role == MT_ROLE_WORKSPACE)
        path = "(libraries)";
    else if (mt_forward_logs_kind(table->input->logs, block->stack) == MT_PHASE_OPTIMIZER)
        path = "(optimizer)";
    else if (mt_forward_logs_kind(table->input->logs, block->stack) == MT_PHASE_LOSS)
        path = "(loss)";
    return path ? (struct row_key){MT_MODULE_OUTSIDE, path, MT_NO_LAYER, 0} : unknown();
}

static void find_key(struct table *table, size_t index, struct row_key *key)
{
    const struct mt_module_block *block = &table->input->blocks[index];

    switch ((enum mt_role)block->role) {
    case MT_ROLE_PARAMETERS:
    case MT_ROLE_GRADIENTS:
    case MT_ROLE_OPTIMIZER_STATE: *key = of_parameter(table, table->numbers.number[index]); return;
    case MT_ROLE_INPUTS:
    case MT_ROLE_WORKSPACE: *key = of_outside(table, block); return;
    default: break;
    }
    if (block->place.log != MT_NO_ID) {
        of_call(table, block->place, key);
        return;
    }
    *key = of_outside(table, block);
}

static void find_row(struct table *table, struct row_key key, struct mt_module_row **row)
{
    char number[16] = "";
    struct mt_buf label = {0};
    uint32_t id, before = table->labels.count;

    if (key.layer != MT_NO_LAYER)
        snprintf(number, sizeof number, "[%u]", key.layer);
    mt_buf_printf(&label, "%s%s", key.path, number);
    mt_strings_put(&table->labels, label.data, label.length, &id);
    mt_buf_release(&label);
    if (id == before) {
        mt_grow_to(&table->rows, &table->row_capacity, (size_t)id + 1, sizeof *table->rows);
        table->rows[id] = (struct mt_module_row){.kind = key.kind,
                                                 .path = key.path,
                                                 .label = table->labels.texts[id],
                                                 .layer = key.layer,
                                                 .group = key.group};
        table->row_count = id + 1;
    }
    *row = &table->rows[id];
}

static void add_block(struct table *table, size_t index)
{
    const struct mt_module_block *block = &table->input->blocks[index];
    struct mt_module_row *row;
    struct row_key key;

    find_key(table, index, &key);
    if (table->row_count >= MAX_ROWS)
        key = unknown();
    find_row(table, key, &row);
    row->role_bytes[block->role] += block->block_bytes;
    row->role_requested_bytes[block->role] += block->requested_bytes;
    row->bytes += block->block_bytes;
    row->requested_bytes += block->requested_bytes;
    row->blocks++;
    if (block->role == MT_ROLE_ACTIVATIONS && block->place.log != MT_NO_ID)
        count_activations(table, block);
}

/* Layers in the order of the model. */
static int by_kind(const void *a, const void *b)
{
    const struct mt_module_row *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind != MT_MODULE_LAYER && x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->layer > y->layer) - (x->layer < y->layer);
}

static void hand_over(struct table *table, struct mt_modules *modules)
{
    if (table->row_count)
        qsort(table->rows, table->row_count, sizeof *table->rows, by_kind);
    modules->rows =
        mt_arena_array(table->arena, (size_t)table->row_count + 1, sizeof *modules->rows);
    for (uint32_t i = 0; i < table->row_count; i++) {
        struct mt_module_row *row = &modules->rows[i];

        *row = table->rows[i];
        row->path = mt_arena_text(table->arena, row->path, strlen(row->path));
        row->label = mt_arena_text(table->arena, row->label, strlen(row->label));
        modules->layer_count += row->kind == MT_MODULE_LAYER;
    }
    modules->row_count = table->row_count;
}

MT_DEFINE_ORDER(by_activations, struct mt_module_repeat,
                MT_DESCENDING(activation_bytes) || MT_BY_TEXT(path))

static void hand_over_repeats(const struct table *table, struct mt_modules *modules)
{
    modules->repeats =
        mt_arena_array(table->arena, (size_t)table->group_count + 1, sizeof *modules->repeats);
    for (uint32_t i = 0; i < table->group_count; i++) {
        const struct group *group = &table->names[i];

        if (group->activation_bytes && table->groups[i].times > 1)
            modules->repeats[modules->repeat_count++] = (struct mt_module_repeat){
                mt_arena_text(table->arena, group->name, strlen(group->name)),
                table->groups[i].times, group->activation_bytes};
    }
    if (modules->repeat_count)
        qsort(modules->repeats, modules->repeat_count, sizeof *modules->repeats, by_activations);
}

static void make(struct table *table, struct mt_modules *modules)
{
    find_groups(table);
    mt_module_numbers_find(&table->numbers, table->groups, table->group_count,
                           shows_modules(table));
    for (size_t i = 0; i < table->input->count; i++)
        if (table->input->blocks[i].is_live)
            add_block(table, i);
    hand_over(table, modules);
    hand_over_repeats(table, modules);
}

static void release(struct table *table)
{
    mt_arena_release(&table->words);
    mt_strings_release(&table->paths);
    mt_strings_release(&table->labels);
    mt_map_release(&table->group_of_body);
    mt_map_release(&table->known_paths);
    free(table->module_paths);
    free(table->has_ranges);
    mt_module_numbers_release(&table->numbers);
    free(table->names);
    free(table->groups);
    free(table->rows);
}

void mt_modules_make(struct mt_arena *arena, const struct mt_module_input *input,
                     struct mt_modules *modules)
{
    struct table table = {.arena = arena, .input = input, .numbers = {.input = input}};

    table.namer = (struct mt_module_namer){&table.words, input->symbols, &input->logs->tree,
                                           &input->logs->sites};
    make(&table, modules);
    release(&table);
}
