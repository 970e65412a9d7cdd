/* The calls of a model: the stacks of the allocations in each, and the repeated functions that
 * follow from them. */
#include <stdlib.h>
#include <string.h>

#include "forward_logs.h"
#include "frame_judge.h"
#include "grow.h"
#include "process_memory.h"
#include "python_tree.h"
#include "site.h"
#include "sorted.h"
#include "work_kinds.h"

/* From the root inwards, one level of frames at a time. Splits the allocations of one line by the
 * called function, and those of a function by its lines, until it finds a function whose lines
 * repeat. */

/* Limits. Calls deeper below the model's call than MT_MODULE_CALL_DEPTH are not distinguished. A
 * sequence whose distinct stacks have more than MT_MODULE_CALL_CELLS frames in total is not
 * searched. */
#define MT_MODULE_CALL_DEPTH 128
#define MT_MODULE_CALL_CELLS (UINT64_C(1) << 22)

/* An allocation at one level. */
struct item {
    size_t index;      /* into nodes */
    uint64_t function; /* of the frame at this level */
    uint32_t node;     /* the line */
};

/* Control reaches a line. */
struct visit {
    uint32_t node;
    size_t first;   /* item */
    uint32_t times; /* total visits of that line */
};

/* Items that share all frames above `depth`. */
struct span {
    size_t begin, end;
    uint32_t depth;
};

struct search {
    const struct mt_python_tree *tree;
    const struct mt_symbols *symbols;
    struct mt_module_call *calls;
    const uint32_t **paths; /* by item's index: nodes from the root inwards */
    uint32_t *lengths;      /* of paths */
    struct item *items;
    struct visit *visits, *sorted; /* sorted: by node */
    uint32_t *counts;
    struct span *open;
    size_t open_count, open_capacity;
    bool is_cut;
    struct mt_arena arena;
    struct mt_map path_of_node; /* node -> index of an allocation that has it */
    uint64_t cells;
};

static uint64_t function_of(const struct search *search, uint32_t node)
{
    uint32_t id = search->symbols->stacks[node].frame;
    const struct mt_frame *frame = &search->symbols->frames[id];

    return (uint64_t)frame->function << 32 | frame->file;
}

/* Nodes below the root, outermost first. */
static enum mt_status find_path(struct search *search, uint32_t root, uint32_t node, size_t index)
{
    const struct mt_python_node *nodes = search->tree->nodes;
    uint32_t known = mt_map_get(&search->path_of_node, node);
    uint32_t *path;

    if (known != MT_MAP_NONE) {
        search->paths[index] = search->paths[known];
        search->lengths[index] = search->lengths[known];
        return MT_OK;
    }
    uint32_t length = nodes[node].depth - nodes[root].depth;
    search->cells += length;
    if (search->cells > MT_MODULE_CALL_CELLS)
        return MT_END;
    path = mt_arena_array(&search->arena, (size_t)length + 1, sizeof *path);
    search->paths[index] = path;
    search->lengths[index] = length < MT_MODULE_CALL_DEPTH ? length : MT_MODULE_CALL_DEPTH;
    for (uint32_t at = node; length > 0; at = nodes[at].parent)
        path[--length] = at;
    mt_map_put(&search->path_of_node, node, (uint32_t)index);
    return MT_OK;
}

static void push(struct search *search, struct span span)
{
    mt_grow_to(&search->open, &search->open_capacity, search->open_count + 1, sizeof *search->open);
    search->open[search->open_count++] = span;
}

MT_DEFINE_ORDER(by_function, struct item, MT_ASCENDING(function) || MT_ASCENDING(index))
MT_DEFINE_ORDER(by_line, struct item, MT_ASCENDING(node) || MT_ASCENDING(index))
MT_DEFINE_ORDER(by_node, struct visit, MT_ASCENDING(node) || MT_ASCENDING(first))

static size_t find_visits(struct search *search, const struct item *items, size_t count)
{
    size_t visits = 0;

    for (size_t i = 0; i < count; i++)
        if (!i || items[i].node != items[i - 1].node)
            search->visits[visits++] = (struct visit){items[i].node, i, 0};
    return visits;
}

/* Counts how often each line is reached; counts[] gets those of repeated lines. */
static size_t count_lines(struct search *search, size_t visits)
{
    size_t lines = 0;

    memcpy(search->sorted, search->visits, visits * sizeof *search->sorted);
    qsort(search->sorted, visits, sizeof *search->sorted, by_node);
    for (size_t i = 0, end; i < visits; i = end) {
        for (end = i; end < visits && search->sorted[end].node == search->sorted[i].node;)
            end++;
        for (size_t j = i; j < end; j++)
            search->sorted[j].times = (uint32_t)(end - i);
        if (end - i > 1)
            search->counts[lines++] = (uint32_t)(end - i);
    }
    return lines;
}

/* A line that is reached more often is in a loop of its own, with whole turns in each entry. A loop
 * that is left in the middle shows no entries, but a call that did not end may lack the last lines
 * of the last one. */
static bool are_turns(const struct search *search, size_t count, uint32_t times)
{
    const uint32_t *counts = search->counts;

    for (size_t i = 0; i < count; i++)
        if (counts[i] > times && counts[i] % times && !(search->is_cut && counts[i] == times + 1))
            return false;
    return true;
}

/* The count of most repeated lines; the smaller of two equally frequent ones. 0: none repeats. */
static uint32_t most_common(struct search *search, size_t count)
{
    uint32_t *counts = search->counts, common = 0;
    size_t most = 0;

    if (count < 2)
        return 0;
    qsort(counts, count, sizeof *counts, mt_ascending_u32);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && counts[end] == counts[i];)
            end++;
        if (end - i > most) {
            most = end - i;
            common = counts[i];
        }
    }
    return are_turns(search, count, common) ? common : 0;
}

/* The first visit of the first line that is reached `times` times, or one time more in a call that
 * did not end. */
static const struct visit *find_anchor(const struct search *search, size_t visits, uint32_t times)
{
    const struct visit *anchor = NULL;

    for (size_t i = 0; i < visits; i++) {
        const struct visit *line = &search->sorted[i];
        bool is_often = line->times == times || (search->is_cut && line->times == times + 1);

        if (is_often && (!anchor || line->first < anchor->first))
            anchor = line;
    }
    return anchor;
}

/* Lines that are reached once, before the first entry or after the last, are not part of the
 * loop. */
static size_t find_last_repeated(const struct search *search, size_t visits)
{
    size_t last = 0;

    for (size_t i = 0; i < visits; i++)
        if (search->sorted[i].times > 1 && search->sorted[i].first > last)
            last = search->sorted[i].first;
    return last;
}

static void number_entries(struct search *search, const struct item *items, size_t count,
                           const struct visit *anchor, size_t last)
{
    uint32_t entries = 0;
    size_t end;

    for (end = anchor->first; end < count; end++) {
        bool is_new = !end || items[end].node != items[end - 1].node;

        if (is_new && end > last)
            break;
        entries += is_new && items[end].node == anchor->node;
        search->calls[items[end].index] = (struct mt_module_call){anchor->node, entries - 1, 0};
    }
    for (size_t i = anchor->first; i < end; i++)
        search->calls[items[i].index].times = entries;
}

/* One function, called from one line: numbers its entries, or descends into each line. */
static void look_into(struct search *search, struct span span)
{
    struct item *items = search->items + span.begin;
    size_t count = span.end - span.begin, visits = find_visits(search, items, count);
    uint32_t times = most_common(search, count_lines(search, visits));

    if (times) {
        number_entries(search, items, count, find_anchor(search, visits, times),
                       find_last_repeated(search, visits));
        return;
    }
    qsort(items, count, sizeof *items, by_line);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && items[end].node == items[i].node;)
            end++;
        push(search, (struct span){span.begin + i, span.begin + end, span.depth + 1});
    }
}

/* Functions called from one line, one after another. */
static void part(struct search *search, struct span span)
{
    size_t kept = span.begin;

    for (size_t i = span.begin; i < span.end; i++) {
        size_t index = search->items[i].index;

        if (search->lengths[index] <= span.depth)
            continue;
        search->items[kept].index = index;
        search->items[kept].node = search->paths[index][span.depth];
        search->items[kept].function = function_of(search, search->items[kept].node);
        kept++;
    }
    span.end = kept;
    qsort(search->items + span.begin, span.end - span.begin, sizeof *search->items, by_function);
    for (size_t i = span.begin, end; i < span.end; i = end) {
        for (end = i; end < span.end && search->items[end].function == search->items[i].function;)
            end++;
        look_into(search, (struct span){i, end, span.depth});
    }
}

static enum mt_status begin(struct search *search, const struct mt_module_sequence *sequence)
{
    size_t count = sequence->count;
    enum mt_status status = MT_OK;

    search->paths = mt_memory_zeroed(count + 1, sizeof *search->paths);
    search->lengths = mt_memory_zeroed(count + 1, sizeof *search->lengths);
    search->items = mt_memory_zeroed(count + 1, sizeof *search->items);
    search->visits = mt_memory_zeroed(count + 1, sizeof *search->visits);
    search->sorted = mt_memory_zeroed(count + 1, sizeof *search->sorted);
    search->counts = mt_memory_zeroed(count + 1, sizeof *search->counts);
    for (size_t i = 0; i < count && !status; i++) {
        search->items[i].index = i;
        status = find_path(search, sequence->root, sequence->nodes[i], i);
    }
    if (status)
        return status;
    push(search, (struct span){0, count, 0});
    return MT_OK;
}

static void release(struct search *search)
{
    mt_arena_release(&search->arena);
    mt_map_release(&search->path_of_node);
    free(search->paths);
    free(search->lengths);
    free(search->items);
    free(search->visits);
    free(search->sorted);
    free(search->counts);
    free(search->open);
}

enum mt_status mt_module_calls_find(const struct mt_python_tree *tree,
                                    const struct mt_symbols *symbols,
                                    const struct mt_module_sequence *sequence,
                                    struct mt_module_call *calls)
{
    struct search search = {
        .tree = tree, .symbols = symbols, .calls = calls, .is_cut = sequence->is_cut};

    for (size_t i = 0; i < sequence->count; i++)
        calls[i] = (struct mt_module_call){MT_NO_ID, 0, 0};
    enum mt_status status = begin(&search, sequence);
    while (!status && search.open_count)
        part(&search, search.open[--search.open_count]);
    release(&search);
    return status == MT_END ? MT_OK : status;
}

/* Maximum number of allocations in all logs, and in one log. Later allocations have no log. */
#define MT_FORWARD_LOGS_MAX (UINT64_C(1) << 23)
#define MT_FORWARD_LOG_MAX  (1u << 18)

static bool is_module_call(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    return strstr(mt_symbols_text(symbols, frame->function), "_call_impl") &&
           mt_path_has(mt_symbols_text(symbols, frame->file), "torch/nn/modules/module.py");
}

/* The model's own code, not a wrapper's. A container represents its code. */
static bool is_own_line(const struct mt_forward_logs *logs, const struct mt_symbols *symbols,
                        uint32_t frame)
{
    return mt_site_table_rank(&logs->sites, frame) == MT_RANK_CODE ||
           mt_path_has(mt_symbols_text(symbols, symbols->frames[frame].file),
                       "torch/nn/modules/container.py");
}

static void find_root(struct mt_forward_logs *logs, const struct mt_symbols *symbols)
{
    uint32_t id = logs->root_count++, self = logs->tree.nodes[id].self;
    struct mt_forward_root *root = &logs->roots[id];

    *root = (struct mt_forward_root){.call = MT_NO_ID, .top = MT_NO_ID};
    if (self == MT_NO_ID)
        return;
    if (self != id) {
        *root = logs->roots[self];
        return;
    }
    uint32_t parent = logs->tree.nodes[id].parent;
    uint32_t frame = symbols->stacks[id].frame;
    if (parent != MT_NO_ID)
        *root = logs->roots[parent];
    root->is_call = is_module_call(symbols, &symbols->frames[frame]);
    root->is_inner |= root->is_call && root->has_code;
    root->has_code |=
        root->call != MT_NO_ID && mt_site_table_rank(&logs->sites, frame) == MT_RANK_CODE;
    if (root->call == MT_NO_ID && root->is_call)
        root->call = id;
    else if (root->call != MT_NO_ID && root->top == MT_NO_ID && is_own_line(logs, symbols, frame))
        root->top = id;
}

void mt_forward_logs_update(struct mt_forward_logs *logs, const struct mt_symbols *symbols)
{
    mt_python_tree_update(&logs->tree, symbols);
    mt_site_table_update(&logs->sites, symbols);
    mt_stack_kinds_update(&logs->kinds, symbols);
    mt_grow_to(&logs->roots, &logs->root_capacity, symbols->stack_count, sizeof *logs->roots);
    while (logs->root_count < symbols->stack_count)
        find_root(logs, symbols);
}

/* Whether it is inside of a forward call of a model. */
static bool is_in_call(const struct mt_forward_logs *logs, uint32_t stack)
{
    uint8_t kind = mt_forward_logs_kind(logs, stack);

    return stack < logs->root_count && logs->roots[stack].call != MT_NO_ID &&
           mt_phase_is_forward(kind);
}

/* Autograd's threads have no Python frames. */
static bool is_behind_call(const struct mt_forward_logs *logs, uint32_t stack)
{
    uint8_t kind = mt_forward_logs_kind(logs, stack);

    return mt_python_node_of(&logs->tree, stack) == MT_NO_ID || kind == MT_PHASE_BACKWARD ||
           kind == MT_PHASE_OPTIMIZER || kind == MT_PHASE_ZERO_GRAD;
}

static void forget(struct mt_forward_logs *logs, uint32_t index)
{
    struct mt_forward_log *log = &logs->logs[index];

    if (log->is_open || log->is_newest || log->alive)
        return;
    logs->held -= log->count;
    free(log->nodes);
    free(log->phases);
    free(log->calls);
    *log = (struct mt_forward_log){.call = logs->unused};
    logs->unused = index + 1;
}

/* It is now the newest of its line. */
static void close_log(struct mt_forward_logs *logs)
{
    uint32_t index = logs->open - 1;
    struct mt_forward_log *log = &logs->logs[index];

    logs->open = 0;
    logs->closed++;
    log->is_open = false;
    for (uint32_t i = 0; i < logs->newest_count; i++) {
        uint32_t older = logs->newest[i];

        if (logs->logs[older].call != log->call)
            continue;
        logs->newest[i] = index;
        log->is_newest = true;
        logs->logs[older].is_newest = false;
        forget(logs, older);
        return;
    }
    log->is_newest = logs->newest_count < MT_FORWARD_LINES_MAX;
    if (log->is_newest)
        logs->newest[logs->newest_count++] = index;
    forget(logs, index);
}

static void open_log(struct mt_forward_logs *logs, struct mt_forward_root root, int32_t owner)
{
    uint32_t index = logs->unused ? logs->unused - 1 : logs->count;

    if (logs->unused) {
        logs->unused = logs->logs[index].call;
    } else {
        mt_grow_to(&logs->logs, &logs->capacity, (size_t)logs->count + 1, sizeof *logs->logs);
        logs->count++;
    }
    logs->logs[index] = (struct mt_forward_log){
        .call = root.call, .owner = owner, .first = root.top, .last = root.top, .is_open = true};
    logs->open = index + 1;
}

static bool begins_call(const struct mt_forward_log *log, struct mt_forward_root root,
                        int32_t owner)
{
    if (log->call != root.call || log->owner != owner || log->count >= MT_FORWARD_LOG_MAX)
        return true;
    return root.top != MT_NO_ID && root.top == log->first && log->last != log->first;
}

static void append(struct mt_forward_log *log, uint32_t node, const struct mt_forward_birth *birth)
{
    size_t count = (size_t)log->count + 1;

    mt_grow_to(&log->nodes, &log->capacity, count, sizeof *log->nodes);
    mt_grow_to(&log->phases, &log->phase_capacity, count, sizeof *log->phases);
    if (!log->count)
        log->first_event = birth->event;
    log->last_event = birth->event;
    log->nodes[log->count] = node;
    log->phases[log->count++] = birth->phase;
}

void mt_forward_logs_add(struct mt_forward_logs *logs, const struct mt_forward_birth *birth,
                         struct mt_forward_position *place)
{
    *place = (struct mt_forward_position){MT_NO_ID, 0};
    if (logs->open && is_behind_call(logs, birth->stack))
        close_log(logs);
    if (!is_in_call(logs, birth->stack) || logs->held >= MT_FORWARD_LOGS_MAX)
        return;
    struct mt_forward_root root = logs->roots[birth->stack];
    if (logs->open && begins_call(&logs->logs[logs->open - 1], root, birth->owner))
        close_log(logs);
    if (!logs->open)
        open_log(logs, root, birth->owner);
    struct mt_forward_log *log = &logs->logs[logs->open - 1];
    *place = (struct mt_forward_position){logs->open - 1, log->count};
    append(log, mt_python_node_of(&logs->tree, birth->stack), birth);
    log->last = root.top;
    log->alive++;
    logs->held++;
}

void mt_forward_logs_enter(struct mt_forward_logs *logs, struct mt_forward_position place)
{
    if (place.log != MT_NO_ID)
        logs->logs[place.log].alive++;
}

void mt_forward_logs_leave(struct mt_forward_logs *logs, struct mt_forward_position place)
{
    if (place.log == MT_NO_ID)
        return;
    logs->logs[place.log].alive--;
    forget(logs, place.log);
}

enum mt_status mt_forward_logs_settle(struct mt_forward_logs *logs,
                                      const struct mt_symbols *symbols)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < logs->count && !status; i++) {
        struct mt_forward_log *log = &logs->logs[i];

        if (!log->count)
            continue;
        log->calls = mt_memory_new(log->count * sizeof *log->calls);
        status = mt_module_calls_find(
            &logs->tree, symbols,
            &(struct mt_module_sequence){log->call, log->nodes, log->count, log->is_open},
            log->calls);
    }
    return status;
}

struct mt_module_call mt_forward_logs_call(const struct mt_forward_logs *logs,
                                           struct mt_forward_position place)
{
    static const struct mt_module_call none = {.body = MT_NO_ID};

    if (place.log == MT_NO_ID || !logs->logs[place.log].calls)
        return none;
    return logs->logs[place.log].calls[place.at];
}

void mt_forward_logs_release(struct mt_forward_logs *logs)
{
    for (uint32_t i = 0; i < logs->count; i++) {
        free(logs->logs[i].nodes);
        free(logs->logs[i].phases);
        free(logs->logs[i].calls);
    }
    free(logs->logs);
    free(logs->roots);
    mt_python_tree_release(&logs->tree);
    mt_site_table_release(&logs->sites);
    mt_stack_kinds_release(&logs->kinds);
    memset(logs, 0, sizeof *logs);
}
