/* Builds a program in steps, and analyzes it. A line of the program is "file:function:number".
 * Callers follow the innermost line: "f.py:f:1 < g.py:g:2". */
#ifndef MT_TESTS_STEP_PROGRAM_H
#define MT_TESTS_STEP_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "memory_source.h"
#include "report.h"

#define PROGRAM_EVENTS   8192
#define PROGRAM_SEGMENTS 256

static struct {
    struct memory_source source;
    struct mt_event events[PROGRAM_EVENTS];
    size_t count;
    uint64_t next_addr;
    uint16_t heap;
    /* see program_with_segments */
    bool has_segments;
    struct {
        uint64_t addr, bytes;
        bool taken;
    } segments[PROGRAM_SEGMENTS];
    size_t segment_count;
} program;

static uint32_t program_text(const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&program.source.source.symbols, text, strlen(text), &id),
                     MT_OK);
    return id;
}

static uint32_t program_frame(const char *line)
{
    char file[64], function[64];
    unsigned number;
    uint32_t frame;

    assert_int_equal(sscanf(line, "%63[^:]:%63[^:]:%u", file, function, &number), 3);
    assert_int_equal(mt_symbols_frame(&program.source.source.symbols, program_text(function),
                                      program_text(file), number, &frame),
                     MT_OK);
    return frame;
}

static uint32_t program_stack(const char *line)
{
    const char *caller = line ? strstr(line, " < ") : NULL;
    uint32_t stack;

    if (!line)
        return MT_NO_ID;
    uint32_t outer = caller ? program_stack(caller + 3) : MT_NO_ID;
    assert_int_equal(
        mt_symbols_stack(&program.source.source.symbols, outer, program_frame(line), &stack),
        MT_OK);
    return stack;
}

static void program_add(uint8_t kind, struct mt_event event)
{
    assert_true(program.count < PROGRAM_EVENTS);
    event.kind = kind;
    event.heap = program.heap;
    program.events[program.count++] = event;
}

static void program_begin(void)
{
    memset(&program, 0, sizeof program);
    memory_source_init(&program.source, program.events, 0, 64);
    program.heap = memory_source_heap(&program.source, "pytorch");
    program.source.source.header.has_stacks = true;
    program.source.source.header.has_free_requested = true;
    program.next_addr = UINT64_C(0x7f0000000000);
}

static void range(uint8_t kind, const char *name)
{
    program_add(kind, (struct mt_event){.name = program_text(name), .stack = MT_NO_ID});
}

static inline void step_begins(unsigned number)
{
    char name[32];

    snprintf(name, sizeof name, "step#%u", number);
    range(MT_EVENT_PHASE_PUSH, name);
}

static inline void step_ends(unsigned number)
{
    char name[32];

    snprintf(name, sizeof name, "step#%u", number);
    range(MT_EVENT_PHASE_POP, name);
}

/* Places later blocks where PyTorch's allocator places them, so that a replay reproduces the run.
 * Works for blocks of at least 10 MiB in units of 2 MiB. Each block has its own segment, and reuses
 * the segment of a freed block of its size. Splitting a larger free block is not modeled. */
static inline void program_with_segments(void)
{
    program.has_segments = true;
}

static uint64_t segment_for(uint64_t bytes)
{
    size_t i, best = program.segment_count;

    assert_true(bytes >= UINT64_C(10) << 20 && bytes % (2 << 20) == 0);
    for (i = 0; i < program.segment_count; i++) {
        if (program.segments[i].taken || program.segments[i].bytes < bytes)
            continue;
        if (best == program.segment_count ||
            program.segments[i].bytes < program.segments[best].bytes)
            best = i;
    }
    if (best < program.segment_count) {
        assert_int_equal(program.segments[best].bytes, bytes);
    } else {
        assert_true(program.segment_count++ < PROGRAM_SEGMENTS);
        program.segments[best].addr = program.next_addr;
        program.segments[best].bytes = bytes;
        program.next_addr += bytes;
        program_add(MT_EVENT_SEGMENT_ALLOC, (struct mt_event){.addr = program.segments[best].addr,
                                                              .size_bytes = bytes,
                                                              .name = MT_NO_ID,
                                                              .stack = MT_NO_ID});
    }
    program.segments[best].taken = true;
    return program.segments[best].addr;
}

static inline uint64_t take(const char *line, uint64_t bytes)
{
    uint64_t block = (bytes + 511) / 512 * 512;
    uint64_t addr = program.has_segments ? segment_for(bytes) : program.next_addr;

    program_add(MT_EVENT_ALLOC, (struct mt_event){.addr = addr,
                                                  .size_bytes = bytes,
                                                  .aux_bytes = block,
                                                  .name = MT_NO_ID,
                                                  .stack = program_stack(line)});
    if (!program.has_segments)
        program.next_addr += block;
    return addr;
}

static void give(uint64_t addr)
{
    struct mt_event event = {.addr = addr, .name = MT_NO_ID, .stack = MT_NO_ID};

    for (size_t i = 0; i < program.segment_count; i++)
        if (program.segments[i].addr == addr)
            program.segments[i].taken = false;
    program_add(MT_EVENT_FREE_REQUESTED, event);
    program_add(MT_EVENT_FREE_COMPLETED, event);
}

/* A request at that line that failed. */
static inline void refuse(const char *line, uint64_t bytes)
{
    program_add(
        MT_EVENT_OOM,
        (struct mt_event){.size_bytes = bytes, .name = MT_NO_ID, .stack = program_stack(line)});
}

static inline struct mt_report *program_report_with(const struct mt_analyze_options *options)
{
    struct mt_report *report = NULL;
    struct mt_error error = {0};

    program.source.count = program.count;
    for (size_t i = 0; i < program.count; i++) {
        program.events[i].seq = i;
        program.events[i].t_ns = 1000 * (i + 1);
    }
    program.source.at = 0;
    if (mt_analyze(&program.source.source, options, &report, &error) != MT_OK)
        fail_msg("%s", error.text);
    return report;
}

static inline struct mt_report *program_report(void)
{
    const struct mt_analyze_options options = {0};

    return program_report_with(&options);
}

static inline void phase_begins(const char *name)
{
    range(MT_EVENT_PHASE_PUSH, name);
}

static inline void phase_ends(const char *name)
{
    range(MT_EVENT_PHASE_POP, name);
}

/* Returns the finding of that kind, or NULL. */
static inline const struct mt_finding *finding_of(const struct mt_report *report, const char *id)
{
    const struct mt_device_report *device = &report->devices[0];

    for (uint32_t i = 0; i < device->finding_count; i++)
        if (strcmp(device->findings[i].id, id) == 0)
            return &device->findings[i];
    return NULL;
}

static inline bool has_evidence(const struct mt_finding *finding, const char *text)
{
    for (uint32_t i = 0; i < finding->evidence_count; i++)
        if (strcmp(finding->evidence[i], text) == 0)
            return true;
    return false;
}

static void program_end(struct mt_report *report)
{
    mt_report_release(report);
    memory_source_release(&program.source);
}

#endif
