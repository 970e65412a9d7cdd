/* Compares allocated bytes, growth and what a step kept with a count of the events. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "fake_trace.h"
#include "phases.h"
#include "report.h"

struct sums {
    uint64_t bytes, requested_bytes, blocks;
};

/* Event at which the block of an allocation ends. */
static uint64_t end_of(const struct fake *fake, size_t birth)
{
    for (size_t i = birth + 1; i < fake->count; i++)
        if (fake->events[i].kind == MT_EVENT_FREE_REQUESTED &&
            fake->events[i].addr == fake->events[birth].addr &&
            fake->events[i].device == fake->events[birth].device)
            return i;
    return UINT64_MAX;
}

/* Blocks born in [from, until), and alive after event `alive`; of one stack, or of
 * all (`stack` NULL). */
static struct sums count(const struct fake *fake, uint16_t device, uint64_t from, uint64_t until,
                         uint64_t alive, const uint32_t *of_stack)
{
    struct sums sums = {0};

    for (size_t i = 0; i < fake->count; i++) {
        const struct mt_event *event = &fake->events[i];

        if (event->kind != MT_EVENT_ALLOC || event->device != device || i < from || i >= until ||
            (event->flags & MT_EVENT_INITIAL) || (of_stack && event->stack != *of_stack) ||
            (alive && end_of(fake, i) <= alive))
            continue;
        sums.bytes += event->aux_bytes;
        sums.requested_bytes += event->size_bytes;
        sums.blocks++;
    }
    return sums;
}

/* Steps that the history of a device covers. */
static uint32_t steps_of(const struct mt_report *report, const struct mt_device_report *device,
                         const struct mt_phase **steps)
{
    uint32_t step_count = 0;

    for (uint32_t i = 0; i < report->phase_count; i++)
        if (report->phases[i].is_step &&
            (!report->starts_in_middle ||
             mt_phase_last_event_before(&report->phases[i]) + 1 >= device->first_event))
            steps[step_count++] = &report->phases[i];
    return step_count;
}

static uint64_t begin_of(const struct mt_phase *phase)
{
    return mt_phase_last_event_before(phase) + 1;
}

static struct sums sum_of(const struct mt_population *population, const uint32_t *of_stack)
{
    struct sums sums = {0};

    for (uint32_t i = 0; i < population->holding_count; i++) {
        const struct mt_holding *holding = &population->holdings[i];

        if (of_stack && holding->stack != *of_stack)
            continue;
        assert_true(!holding->block_bytes ||
                    holding->bytes == holding->block_bytes * holding->blocks);
        sums.bytes += holding->bytes;
        sums.requested_bytes += holding->requested_bytes;
        sums.blocks += holding->blocks;
    }
    return sums;
}

static void check_sums(const struct fake *fake, const struct mt_device_report *device,
                       uint64_t from, uint64_t until, uint64_t alive)
{
    const struct mt_population *population = device->population;
    struct sums wanted = count(fake, device->device, from, until, alive, NULL);
    struct sums all = sum_of(population, NULL);

    assert_int_equal(population->bytes, wanted.bytes);
    assert_int_equal(population->requested_bytes, wanted.requested_bytes);
    assert_int_equal(population->blocks, wanted.blocks);
    assert_memory_equal(&all, &wanted, sizeof all);
    for (uint32_t i = 0; i < population->holding_count; i++) {
        uint32_t of_stack = population->holdings[i].stack;

        wanted = count(fake, device->device, from, until, alive, &of_stack);
        all = sum_of(population, &of_stack);
        assert_memory_equal(&all, &wanted, sizeof all);
        for (uint32_t j = 0; j < i; j++) { /* no group twice */
            const struct mt_holding *a = &population->holdings[i], *b = &population->holdings[j];

            assert_false(a->stack == b->stack && a->phase == b->phase && a->role == b->role &&
                         a->tie == b->tie && a->tied == b->tied &&
                         a->block_bytes == b->block_bytes);
        }
    }
}

static void check_device(const struct fake *fake, const struct mt_report *report,
                         const struct mt_device_report *device,
                         const struct mt_analyze_options *options)
{
    const struct mt_phase **steps = calloc(report->phase_count + 1, sizeof *steps);
    const struct mt_population *population = device->population;
    uint32_t n = steps_of(report, device, steps), first, kept = UINT32_MAX;

    assert_non_null(population);
    switch (options->population) {
    case MT_POPULATION_ALLOCATED: check_sums(fake, device, 0, UINT64_MAX, 0); break;
    case MT_POPULATION_GREW:
        first = n / 4 > 2 ? n / 4 : 2;
        assert_int_equal(population->missing, n < first + 3);
        if (!population->missing)
            check_sums(fake, device, begin_of(steps[first]), begin_of(steps[n - 2]),
                       mt_phase_last_event_before(steps[n - 1]));
        break;
    case MT_POPULATION_KEPT:
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!options->window.has_step || steps[i]->step == options->window.step)
                kept = i;
        assert_int_equal(population->missing, kept == UINT32_MAX);
        if (!population->missing)
            check_sums(fake, device, begin_of(steps[kept]), begin_of(steps[kept + 1]),
                       mt_phase_last_event_before(steps[kept + 1]));
        break;
    }
    if (population->missing)
        assert_int_equal(population->holding_count, 0);
    free(steps);
}

static void run(uint64_t round, bool middle)
{
    const struct mt_question question = {.at = MT_AT_PEAK};
    struct mt_analyze_options options = {
        .path = "random", .models = MT_MODEL_POPULATION, .question = &question};
    static struct fake fake;
    struct mt_report *report;
    struct mt_error error;

    seed = 88172645463325252u + round * 7919 + middle;
    make(&fake, false, middle, false);
    options.replay.policy = "recorded";
    options.population = (enum mt_population_of)(round % MT_POPULATION_KINDS);
    options.window.has_step = round % 2;
    options.window.step = (int64_t)(round % 5);
    if (options.population == MT_POPULATION_ALLOCATED)
        options.window.has_step = false;
    assert_int_equal(mt_analyze(&fake.source, &options, &report, &error), MT_OK);
    for (uint32_t i = 0; i < report->device_count; i++)
        check_device(&fake, report, &report->devices[i], &options);
    mt_report_release(report);
    unmake(&fake);
}

TEST(random_runs)
{
    for (uint64_t round = 0; round < 120; round++)
        run(round, false);
}

TEST(random_rings)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, true);
}

TEST(wild_traces)
{
    static struct fake fake;

    for (uint64_t round = 0; round < 150; round++) {
        struct mt_analyze_options options = {
            .path = "wild",
            .models = MT_MODEL_POPULATION | MT_MODEL_FLAMECHART,
            .population = (enum mt_population_of)(round % MT_POPULATION_KINDS),
            .window = {.has_step = round % 2,
                       .step = (int64_t)(round % 4),
                       .phase = round % 3 ? NULL : "forward"}};
        struct mt_report *report;
        struct mt_error error;

        seed = 99172645463325252u + round * 104729;
        make(&fake, true, round % 3 == 0, round % 5 > 2);
        if (!mt_analyze(&fake.source, &options, &report, &error))
            mt_report_release(report);
        unmake(&fake);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
