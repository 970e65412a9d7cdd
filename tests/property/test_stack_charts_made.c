/* Icicle and flame chart of reports that no real run has: almost empty ones, ones with more than
 * fits, and random ones. Nothing leaves the picture, and no text overlaps. */
#include "stack_chart_checks.h"

#include <stdio.h>
#include <stdlib.h>

#include "dice.h"
#include "flamechart_model.h"
#include "icicle.h"
#include "util.h"

static void draw_both(const struct mt_report *report, const struct mt_device_report *device)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(all_options); i++) {
        struct mt_drawing drawing;

        mt_chart_find("icicle")->draw(report, device, &all_options[i], &drawing);
        check_picture("little", &drawing);
        mt_drawing_release(&drawing);
        mt_chart_find("flamechart")->draw(report, device, &all_options[i], &drawing);
        check_picture("little", &drawing);
        mt_drawing_release(&drawing);
    }
}

TEST(almost_empty_reports_are_drawn)
{
    struct mt_symbols symbols = {0};
    struct mt_report report = {.name = "little", .symbols = &symbols};
    struct mt_device_report device = {.instant_count = 1};
    struct mt_holding holding = {.stack = MT_NO_ID,
                                 .phase = MT_NO_PHASE,
                                 .role = MT_ROLE_OTHER,
                                 .block_bytes = 512,
                                 .blocks = 1,
                                 .bytes = 512,
                                 .requested_bytes = 4};
    struct mt_instant instant = {.phase = MT_NO_PHASE, .step = MT_NO_STEP, .t_ns = 5};
    struct mt_flamechart_window window = {5, 5, 0, 0, MT_NO_STEP, 0, NULL};
    struct mt_event event = {.kind = MT_EVENT_ALLOC, .t_ns = 5, .stack = MT_NO_ID};
    struct mt_flamechart_builder *builder;
    struct mt_arena arena = {0};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    report.first_t_ns = report.last_t_ns = 5;
    draw_both(&report, NULL); /* an empty trace */
    draw_both(&report, &device);
    device.instants = &instant; /* nothing alive, no event */
    report.devices = &device;
    report.device_count = 1;
    draw_both(&report, &device);
    instant.holdings = &holding; /* one block, one event, no phase, no stack */
    instant.holding_count = 1;
    mt_flamechart_builder_new(&arena, &window, NULL, 0, &symbols, &builder);
    mt_flamechart_builder_add(builder, &event, MT_NO_PHASE, 512, 512);
    mt_flamechart_builder_finish(builder, &device.flamechart);
    assert_int_equal(device.flamechart->peak_allocated, 512);
    draw_both(&report, &device);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

/* Deep stacks, endless and hostile names, ten thousand small blocks. */
TEST(large_reports_are_bounded)
{
    enum { HOLDINGS = 10000, STACKS = 3000 };
    static struct mt_holding holdings[HOLDINGS];
    struct mt_symbols symbols = {0};
    struct mt_report report = {.name = "much", .symbols = &symbols};
    struct mt_device_report device = {.instant_count = 1};
    struct mt_instant instant = {
        .holdings = holdings, .holding_count = HOLDINGS, .phase = MT_NO_PHASE, .step = MT_NO_STEP};
    struct mt_flamechart_window window = {0, HOLDINGS * 10, 0, HOLDINGS, MT_NO_STEP, 0, NULL};
    struct mt_flamechart_builder *builder;
    struct mt_arena arena = {0};
    uint64_t seed = 3, allocated = 0;
    uint32_t file, stack = MT_NO_ID;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, "/w/\x01\xff<&>.py", 10, &file), MT_OK);
    for (uint32_t i = 0; i < STACKS; i++) {
        char name[400];
        uint32_t function, frame;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        snprintf(name, sizeof name, "%u_%0*u", i, (int)(seed >> 40) % 300 + 1, i % 7);
        assert_int_equal(mt_symbols_string(&symbols, name, strlen(name), &function), MT_OK);
        assert_int_equal(mt_symbols_frame(&symbols, function, file, i, &frame), MT_OK);
        assert_int_equal(mt_symbols_stack(&symbols, i % 40 ? stack : MT_NO_ID, frame, &stack),
                         MT_OK);
    }
    mt_flamechart_builder_new(&arena, &window, NULL, 0, &symbols, &builder);
    for (uint32_t i = 0; i < HOLDINGS; i++) {
        struct mt_event event = {.kind = MT_EVENT_ALLOC, .seq = i, .t_ns = i * 10};

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        holdings[i] = (struct mt_holding){.stack = (uint32_t)(seed >> 33) % STACKS,
                                          .phase = MT_NO_PHASE,
                                          .role = (enum mt_role)((seed >> 20) % MT_ROLE_COUNT),
                                          .block_bytes = 512 * ((seed >> 40) % 5000 + 1),
                                          .blocks = 1};
        holdings[i].bytes = holdings[i].requested_bytes = holdings[i].block_bytes;
        allocated += holdings[i].bytes;
        event.stack = holdings[i].stack;
        mt_flamechart_builder_add(builder, &event, MT_NO_PHASE, (int64_t)holdings[i].bytes,
                                  allocated);
    }
    mt_flamechart_builder_finish(builder, &device.flamechart);
    device.instants = &instant;
    report.devices = &device;
    report.device_count = 1;
    draw_both(&report, &device);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

enum { RANDOM_PHASES = 200, RANDOM_EVENTS = 3000, RANDOM_STACKS = 200 };

struct random_world {
    struct mt_symbols symbols;
    struct mt_report report;
    struct mt_device_report device;
    struct mt_instant instant;
    struct mt_phase phases[RANDOM_PHASES];
    struct mt_phase_use uses[RANDOM_PHASES];
    bool main_phase[RANDOM_PHASES];
    struct mt_holding holdings[RANDOM_EVENTS];
    struct mt_arena arena;
};

static const char *random_name(void)
{
    static const char *const names[] = {"forward",
                                        "backward",
                                        "step#3",
                                        "optimizer",
                                        "x",
                                        "a rather long name of a phase",
                                        "zero_grad",
                                        "\xC3\xA4\xC3\xB6",
                                        "nccl:all_reduce",
                                        ""};

    return names[linear_below(MT_ARRAY_LEN(names))];
}

static void random_symbols(struct mt_symbols *symbols)
{
    static const char *const files[] = {"/w/train.py", "/v/site-packages/torch/nn/modules/m.py",
                                        "/v/site-packages/torch/optim/a.py", "??", "<string>"};

    assert_int_equal(mt_symbols_init(symbols), MT_OK);
    for (uint32_t i = 0; i < RANDOM_STACKS; i++) {
        const char *name = random_name(), *path = files[linear_below(5)];
        uint32_t function, file, frame, stack, count = symbols->stack_count;
        uint32_t parent = count && linear_below(9) ? linear_below(count) : MT_NO_ID;

        assert_int_equal(mt_symbols_string(symbols, name, strlen(name), &function), MT_OK);
        assert_int_equal(mt_symbols_string(symbols, path, strlen(path), &file), MT_OK);
        assert_int_equal(mt_symbols_frame(symbols, function, file, linear_below(50), &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(symbols, parent, frame, &stack), MT_OK);
    }
}

/* Events of one run with phases that open and close among them. */
static void random_run(struct random_world *world)
{
    struct mt_report *report = &world->report;
    uint64_t t_ns = 1000, allocated = 1u << 30, seq = 0;
    uint32_t scale = 1u << linear_below(20), count = 1 + linear_below(RANDOM_EVENTS - 1);
    struct mt_flamechart_window window = {.begin_t_ns = t_ns, .step = MT_NO_STEP, .bins = 0};
    struct mt_flamechart_builder *builder;
    static struct mt_event events[RANDOM_EVENTS];
    static int32_t phase_of[RANDOM_EVENTS];
    int32_t open = MT_NO_PHASE;

    for (uint32_t i = 0; i < count; seq++) {
        t_ns += linear_below(scale);
        if (linear_below(20) == 0 && report->phase_count < RANDOM_PHASES) {
            struct mt_phase *phase = &world->phases[report->phase_count];

            *phase = (struct mt_phase){.name = random_name(),
                                       .path = "path",
                                       .step = MT_NO_STEP,
                                       .parent = open,
                                       .is_step = open == MT_NO_PHASE && linear_below(2),
                                       .is_plumbing = linear_below(6) == 0,
                                       .begin_t_ns = t_ns,
                                       .begin_event = seq,
                                       .end_event = UINT64_MAX};
            open = (int32_t)report->phase_count++;
        } else if (linear_below(20) == 0 && open != MT_NO_PHASE) {
            world->phases[open].end_event = seq;
            world->phases[open].end_t_ns = t_ns;
            open = world->phases[open].parent;
        } else {
            uint32_t stack = linear_below(RANDOM_STACKS + 30);

            events[i] = (struct mt_event){.kind = linear_below(2) ? MT_EVENT_ALLOC
                                                                  : MT_EVENT_FREE_REQUESTED,
                                          .seq = seq,
                                          .t_ns = t_ns,
                                          .stack = stack < RANDOM_STACKS ? stack : MT_NO_ID};
            phase_of[i++] = open;
        }
    }
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (world->phases[i].end_event == UINT64_MAX) {
            world->phases[i].end_event = seq;
            world->phases[i].end_t_ns = t_ns;
        }
    window.end_t_ns = t_ns;
    window.end_event = seq;
    report->last_t_ns = t_ns;
    mt_flamechart_builder_new(&world->arena, &window, world->phases, report->phase_count,
                              &world->symbols, &builder);
    for (uint32_t i = 0; i < count; i++) {
        int64_t delta = (int64_t)linear_below(1u << 21) - (1 << 20);

        allocated += (uint64_t)delta;
        mt_flamechart_builder_add(builder, &events[i], phase_of[i], delta, allocated);
        world->holdings[i] = (struct mt_holding){.stack = events[i].stack,
                                                 .phase = phase_of[i],
                                                 .role = linear_below(MT_ROLE_COUNT),
                                                 .block_bytes = 512u << linear_below(16),
                                                 .blocks = 1 + linear_below(3)};
        world->holdings[i].bytes = world->holdings[i].block_bytes * world->holdings[i].blocks;
    }
    mt_flamechart_builder_finish(builder, &world->device.flamechart);
    world->instant.holding_count = count;
}

TEST(random_reports_keep_their_texts_apart)
{
    static struct random_world world;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_state = seed;
        memset(&world, 0, sizeof world);
        random_symbols(&world.symbols);
        world.report = (struct mt_report){.name = "random",
                                          .symbols = &world.symbols,
                                          .first_t_ns = 1000,
                                          .phases = world.phases,
                                          .main_phase = world.main_phase,
                                          .devices = &world.device,
                                          .device_count = 1};
        world.device = (struct mt_device_report){
            .instants = &world.instant, .instant_count = 1, .phase_uses = world.uses};
        world.instant.holdings = world.holdings;
        world.instant.phase = MT_NO_PHASE;
        world.instant.step = MT_NO_STEP;
        random_run(&world);
        draw_both(&world.report, &world.device);
        mt_arena_release(&world.arena);
        mt_symbols_release(&world.symbols);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
