/* Builds a program of ranges and blocks, and finds the role of each block with mt_role_clock.
 * Include after cmocka. */
#ifndef MT_TESTS_ROLE_PROGRAM_H
#define MT_TESTS_ROLE_PROGRAM_H

#include <string.h>

#include "roles.h"

enum { PROGRAM_BLOCKS = 64 };

struct program {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_phases phases;
    struct mt_role_clock clock;
    uint64_t seq, blocks;
    uint8_t codes[PROGRAM_BLOCKS];
    uint32_t stacks[PROGRAM_BLOCKS], units[PROGRAM_BLOCKS];
};

static inline void begin(struct program *p)
{
    memset(p, 0, sizeof *p);
    assert_int_equal(mt_symbols_init(&p->symbols), MT_OK);
    mt_phases_init(&p->phases, &p->arena, &p->symbols);
    mt_role_clock_init(&p->clock, &p->phases, &p->symbols, true);
}

static inline void end(struct program *p)
{
    mt_role_clock_release(&p->clock);
    mt_phases_release(&p->phases);
    mt_symbols_release(&p->symbols);
    mt_arena_release(&p->arena);
}

static inline uint32_t string(struct program *p, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&p->symbols, text, strlen(text), &id), MT_OK);
    return id;
}

static inline uint32_t stack_in(struct program *p, uint32_t outer, const char *function,
                                const char *file)
{
    uint32_t frame, id;

    assert_int_equal(mt_symbols_frame(&p->symbols, string(p, function), string(p, file), 1, &frame),
                     MT_OK);
    assert_int_equal(mt_symbols_stack(&p->symbols, outer, frame, &id), MT_OK);
    return id;
}

static inline uint32_t stack(struct program *p, const char *function, const char *file)
{
    return stack_in(p, MT_NO_ID, function, file);
}

static inline void enter(struct program *p, const char *name)
{
    struct mt_event event = {.seq = p->seq++, .name = string(p, name)};
    int32_t phase;

    mt_phases_push(&p->phases, &event, &phase);
    mt_role_clock_push(&p->clock, phase, event.name);
}

static inline void leave(struct program *p, const char *name)
{
    struct mt_event event = {.seq = p->seq++, .name = string(p, name)};

    mt_phases_pop(&p->phases, &event);
    mt_role_clock_pop(&p->clock);
}

static inline uint64_t born_on(struct program *p, uint16_t device, uint32_t stack_id,
                               uint64_t bytes)
{
    struct mt_event event = {
        .kind = MT_EVENT_ALLOC, .size_bytes = bytes, .stack = stack_id, .device = device};

    p->codes[p->blocks] = MT_ROLE_CODE_OPEN;
    p->stacks[p->blocks] = stack_id;
    p->units[p->blocks] = (uint32_t)(bytes / 512);
    mt_role_clock_birth(&p->clock, mt_phases_current(&p->phases, 0), &event, p->blocks);
    return p->blocks++;
}

static inline uint64_t born_by(struct program *p, uint32_t stack_id, uint64_t bytes)
{
    return born_on(p, 0, stack_id, bytes);
}

static inline uint64_t born(struct program *p)
{
    return born_by(p, stack(p, "somewhere", "/home/me/train.py"), 4096);
}

static inline void ends(struct program *p, uint64_t block, enum mt_fate fate)
{
    p->codes[block] = mt_role_clock_end(&p->clock, mt_phases_current(&p->phases, 0), block, fate);
}

static inline void freed(struct program *p, uint64_t block)
{
    ends(p, block, MT_FATE_FREED);
}

static inline void finish(struct program *p)
{
    struct mt_block_units units = {0};

    for (uint64_t i = 0; i < p->blocks; i++)
        mt_block_units_add(&units, p->units[i]);
    mt_phases_finish(&p->phases, p->seq, p->seq);
    mt_role_clock_finish(&p->clock, p->codes, &units, p->blocks);
    mt_block_units_release(&units);
}

static inline enum mt_role role(const struct program *p, uint64_t block)
{
    return mt_role_resolve(&p->clock, p->codes[block], p->stacks[block],
                           (uint64_t)p->units[block] * 512);
}

#endif
