/* Reports of XLA programs: whether their requests are recorded, and what XLA's own arena would have
 * held. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "memory_source.h"
#include "report_query.h"
#include "util.h"
#include "verdict.h"

#define BASE UINT64_C(0x7f0000000000)

enum { ASYNC = 1, VIRTUAL = 2, MODULES = 30 };

struct run {
    struct memory_source source;
    struct mt_event events[160];
    char names[MODULES][64];
    size_t count;
    struct mt_report *report;
    struct mt_buf text;
};

static struct mt_event *add(struct run *run, uint8_t kind, uint16_t heap, uint64_t bytes)
{
    struct mt_event *event = &run->events[run->count++];

    *event = (struct mt_event){.kind = kind,
                               .heap = heap,
                               .addr = BASE,
                               .size_bytes = bytes,
                               .stack = MT_NO_ID,
                               .name = MT_NO_ID};
    return event;
}

/* A module that runs. The number in `name` becomes a string id after the source is open. */
static void run_module(struct run *run, uint32_t number)
{
    add(run, MT_EVENT_PHASE_PUSH, 0, 0)->name = number;
    add(run, MT_EVENT_PHASE_POP, 0, 0)->name = number;
}

static void begin(struct run *run)
{
    static const char *const heaps[] = {"driver:async", "driver:virtual"};

    memory_source_init(&run->source, run->events, run->count, 5);
    run->source.source.format = "memory";
    for (size_t i = 0; i < MT_ARRAY_LEN(heaps); i++)
        assert_int_equal(memory_source_heap(&run->source, heaps[i]), i + 1);
    for (size_t i = 0; i < run->count; i++) {
        struct mt_event *event = &run->events[i];
        char name[80];

        if (event->kind != MT_EVENT_PHASE_PUSH && event->kind != MT_EVENT_PHASE_POP)
            continue;
        (void)snprintf(name, sizeof name, "TSL: XlaModule:#hlo_module=jit_step,program_id=%u#",
                       event->name);
        assert_int_equal(
            mt_symbols_string(&run->source.source.symbols, name, strlen(name), &event->name),
            MT_OK);
    }
}

static void analyze_devices(struct run *run, uint32_t devices)
{
    const struct mt_style plain = {"", "", "", "", "", "", ""};
    struct mt_analyze_options options = {.path = "run"};
    struct mt_error error;

    if (mt_analyze(&run->source.source, &options, &run->report, &error) != MT_OK)
        fail_msg("%s", error.text);
    mt_analyze_text(&run->text, run->report, &plain, NULL, true);
    assert_non_null(run->text.data);
    assert_int_equal(run->report->device_count, devices);
}

static void analyze(struct run *run)
{
    analyze_devices(run, 1);
}

static void release(struct run *run)
{
    mt_buf_release(&run->text);
    mt_report_release(run->report);
    memory_source_release(&run->source);
}

static void expect_first_line_names_the_option(struct run *run)
{
    const char *end = strchr(run->text.data, '\n'),
               *option = strstr(run->text.data, "--xla-requests");
    struct mt_buf verdict = {0};

    assert_true(option && end && option < end);
    assert_null(strstr(run->text.data, "\nPeak "));
    mt_verdict_add(&verdict, run->report, NULL);
    assert_non_null(strstr(verdict.data, "--xla-requests"));
    mt_buf_release(&verdict);
}

/* Many modules run, and the driver sees one region. */
TEST(requests_that_an_arena_serves)
{
    struct run run = {.count = 0};

    add(&run, MT_EVENT_ALLOC, VIRTUAL, 100 * MT_GIB);
    for (uint32_t i = 0; i < MODULES; i++)
        run_module(&run, i);
    begin(&run);
    analyze(&run);
    assert_true(mt_lacks_requests(&run.report->devices[0]));
    assert_int_equal(run.report->devices[0].xla->arena_count, 0);
    expect_first_line_names_the_option(&run);
    release(&run);
}

/* Ranges of modules name no device. 30 runs and 4 requests do not show an arena; 2 requests of one
 * device would. */
TEST(requests_of_all_devices_count)
{
    struct run run = {.count = 0};

    for (uint16_t device = 0; device < 2; device++)
        for (uint32_t i = 0; i < 2; i++) {
            struct mt_event *event = add(&run, MT_EVENT_ALLOC, ASYNC, MT_MIB);

            event->device = device;
            event->addr = BASE + i * MT_GIB;
        }
    for (uint32_t i = 0; i < MODULES; i++)
        run_module(&run, i);
    begin(&run);
    analyze_devices(&run, 2);
    assert_false(mt_lacks_requests(&run.report->devices[0]));
    assert_false(mt_lacks_requests(&run.report->devices[1]));
    release(&run);
}

/* `live` needs this: the warning requires no replay. */
TEST(queries_are_warned_of_missing_requests)
{
    const struct mt_question question = {.at = MT_AT_PEAK, .by = MT_BY_SITE};
    const struct mt_analyze_options options = {.path = "run", .question = &question};
    struct run run = {.count = 0};
    struct mt_error error;

    add(&run, MT_EVENT_ALLOC, VIRTUAL, 100 * MT_GIB);
    for (uint32_t i = 0; i < MODULES; i++)
        run_module(&run, i);
    begin(&run);
    if (mt_analyze(&run.source.source, &options, &run.report, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_true(mt_lacks_requests(&run.report->devices[0]));
    release(&run);
}

/* TensorFlow names no module: the stack of the region identifies it. */
TEST(requests_that_an_arena_serves_by_its_stack)
{
    static const char function[] = "tsl::BFCAllocator::Extend(unsigned long, unsigned long)";
    struct run run = {.count = 0};
    uint32_t text, frame;

    add(&run, MT_EVENT_ALLOC, VIRTUAL, 2 * MT_GIB);
    begin(&run);
    struct mt_symbols *symbols = &run.source.source.symbols;
    assert_int_equal(mt_symbols_string(symbols, function, strlen(function), &text), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, text, 0, 0, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &run.events[0].stack), MT_OK);
    analyze(&run);
    assert_true(mt_lacks_requests(&run.report->devices[0]));
    expect_first_line_names_the_option(&run);
    release(&run);
}

/* Each request is there: 3 MiB and 1 MiB for each module, freed after it. */
TEST(requests_that_the_driver_serves)
{
    struct run run = {.count = 0};

    add(&run, MT_EVENT_ALLOC, ASYNC, 3 * MT_MIB);
    for (uint32_t i = 0; i < MODULES; i++) {
        add(&run, MT_EVENT_ALLOC, ASYNC, MT_MIB)->addr = BASE + MT_GIB;
        run_module(&run, i);
        add(&run, MT_EVENT_FREE_REQUESTED, ASYNC, MT_MIB)->addr = BASE + MT_GIB;
        add(&run, MT_EVENT_FREE_COMPLETED, ASYNC, MT_MIB)->addr = BASE + MT_GIB;
    }
    begin(&run);
    assert_int_equal(mt_symbols_device(&run.source.source.symbols, 0, MT_NO_ID, 4 * MT_GIB), MT_OK);
    analyze(&run);
    const struct mt_xla_use *xla = run.report->devices[0].xla;
    assert_non_null(xla);
    assert_false(mt_lacks_requests(&run.report->devices[0]));
    assert_int_equal(xla->arena_count, 2);
    assert_true(xla->arenas[0].preallocated);
    assert_int_equal(xla->arenas[0].pool_bytes, 3 * MT_GIB); /* 75% of the device */
    assert_int_equal(xla->arenas[0].in_use_bytes, 4 * MT_MIB);
    assert_false(xla->arenas[1].preallocated);
    assert_int_equal(xla->arenas[1].pool_bytes, 8 * MT_MIB); /* regions: 4 MiB, then 4 MiB more */
    assert_int_equal(xla->arenas[1].requests, MODULES + 1);
    assert_non_null(strstr(run.text.data, "In XLA's own arena"));
    assert_null(strstr(run.text.data, "MISSING"));
    release(&run);
}

/* A program that uses the driver's pool itself has no such arena. */
TEST(programs_of_others)
{
    struct run run = {.count = 0};

    add(&run, MT_EVENT_ALLOC, ASYNC, 3 * MT_MIB);
    begin(&run);
    analyze(&run);
    assert_null(run.report->devices[0].xla);
    release(&run);
}

static const char *advice_of(const struct run *run, const char *id)
{
    const struct mt_device_report *device = &run->report->devices[0];

    for (uint32_t i = 0; i < device->finding_count; i++)
        if (!strcmp(device->findings[i].id, id))
            return device->findings[i].advice;
    return NULL;
}

/* Without a stack, names of modules identify JAX. Nothing identifies PyTorch. */
TEST(advice_is_that_of_the_framework)
{
    static const char role[] = "optimizer_state";

    for (int modules = 0; modules <= 1; modules++) {
        struct run run = {.count = 0};
        struct mt_event *event = add(&run, MT_EVENT_ALLOC, ASYNC, MT_GIB);

        for (uint32_t i = 0; i < MODULES && modules; i++)
            run_module(&run, i);
        begin(&run);
        assert_int_equal(
            mt_symbols_string(&run.source.source.symbols, role, strlen(role), &event->name), MT_OK);
        analyze(&run);
        const char *advice = advice_of(&run, "optimizer-state");
        assert_non_null(advice);
        assert_int_equal(strstr(advice, "optax") != NULL, modules);
        assert_null(strstr(advice, "FSDP"));
        release(&run);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
