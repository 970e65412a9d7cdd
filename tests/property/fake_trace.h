/* Random sources of events, sound or hostile, in memory. Include after cmocka.h. */
#ifndef MT_TESTS_FAKE_TRACE_H
#define MT_TESTS_FAKE_TRACE_H

#include <string.h>

#include "dice.h"
#include "source.h"
#include "util.h"

enum { MAX_EVENTS = 700, MAX_LIVE = 64 };

struct fake {
    struct mt_source source;
    struct mt_event events[MAX_EVENTS];
    size_t count, next;
};

static enum mt_status fake_next(struct mt_source *source, struct mt_event_batch *batch,
                                struct mt_error *error)
{
    struct fake *fake = (struct fake *)source;
    static struct mt_event copies[64];

    (void)error;
    batch->count = MT_ARRAY_LEN(copies);
    if (batch->count > fake->count - fake->next)
        batch->count = fake->count - fake->next;
    if (batch->count == 0)
        return MT_END;
    memcpy(copies, fake->events + fake->next, batch->count * sizeof *copies);
    batch->events = copies;
    fake->next += batch->count;
    return MT_OK;
}

static enum mt_status fake_rewind(struct mt_source *source, struct mt_error *error)
{
    (void)error;
    ((struct fake *)source)->next = 0;
    return MT_OK;
}

static const struct mt_source_ops fake_ops = {fake_next, fake_rewind, NULL, NULL, NULL};

static uint64_t seed;

static uint64_t below(uint64_t bound)
{
    return dice_xorshift(&seed) % bound;
}

static uint32_t name(struct fake *fake)
{
    static const char *const names[] = {
        "step#0", "step#1",   "step#2",          "step#3",    "forward", "loss",
        "nccl:x", "backward", "Optimizer.step#", "optimizer", "epoch 1", "zero_grad",
        "",       "\x01\xff", "validate",        "data"};
    const char *text = names[below(MT_ARRAY_LEN(names))];
    uint32_t id;

    assert_int_equal(mt_symbols_string(&fake->source.symbols, text, strlen(text), &id), MT_OK);
    return id;
}

static uint32_t stack(struct fake *fake)
{
    static const char *const files[] = {"/a/train.py", "/x/torch/nn/modules/module.py",
                                        "/x/torch/optim/adam.py", "/x/torch/nn/functional.py", ""};
    static const char *const functions[] = {"forward", "_call_impl", "step", "cross_entropy", "?"};
    struct mt_symbols *symbols = &fake->source.symbols;
    uint32_t parent = MT_NO_ID;

    if (below(4) == 0)
        return MT_NO_ID;
    for (uint64_t depth = below(4); depth < 4; depth++) {
        uint64_t which = below(MT_ARRAY_LEN(files));
        uint32_t file, function, frame;

        assert_int_equal(mt_symbols_string(symbols, files[which], strlen(files[which]), &file),
                         MT_OK);
        assert_int_equal(
            mt_symbols_string(symbols, functions[which], strlen(functions[which]), &function),
            MT_OK);
        assert_int_equal(mt_symbols_frame(symbols, function, file, (uint32_t)below(3), &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(symbols, parent, frame, &parent), MT_OK);
    }
    return parent;
}

struct live {
    uint64_t addr;
    uint16_t device, heap;
    bool requested;
};

static uint8_t pick_kind(bool wild)
{
    static const uint8_t kinds[] = {
        MT_EVENT_ALLOC,          MT_EVENT_ALLOC,          MT_EVENT_ALLOC,
        MT_EVENT_FREE_REQUESTED, MT_EVENT_FREE_REQUESTED, MT_EVENT_FREE_COMPLETED,
        MT_EVENT_FREE_COMPLETED, MT_EVENT_PHASE_PUSH,     MT_EVENT_PHASE_PUSH,
        MT_EVENT_PHASE_POP,      MT_EVENT_PHASE_POP,      MT_EVENT_OOM};

    return wild && below(6) == 0 ? (uint8_t)below(MT_EVENT_KIND_COUNT + 2)
                                 : kinds[below(MT_ARRAY_LEN(kinds))];
}

/* Those that count come first; behind the last one are numbers without a heap. */
static const char *const heap_names[] = {"driver",       "driver:async", "driver:virtual",
                                         "driver:array", "driver:host",  "driver:mapped",
                                         "user",         "pytorch"};
enum { COUNTED_HEAPS = 4, WILD_HEAPS = 10 };

static void make_heaps(struct fake *fake)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(heap_names); i++) {
        uint32_t text, heap;

        assert_int_equal(
            mt_symbols_string(&fake->source.symbols, heap_names[i], strlen(heap_names[i]), &text),
            MT_OK);
        assert_int_equal(mt_symbols_heap(&fake->source.symbols, text, &heap), MT_OK);
        assert_int_equal(heap, i);
    }
}

/* A driver's event: each heap has its own addresses, and all heaps start at the same one. */
static void spread_over_heaps(struct mt_event *event, uint64_t next[COUNTED_HEAPS])
{
    event->heap = (uint16_t)below(COUNTED_HEAPS);
    event->addr = 0x7f0000000000 + next[event->heap];
    next[event->heap] += event->size_bytes;
    event->aux_bytes = 0;
}

/* Tame: every free has its allocation, and devices are few. Wild: any values. */
static void make(struct fake *fake, bool wild, bool middle, bool heaps)
{
    struct live live[MAX_LIVE];
    size_t live_count = 0;
    uint64_t t_ns = 1000000, next_addr = 0x7f0000000000, next[COUNTED_HEAPS] = {0};

    memset(fake, 0, sizeof *fake);
    assert_int_equal(mt_symbols_init(&fake->source.symbols), MT_OK);
    if (heaps)
        make_heaps(fake);
    fake->source.ops = &fake_ops;
    fake->source.format = "fake";
    fake->source.header.has_stacks = below(2);
    fake->source.header.has_free_requested = true;
    fake->source.header.has_free_completed = true;
    fake->source.header.starts_in_middle = middle;
    fake->count = below(MAX_EVENTS);
    for (size_t i = 0; i < fake->count; i++) {
        struct mt_event *event = &fake->events[i];
        size_t at = live_count ? (size_t)below(live_count) : 0;

        t_ns += below(100) ? below(50) : 100000;
        *event = (struct mt_event){.seq = i, .t_ns = t_ns, .kind = pick_kind(wild)};
        event->thread = (uint16_t)(wild ? below(300) : below(3));
        event->device = (uint16_t)(wild && below(20) == 0 ? below(2000) : below(2));
        event->name = name(fake);
        event->stack = stack(fake);
        if (middle && i < fake->count / 8) {
            event->kind = MT_EVENT_ALLOC;
            event->flags = MT_EVENT_INITIAL;
        }
        event->size_bytes = wild && below(30) == 0 ? below(UINT64_MAX) : below(1 << 22) + 1;
        if (wild)
            event->addr = next_addr + 512 * below(200);
        if (wild && heaps)
            event->heap = (uint16_t)below(WILD_HEAPS);
        if (!wild && event->kind == MT_EVENT_ALLOC && live_count < MAX_LIVE) {
            event->addr = next_addr;
            next_addr += (event->size_bytes + 511) / 512 * 512;
            event->aux_bytes = (event->size_bytes + 511) / 512 * 512;
            if (heaps)
                spread_over_heaps(event, next);
            live[live_count++] = (struct live){event->addr, event->device, event->heap, false};
        } else if (!wild && event->kind == MT_EVENT_FREE_REQUESTED && live_count &&
                   !live[at].requested) {
            event->addr = live[at].addr;
            event->device = live[at].device;
            event->heap = live[at].heap;
            live[at].requested = true;
        } else if (!wild && event->kind == MT_EVENT_FREE_COMPLETED && live_count &&
                   live[at].requested) {
            event->addr = live[at].addr;
            event->device = live[at].device;
            event->heap = live[at].heap;
            live[at] = live[--live_count];
        } else if (!wild && event->kind <= MT_EVENT_FREE_COMPLETED) {
            event->kind = MT_EVENT_MARK;
        }
    }
}

static void unmake(struct fake *fake)
{
    mt_overlay_release(&fake->source.overlay);
    mt_symbols_release(&fake->source.symbols);
}

#endif
