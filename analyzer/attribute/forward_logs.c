#include "forward_logs.h"

#include "frame_judge.h"
#include "grow.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

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
    uint32_t id = logs->root_count++, self = logs->tree.nodes[id].self, parent, frame;
    struct mt_forward_root *root = &logs->roots[id];

    *root = (struct mt_forward_root){.call = MT_NO_ID, .top = MT_NO_ID};
    if (self == MT_NO_ID)
        return;
    if (self != id) {
        *root = logs->roots[self];
        return;
    }
    parent = logs->tree.nodes[id].parent;
    frame = symbols->stacks[id].frame;
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

bool mt_forward_logs_is_call(const struct mt_forward_logs *logs, uint32_t node)
{
    return node < logs->root_count && logs->roots[node].is_call;
}

bool mt_forward_logs_is_inner(const struct mt_forward_logs *logs, uint32_t node)
{
    return node < logs->root_count && logs->roots[node].is_inner;
}

/* Whether it is inside of a forward call of a model. */
static bool is_in_call(const struct mt_forward_logs *logs, uint32_t stack)
{
    uint8_t kind = mt_forward_logs_kind(logs, stack);

    return stack < logs->root_count && logs->roots[stack].call != MT_NO_ID &&
           (kind == MT_PHASE_FORWARD || kind == MT_PHASE_LOSS);
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
    struct mt_forward_root root;
    struct mt_forward_log *log;

    *place = (struct mt_forward_position){MT_NO_ID, 0};
    if (logs->open && is_behind_call(logs, birth->stack))
        close_log(logs);
    if (!is_in_call(logs, birth->stack) || logs->held >= MT_FORWARD_LOGS_MAX)
        return;
    root = logs->roots[birth->stack];
    if (logs->open && begins_call(&logs->logs[logs->open - 1], root, birth->owner))
        close_log(logs);
    if (!logs->open)
        open_log(logs, root, birth->owner);
    log = &logs->logs[logs->open - 1];
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
