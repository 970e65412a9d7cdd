/* Cells of sizes and lifetimes, on random blocks and on every capture: values are between their
 * edges, and sums are totals. */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "analyze.h"
#include "dice.h"
#include "import.h"
#include "lifetimes_model.h"
#include "util.h"

static uint64_t seed = 11;

static uint64_t dice(uint64_t below)
{
    return (dice_linear(&seed) >> 16) % below;
}

static uint64_t any_number(void)
{
    uint64_t high = dice(UINT64_C(1) << 32), low = dice(UINT64_C(1) << 32);

    return (high << 32 | low) >> dice(64);
}

static void check_size(uint64_t bytes)
{
    uint32_t column = mt_size_column(bytes);

    assert_true(column < MT_SIZE_COLUMNS);
    assert_true((double)bytes <= mt_size_edge(column));
    assert_true(column == 0 || (double)bytes > mt_size_edge(column - 1));
}

static void check_life(uint64_t ns)
{
    uint32_t row = mt_life_row(ns);

    assert_true(row < MT_LIFE_UNTIL_END);
    assert_true(row == 0 || (double)ns >= mt_life_edge(row));
    assert_true(row + 1 == MT_LIFE_UNTIL_END || (double)ns < mt_life_edge(row + 1));
}

static void every_number_is_between_its_edges(void **unused)
{
    uint64_t power;
    int i;

    (void)unused;
    for (i = 0; i < 20000; i++) {
        check_size(any_number());
        check_life(any_number());
    }
    for (power = 1; power; power <<= 1) {
        assert_int_equal(mt_size_column(power), 3 * mt_log2_floor(power));
        check_size(power - 1);
        check_size(power + 1);
    }
    for (power = 1, i = 0; i < 19; i++, power *= 10) {
        assert_int_equal(mt_life_row(power), 5 * i);
        check_life(power - 1);
    }
    check_size(UINT64_MAX);
    check_life(UINT64_MAX);
}

static void check_sums(const struct mt_lifetimes *lifetimes)
{
    struct mt_lifetime_sum all = {0, 0}, end = {0, 0}, small = {0, 0};
    uint32_t i, role;

    for (i = 0; i < lifetimes->cell_count; i++) {
        const struct mt_lifetime_cell *cell = &lifetimes->cells[i];
        uint64_t roles = 0;

        for (role = 0; role < MT_ROLE_COUNT; role++)
            roles += cell->role_bytes[role];
        assert_int_equal(roles, cell->bytes);
        assert_true(cell->blocks > 0);
        assert_true((double)cell->bytes <= (double)cell->blocks * mt_size_edge(cell->size));
        all.blocks += cell->blocks;
        all.bytes += cell->bytes;
        end.blocks += cell->life == MT_LIFE_UNTIL_END ? cell->blocks : 0;
        end.bytes += cell->life == MT_LIFE_UNTIL_END ? cell->bytes : 0;
        small.blocks += cell->size <= 60 ? cell->blocks : 0;
        assert_true(!i || cell->life > cell[-1].life ||
                    (cell->life == cell[-1].life && cell->size > cell[-1].size));
    }
    assert_int_equal(all.blocks, lifetimes->all.blocks);
    assert_int_equal(all.bytes, lifetimes->all.bytes);
    assert_int_equal(end.blocks, lifetimes->until_end.blocks);
    assert_int_equal(end.bytes, lifetimes->until_end.bytes);
    assert_int_equal(small.blocks, lifetimes->small.blocks);
}

static void sums_are_totals(void **unused)
{
    struct mt_lifetimes_builder *builder;
    struct mt_arena arena = {0};
    uint64_t bytes = 0, brief = 0, i;

    (void)unused;
    mt_lifetimes_builder_new(&arena, &builder);
    for (i = 0; i < 30000; i++) {
        struct mt_lifetime life = {.bytes = any_number() >> 20,
                                   .ns = any_number(),
                                   .ended = dice(10) > 0,
                                   .role = (enum mt_role)dice(MT_ROLE_COUNT)};

        mt_lifetimes_builder_add(builder, &life);
        bytes += life.bytes;
        brief += life.ended && life.ns < 1000000;
    }
    check_sums(mt_lifetimes_builder_finish(builder));
    assert_int_equal(mt_lifetimes_builder_finish(builder)->all.blocks, i);
    assert_int_equal(mt_lifetimes_builder_finish(builder)->all.bytes, bytes);
    assert_int_equal(mt_lifetimes_builder_finish(builder)->brief.blocks, brief);
    mt_arena_release(&arena);
}

/* Blocks that were never freed sum to the requested bytes at the end. */
static void check_capture(const char *path)
{
    struct mt_analyze_options options = {.models = MT_MODEL_LIFETIMES};
    struct mt_source *source = NULL;
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    uint32_t i;

    if (mt_open_any(path, NULL, &source, &error) != MT_OK ||
        mt_analyze(source, &options, &report, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    for (i = 0; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];
        const struct mt_lifetimes *lifetimes = device->lifetimes;

        assert_non_null(lifetimes);
        check_sums(lifetimes);
        if (device->end.active == device->end.allocated &&
            lifetimes->until_end.bytes != device->end.requested)
            fail_msg("%s: %llu, not %llu bytes at the end", path,
                     (unsigned long long)lifetimes->until_end.bytes,
                     (unsigned long long)device->end.requested);
        assert_true(lifetimes->all.blocks - lifetimes->older.blocks <= device->allocations);
    }
    mt_report_release(report);
    mt_source_close(source);
}

static void sums_of_every_capture_are_totals(void **unused)
{
    const char *folder = MEMTRACE_FIXTURES "/captures";
    DIR *entries = opendir(folder);
    struct dirent *entry;
    char path[600];
    int count = 0;

    (void)unused;
    assert_non_null(entries);
    while ((entry = readdir(entries))) {
        if (!strstr(entry->d_name, ".pickle.zst"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_capture(path);
        count++;
    }
    closedir(entries);
    assert_true(count > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_between_its_edges),
        cmocka_unit_test(sums_are_totals),
        cmocka_unit_test(sums_of_every_capture_are_totals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
