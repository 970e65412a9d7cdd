/* Builds a run with the calls of the driver and the events of the framework, and prints it with
 * analyze. Begin, add events in order, analyze, end. */
#ifndef MT_TESTS_DRIVER_RUN_H
#define MT_TESTS_DRIVER_RUN_H

#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "memory_source.h"
#include "util.h"

#define SEGMENT UINT64_C(0x7f0000000000)
#define OTHER   UINT64_C(0x7e0000000000)

enum { DRIVER, PYTORCH, ASYNC, HOST, VIRTUAL, MAPPED, RANGES, RUN_EVENTS = 64 };

struct run {
    struct memory_source source;
    struct mt_event events[RUN_EVENTS];
    size_t count;
    uint32_t stack; /* of the next allocation */
    struct mt_report *report;
    struct mt_buf text;
};

static void begin(struct run *run)
{
    static const char *const names[] = {"pytorch",        "driver:async",  "driver:host",
                                        "driver:virtual", "driver:mapped", "driver:reserved"};

    memset(run, 0, sizeof *run);
    run->stack = MT_NO_ID;
    memory_source_init(&run->source, run->events, 0, 5);
    run->source.source.format = "memory";
    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        assert_int_equal(memory_source_heap(&run->source, names[i]), PYTORCH + i);
}

/* The event's number is its index. Its time is one microsecond after the event before. */
static struct mt_event *add(struct run *run, uint16_t heap, uint8_t kind, uint64_t addr,
                            uint64_t bytes)
{
    struct mt_event *event = &run->events[run->count];

    assert_true(run->count < RUN_EVENTS);
    *event = (struct mt_event){.kind = kind,
                               .heap = heap,
                               .seq = run->count,
                               .t_ns = 1000 * (run->count + 1),
                               .addr = addr,
                               .size_bytes = bytes,
                               .stack = kind == MT_EVENT_ALLOC ? run->stack : MT_NO_ID,
                               .name = MT_NO_ID,
                               .thread = 1};
    run->source.count = ++run->count;
    return event;
}

static inline uint32_t add_text(struct run *run, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&run->source.source.symbols, text, strlen(text), &id),
                     MT_OK);
    return id;
}

static inline void add_free(struct run *run, uint16_t heap, uint64_t addr, uint64_t bytes)
{
    add(run, heap, MT_EVENT_FREE_REQUESTED, addr, bytes);
    add(run, heap, MT_EVENT_FREE_COMPLETED, addr, bytes);
}

/* A heap of the driver, with a segment. */
static inline void add_segment(struct run *run, uint64_t addr, uint64_t bytes, uint16_t pool)
{
    add(run, DRIVER, MT_EVENT_ALLOC, addr, bytes);
    add(run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, addr, bytes)->pool = pool;
}

static inline void one_segment(struct run *run)
{
    add_segment(run, SEGMENT, 20 * MT_MIB, 0);
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB);
}

static void analyze(struct run *run)
{
    const struct mt_style plain = {"", "", "", "", "", "", ""};
    struct mt_analyze_options options = {.path = "run"};
    struct mt_error error;

    if (mt_analyze(&run->source.source, &options, &run->report, &error) != MT_OK)
        fail_msg("%s", error.text);
    mt_analyze_text(&run->text, run->report, &plain, NULL, true);
    assert_non_null(run->text.data);
}

static void end(struct run *run)
{
    mt_buf_release(&run->text);
    mt_report_release(run->report);
    memory_source_release(&run->source);
}

/* Compares words, because lines are wrapped. */
static inline void expect_text(const struct run *run, const char *part)
{
    struct mt_buf flat = {0};

    for (const char *at = run->text.data; *at; at++)
        if (*at != '\n' && (*at != ' ' || !flat.length || flat.data[flat.length - 1] != ' '))
            mt_buf_add_char(&flat, *at);
    if (!strstr(flat.data, part))
        fail_msg("'%s' is not in\n%s", part, run->text.data);
    mt_buf_release(&flat);
}

#endif
