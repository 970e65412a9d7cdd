#include "xla_runs.h"

#include "event.h"
#include "grow.h"
#include "xla_names.h"

#include <stdlib.h>
#include <string.h>

void mt_xla_runs_release(struct mt_xla_runs *runs)
{
    free(runs->list);
    free(runs->thunks);
    free(runs->names);
    free(runs->threads);
    mt_strings_release(&runs->modules);
    memset(runs, 0, sizeof *runs);
}

/* "jit(step)/transpose(jvp(loss))/dot_general": jax.grad's version of an operation.
 * "loop_dynamic_update_slice_fusion.3", "jit(decode)/scatter": writes a part of an array. */
static void learn_operation(struct mt_xla_runs *runs, const char *text)
{
    runs->differentiates |= strstr(text, "transpose(jvp(") != NULL;
    runs->updates_slices |= strstr(text, "dynamic_update_slice") != NULL ||
                            strstr(text, "dynamic-update-slice") != NULL ||
                            strstr(text, "scatter") != NULL;
}

static void learn_module(struct mt_xla_runs *runs, const char *module, size_t length, uint32_t *id)
{
    mt_strings_put(&runs->modules, module, length, id);
    mt_grow_zeroed_to(&runs->thunks, &runs->thunk_capacity, runs->modules.count,
                      sizeof *runs->thunks);
}

/* Once for each text. */
static const struct mt_xla_run_name *name_of(struct mt_xla_runs *runs,
                                             const struct mt_symbols *symbols, uint32_t text)
{
    const char *module;
    size_t length;

    mt_grow_zeroed_to(&runs->names, &runs->name_capacity, (size_t)text + 1, sizeof *runs->names);
    struct mt_xla_run_name *name = &runs->names[text];
    if (name->kind)
        return name;
    name->kind = (uint8_t)(1 + mt_xla_range_of(mt_symbols_text(symbols, text), &module, &length));
    if (name->kind == 1 + MT_XLA_THUNK)
        learn_operation(runs, mt_symbols_text(symbols, text));
    if (name->kind == 1 + MT_XLA_MODULE)
        learn_module(runs, module, length, &name->module);
    return name;
}

static void begin_run(struct mt_xla_runs *runs, struct mt_xla_run_thread *thread,
                      const struct mt_event *event, uint32_t module)
{
    if (thread->depth++)
        return;
    thread->run = MT_NO_ID;
    if (runs->count >= MT_NO_ID - 1)
        return;
    mt_grow_to(&runs->list, &runs->capacity, runs->count + 1, sizeof *runs->list);
    thread->run = (uint32_t)runs->count;
    runs->list[runs->count++] = (struct mt_xla_run){event->seq, module};
}

void mt_xla_runs_range(struct mt_xla_runs *runs, const struct mt_symbols *symbols,
                       const struct mt_event *event)
{
    bool begins = event->kind == MT_EVENT_PHASE_PUSH;

    if (event->name >= symbols->strings.count)
        return;
    const struct mt_xla_run_name *name = name_of(runs, symbols, event->name);
    mt_grow_zeroed_to(&runs->threads, &runs->thread_capacity, event->thread + 1u,
                      sizeof *runs->threads);
    struct mt_xla_run_thread *thread = &runs->threads[event->thread];
    if (name->kind == 1 + MT_XLA_MODULE && begins) {
        begin_run(runs, thread, event, name->module);
        return;
    }
    if (name->kind == 1 + MT_XLA_MODULE)
        thread->depth -= thread->depth > 0;
    else if (name->kind == 1 + MT_XLA_THUNK && begins && thread->depth && thread->run != MT_NO_ID)
        runs->thunks[runs->list[thread->run].module]++;
}

uint32_t mt_xla_runs_current(const struct mt_xla_runs *runs, uint16_t thread)
{
    return thread < runs->thread_capacity && runs->threads[thread].depth ? runs->threads[thread].run
                                                                         : MT_NO_ID;
}

uint32_t mt_xla_runs_main(const struct mt_xla_runs *runs)
{
    uint32_t most = MT_NO_ID;

    for (uint32_t i = 0; i < runs->modules.count; i++)
        if (runs->thunks[i] && (most == MT_NO_ID || runs->thunks[i] > runs->thunks[most]))
            most = i;
    return most;
}
