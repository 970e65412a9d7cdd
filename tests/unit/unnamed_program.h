/* A program without names for steps and phases: a line of a script is a stack and what it
 * allocates. Include after cmocka. */
#ifndef MT_TESTS_UNNAMED_PROGRAM_H
#define MT_TESTS_UNNAMED_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inferred_phases.h"
#include "memory_source.h"
#include "phases.h"

#define MAX_EVENTS 2000

/* The frames below a line's call, outermost first. */
#define MODEL    " module.py:_call_impl model.py:forward:5"
#define LOSS     " functional.py:cross_entropy:3"
#define BACKWARD " _tensor.py:backward autograd/__init__.py:backward"
#define STEP     " optim/adam.py:step:238"
#define CLOSURE  " optim/adam.py:step:230 t.py:closure"
#define ZERO     " optim/optimizer.py:zero_grad"

static struct mt_event events[MAX_EVENTS];
static size_t event_count;
static struct memory_source program;
static uint16_t thread, heap;

static inline uint32_t string(const char *text, size_t length)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&program.source.symbols, text, length, &id), MT_OK);
    return id;
}

/* "file:function:line file:function ...", outermost first; torch's files get
 * their folders. */
static inline uint32_t stack_of(const char *text)
{
    static const struct {
        const char *name, *path;
    } files[] = {{"module.py", "torch/nn/modules/module.py"},
                 {"functional.py", "torch/nn/functional.py"},
                 {"_tensor.py", "torch/_tensor.py"},
                 {"autograd/__init__.py", "torch/autograd/__init__.py"},
                 {"grad_scaler.py", "torch/amp/grad_scaler.py"},
                 {"optim/adam.py", "torch/optim/adam.py"},
                 {"optim/optimizer.py", "torch/optim/optimizer.py"}};
    uint32_t stack = MT_NO_ID;

    while (*text) {
        char file[64], function[64], path[256];
        unsigned line = 1;
        int used = 0;
        uint32_t frame;

        text += strspn(text, " ");
        assert_true(sscanf(text, "%63[^:]:%63[^: ]:%u", file, function, &line) >= 2);
        used = (int)strcspn(text, " ");
        text += used;
        snprintf(path, sizeof path, "/home/me/%s", file);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            if (!strcmp(files[i].name, file))
                snprintf(path, sizeof path, "/lib/site-packages/%s", files[i].path);
        assert_int_equal(mt_symbols_frame(&program.source.symbols,
                                          string(function, strlen(function)),
                                          string(path, strlen(path)), line, &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(&program.source.symbols, stack, frame, &stack), MT_OK);
    }
    return stack;
}

static inline void add(struct mt_event event)
{
    assert_true(event_count < MAX_EVENTS);
    event.heap = heap;
    event.thread = thread;
    if (event.kind == MT_EVENT_ALLOC)
        event.addr = 0x1000 + event_count;
    events[event_count++] = event;
}

static inline void allocates(uint64_t bytes)
{
    add((struct mt_event){.kind = MT_EVENT_ALLOC, .size_bytes = bytes, .stack = MT_NO_ID});
}

static inline void runs(const char *stack)
{
    add((struct mt_event){
        .kind = MT_EVENT_ALLOC, .size_bytes = 512, .stack = stack ? stack_of(stack) : MT_NO_ID});
}

static inline void frees(uint64_t bytes)
{
    add((struct mt_event){.kind = MT_EVENT_FREE_REQUESTED, .size_bytes = bytes, .stack = MT_NO_ID});
}

static inline void ranges(uint8_t kind, const char *name)
{
    add((struct mt_event){.kind = kind, .stack = MT_NO_ID, .name = string(name, strlen(name))});
}

static inline int begin(void **state)
{
    (void)state;
    event_count = 0;
    thread = 0;
    heap = 1;
    memory_source_init(&program, events, 0, 64);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    memory_source_release(&program);
    return 0;
}

/* Paths of all ranges that readers see, each with its number of blocks: "step#0 4; step#0/forward
 * 1; ", and the number of ends without a begin. */
static inline void expect_with(const char *wanted, uint64_t unmatched)
{
    struct mt_event_batch batch;
    struct mt_phases phases;
    struct mt_arena arena = {0};
    uint64_t blocks[256] = {0};
    char got[4096] = "";
    enum mt_status status;

    /* init numbers the events */
    program.count = event_count;
    for (size_t i = 0; i < event_count; i++) {
        events[i].seq = i;
        events[i].t_ns = 1000 * (i + 1);
    }
    assert_int_equal(mt_inferred_phases_insert(&program.source, NULL), MT_OK);
    mt_phases_init(&phases, &arena, &program.source.symbols);
    while ((status = mt_source_next(&program.source, &batch, NULL)) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            int32_t phase;

            if (event->kind == MT_EVENT_PHASE_PUSH)
                mt_phases_push(&phases, event, &phase);
            if (event->kind == MT_EVENT_PHASE_POP)
                mt_phases_pop(&phases, event);
            if (event->kind == MT_EVENT_ALLOC)
                for (phase = mt_phases_current(&phases, event->thread); phase >= 0;
                     phase = phases.phases[phase].parent)
                    blocks[phase]++;
        }
    assert_int_equal(status, MT_END);
    assert_int_equal(phases.unmatched, unmatched);
    for (uint32_t i = 0; i < phases.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s %d; ", phases.phases[i].path,
                 (int)blocks[i]);
    mt_phases_release(&phases);
    mt_arena_release(&arena);
    assert_string_equal(got, wanted);
}

static inline void expect(const char *wanted)
{
    expect_with(wanted, 0);
}

#endif
