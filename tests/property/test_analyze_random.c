/* Random and hostile traces through the whole analysis: nothing crashes, and
 * what the report promises to sum up does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report.h"
#include "timeline_model.h"
#include "util.h"

enum { MOST_EVENTS = 700, MOST_LIVE = 64 };

struct fake {
    struct mt_source source;
    struct mt_event events[MOST_EVENTS];
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

static const struct mt_source_ops fake_ops = {fake_next, fake_rewind, NULL, NULL};

/* ---- making traces ----------------------------------------------------------- */

static uint64_t seed;

static uint64_t below(uint64_t bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % bound;
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

/* A driver's event: each heap has its own addresses, all from the same one on. */
static void spread_over_heaps(struct mt_event *event, uint64_t next[COUNTED_HEAPS])
{
    event->heap = (uint16_t)below(COUNTED_HEAPS);
    event->addr = 0x7f0000000000 + next[event->heap];
    next[event->heap] += event->size_bytes;
    event->aux_bytes = 0;
}

/* Tame: every free has its allocation, devices are few. Wild: anything. */
static void make(struct fake *fake, bool wild, bool middle, bool heaps)
{
    struct live live[MOST_LIVE];
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
    fake->count = below(MOST_EVENTS);
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
        if (!wild && event->kind == MT_EVENT_ALLOC && live_count < MOST_LIVE) {
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

/* ---- checks ------------------------------------------------------------------ */

static void check_phase(const struct mt_report *report, uint32_t index)
{
    const struct mt_phase *phase = &report->phases[index];

    assert_true(phase->parent < (int32_t)index);
    assert_true(phase->begin_event <= phase->end_event);
    assert_true(phase->begin_t_ns <= phase->end_t_ns);
    assert_non_null(phase->path);
}

static void check_use(const struct mt_phase_use *use, uint64_t device_peak)
{
    assert_true(use->peak.allocated >= use->exit.allocated);
    assert_true(use->peak.allocated >= use->enter.allocated);
    assert_true(use->peak.reserved >= use->exit.reserved);
    assert_true(use->peak.allocated <= device_peak);
}

static void check_sums(const struct mt_device_report *device)
{
    uint64_t roles = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        roles += device->peak_role_bytes[i];
    assert_int_equal(roles, device->allocated_peak.bytes);
    for (uint32_t i = 0; i < device->instant_count; i++) {
        uint64_t bytes = 0;

        for (uint32_t j = 0; j < device->instants[i].holding_count; j++)
            bytes += device->instants[i].holdings[j].bytes;
        assert_int_equal(bytes, device->instants[i].bytes.allocated);
    }
    for (uint32_t i = 0; i < device->explanation_count; i++) {
        const struct mt_explanation *why = &device->explanations[i];
        int64_t bytes = 0;

        for (uint32_t j = 0; j < why->contribution_count; j++)
            bytes += why->contributions[j].bytes;
        assert_int_equal(bytes, why->to_bytes - why->from_bytes);
    }
}

/* The driver's level as the replay saw it, and as the ledger did. */
static void check_driver(const struct mt_report *report)
{
    assert_int_equal(report->driver_count, report->device_count);
    for (uint32_t d = 0; d < report->device_count; d++) {
        const struct mt_driver_report *driver = &report->drivers[d];
        uint64_t live = 0, allocations = 0;

        assert_int_equal(driver->device, report->devices[d].device);
        assert_int_equal(driver->peak.bytes, report->devices[d].active_peak.bytes);
        for (uint32_t i = 0; i < driver->heap_count; i++) {
            assert_true(driver->heaps[i].live_bytes <= driver->heaps[i].peak_bytes);
            assert_true(driver->heaps[i].peak_bytes <= driver->peak.bytes);
            live += driver->heaps[i].live_bytes;
            allocations += driver->heaps[i].allocations;
        }
        assert_int_equal(live, report->devices[d].end.active);
        assert_int_equal(allocations, report->devices[d].allocations);
    }
}

static void run(uint64_t round, bool wild, bool middle, bool heaps, const char *policy)
{
    struct mt_analyze_options options = {.path = "random",
                                         .flamechart_step = MT_NO_STEP,
                                         .want_timeline = true,
                                         .want_flamechart = true,
                                         .bins = 64};
    struct mt_report *report;
    struct mt_error error;
    struct fake fake;
    enum mt_status status;

    seed = 88172645463325252u + round * 7919 + wild * 3 + middle;
    make(&fake, wild, middle, heaps);
    options.replay.policy = policy;
    status = mt_analyze(&fake.source, &options, &report, &error);
    if (!wild && status)
        fail_msg("round %d: %s", (int)round, error.text);
    if (!status) {
        for (uint32_t i = 0; i < report->phase_count; i++)
            check_phase(report, i);
        for (uint32_t d = 0; d < report->device_count && !wild; d++) {
            for (uint32_t i = 0; i < report->phase_count; i++)
                check_use(&report->devices[d].phase_uses[i],
                          report->devices[d].allocated_peak.bytes);
            check_sums(&report->devices[d]);
        }
        if (!wild && heaps)
            check_driver(report);
    }
    mt_report_release(report);
    mt_overlay_release(&fake.source.overlay);
    mt_symbols_release(&fake.source.symbols);
}

static void tame_traces(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 300; round++)
        run(round, false, false, false, round % 2 ? "recorded" : "pytorch");
}

static void traces_from_the_middle(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 150; round++)
        run(round, false, true, false, "recorded");
}

static void wild_traces(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 300; round++)
        run(round, true, round % 3 == 0, round % 5 > 2, round % 2 ? NULL : "recorded");
}

static void traces_of_the_driver(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 200; round++)
        run(round, false, false, true, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tame_traces), cmocka_unit_test(traces_from_the_middle),
        cmocka_unit_test(wild_traces), cmocka_unit_test(traces_of_the_driver)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
