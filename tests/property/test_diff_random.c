/* For any two runs, A's bytes plus all changes are B's: by role, by phase, by site. A run does not
 * differ from itself, even if its lines moved. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "diff.h"
#include "fake_trace.h"
#include "report.h"

struct run {
    struct fake fake;
    struct mt_report *report;
};

/* The user's file gets another name. */
static void rename_file(struct fake *fake)
{
    static const char to[] = "/a/better_name.py";
    struct mt_symbols *symbols = &fake->source.symbols;
    uint32_t file;

    assert_int_equal(mt_symbols_string(symbols, to, strlen(to), &file), MT_OK);
    for (uint32_t i = 0; i < symbols->frame_count; i++)
        if (strcmp(mt_symbols_text(symbols, symbols->frames[i].file), "/a/train.py") == 0)
            symbols->frames[i].file = file;
}

static void make_run(struct run *run, uint64_t from, uint32_t lines_down, bool renamed,
                     const struct mt_question *question)
{
    struct mt_analyze_options options = {.path = "random", .question = question};
    struct mt_error error;

    seed = 88172645463325252u + from * 7919;
    make(&run->fake, false, from % 5 == 4, false);
    for (uint32_t i = 0; i < run->fake.source.symbols.frame_count; i++)
        run->fake.source.symbols.frames[i].line += lines_down;
    if (renamed)
        rename_file(&run->fake);
    options.replay.policy = "recorded";
    assert_int_equal(mt_analyze(&run->fake.source, &options, &run->report, &error), MT_OK);
}

static void unmake_run(struct run *run)
{
    mt_report_release(run->report);
    unmake(&run->fake);
}

static uint64_t blocks_of(const struct mt_answer *answer)
{
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < answer->instant.holding_count; i++)
        blocks += answer->instant.holdings[i].blocks;
    return blocks;
}

static void check_rows(const struct mt_device_diff *diff, const struct mt_diff_rows *rows)
{
    uint64_t a = 0, b = 0, a_blocks = 0, b_blocks = 0, last = UINT64_MAX;
    int64_t change = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        const struct mt_diff_row *row = &rows->rows[i];
        uint64_t size = (uint64_t)llabs(mt_diff_change(row));

        assert_true(size <= last);
        assert_true(row->a_blocks || row->b_blocks);
        last = size;
        a += row->a_bytes;
        b += row->b_bytes;
        a_blocks += row->a_blocks;
        b_blocks += row->b_blocks;
        change += mt_diff_change(row);
    }
    assert_int_equal(a, diff->a->answer->instant.bytes.allocated);
    assert_int_equal(b, diff->b->answer->instant.bytes.allocated);
    assert_true(a + (uint64_t)change == b);
    assert_int_equal(a_blocks, blocks_of(diff->a->answer));
    assert_int_equal(b_blocks, blocks_of(diff->b->answer));
}

static void check_same(const struct mt_diff_rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        assert_int_equal(rows->rows[i].a_bytes, rows->rows[i].b_bytes);
        assert_int_equal(rows->rows[i].a_blocks, rows->rows[i].b_blocks);
    }
}

static void compare(const struct run *a, const struct run *b, bool is_same)
{
    struct mt_arena arena = {0};

    for (uint32_t i = 0; i < a->report->device_count && i < b->report->device_count; i++) {
        struct mt_device_diff diff = {.a = &a->report->devices[i], .b = &b->report->devices[i]};

        if (diff.a->answer->missing || diff.b->answer->missing)
            continue;
        mt_diff_devices(&arena, a->report, b->report, &diff);
        check_rows(&diff, &diff.roles);
        check_rows(&diff, &diff.phases);
        check_rows(&diff, &diff.sites);
        if (!is_same)
            continue;
        check_same(&diff.roles);
        check_same(&diff.phases);
        check_same(&diff.sites);
    }
    mt_arena_release(&arena);
}

TEST(random_pairs)
{
    for (uint64_t round = 0; round < 150; round++) {
        struct mt_question question = {.at = round % 2 ? MT_AT_END : MT_AT_PEAK};
        static struct run a, b;

        make_run(&a, 2 * round, 0, false, &question);
        make_run(&b, 2 * round + 1, (uint32_t)(round % 3), round % 7 == 0, &question);
        compare(&a, &b, false);
        unmake_run(&a);
        unmake_run(&b);
    }
}

TEST(moved_lines)
{
    for (uint64_t round = 0; round < 150; round++) {
        struct mt_question question = {.at = MT_AT_EVENT, .value = round};
        static struct run a, b;

        make_run(&a, round, 0, false, &question);
        make_run(&b, round, (uint32_t)(round % 4), false, &question);
        compare(&a, &b, true);
        unmake_run(&a);
        unmake_run(&b);
    }
}

/* The file has another name and other lines: its sites are neither removed nor new. */
TEST(a_file_with_another_name)
{
    for (uint64_t round = 0; round < 150; round++) {
        struct mt_question question = {.at = MT_AT_EVENT, .value = round};
        static struct run a, b;

        make_run(&a, round, 0, false, &question);
        make_run(&b, round, (uint32_t)(round % 4), true, &question);
        compare(&a, &b, true);
        unmake_run(&a);
        unmake_run(&b);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
