/* Compares real runs: known differences are found, and no others. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "diff.h"
#include "history.h"
#include "util.h"

struct pair {
    struct capture a, b;
    struct mt_arena arena;
    struct mt_device_diff diff;
};

static struct capture read_capture(const char *capture, const struct mt_question *question)
{
    const struct mt_analyze_options options = {.question = question, .models = MT_MODEL_HISTORY};

    return capture_analyze(capture_path(".", capture, ".zst"), &options);
}

static void read_pair(struct pair *pair, const char *a, const char *b, enum mt_question_at at)
{
    const struct mt_question question = {.at = at};

    memset(pair, 0, sizeof *pair);
    pair->a = read_capture(a, &question);
    pair->b = read_capture(b, &question);
    pair->diff.a = &pair->a.report->devices[0];
    pair->diff.b = &pair->b.report->devices[0];
    mt_diff_devices(&pair->arena, pair->a.report, pair->b.report, &pair->diff);
}

static void close_pair(struct pair *pair)
{
    mt_arena_release(&pair->arena);
    mt_report_release(pair->a.report);
    mt_report_release(pair->b.report);
    mt_source_close(pair->a.source);
    mt_source_close(pair->b.source);
}

static struct mt_moved_sites moved_sites(struct pair *pair)
{
    const struct mt_diff diff = {.a = pair->a.report, .b = pair->b.report};
    struct mt_moved_sites moved;

    mt_diff_moved_sites(&pair->arena, &diff, &pair->diff, &moved);
    return moved;
}

struct found {
    uint32_t changed, is_new, gone, moved;
    int64_t change;
};

static struct found look(const struct mt_diff_rows *rows)
{
    struct found found = {0};

    for (uint32_t i = 0; i < rows->count; i++) {
        const struct mt_diff_row *row = &rows->rows[i];

        found.changed += mt_diff_change(row) != 0;
        found.is_new += !row->a_blocks;
        found.gone += !row->b_blocks;
        found.moved += row->moved;
        found.change += mt_diff_change(row);
    }
    return found;
}

static int64_t allocated_change(const struct pair *pair)
{
    return (int64_t)(pair->diff.b->answer->instant.bytes.allocated -
                     pair->diff.a->answer->instant.bytes.allocated);
}

static uint64_t unused(const struct mt_answer *answer)
{
    return answer->instant.bytes.reserved - answer->instant.bytes.active;
}

static void check_closes(const struct pair *pair)
{
    assert_int_equal(look(&pair->diff.roles).change, allocated_change(pair));
    assert_int_equal(look(&pair->diff.phases).change, allocated_change(pair));
    assert_int_equal(look(&pair->diff.sites).change, allocated_change(pair));
}

TEST(a_run_and_itself)
{
    static const char *const captures[] = {"captures/graph.pickle", "captures/streams.pickle",
                                           "captures/leakval_ring.pickle", "recorded/mixed.trace"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        struct pair pair;

        read_pair(&pair, captures[i], captures[i], MT_AT_PEAK);
        struct found sites = look(&pair.diff.sites);
        assert_true(pair.diff.sites.count > 0);
        assert_int_equal(sites.changed + sites.is_new + sites.gone + sites.moved, 0);
        assert_int_equal(look(&pair.diff.roles).changed + look(&pair.diff.phases).changed, 0);
        assert_int_equal(moved_sites(&pair).count, 0);
        close_pair(&pair);
    }
}

/* The same program under max_split_size_mb: the blocks are the same, with different rounding. Only
 * the memory that the allocator holds beyond them differs. */
TEST(other_options)
{
    struct pair pair;

    read_pair(&pair, "captures/gpt_default.pickle", "captures/gpt_split64.pickle", MT_AT_PEAK);
    check_closes(&pair);
    struct found sites = look(&pair.diff.sites);
    assert_int_equal(sites.is_new + sites.gone + sites.moved, 0);
    for (uint32_t i = 0; i < pair.diff.sites.count; i++)
        assert_int_equal(pair.diff.sites.rows[i].a_blocks, pair.diff.sites.rows[i].b_blocks);
    assert_int_equal(pair.diff.a->answer->instant.bytes.requested,
                     pair.diff.b->answer->instant.bytes.requested);
    assert_true(unused(pair.diff.b->answer) > 3 * unused(pair.diff.a->answer));
    close_pair(&pair);
}

/* Another seed, and lines moved by five: the sites match. */
TEST(another_seed)
{
    struct pair pair;

    read_pair(&pair, "captures/gpt_default.pickle", "captures/gpt_seed2.pickle", MT_AT_PEAK);
    check_closes(&pair);
    struct found sites = look(&pair.diff.sites);
    assert_int_equal(sites.is_new + sites.gone, 0);
    assert_true(sites.moved > 10 && sites.changed >= 10);
    close_pair(&pair);
}

/* Native frames in addition to those of Python: the sites match. */
TEST(native_stacks)
{
    struct pair pair;

    read_pair(&pair, "captures/seq2seq.pickle", "captures/seq2seq_native.pickle", MT_AT_PEAK);
    check_closes(&pair);
    struct found sites = look(&pair.diff.sites);
    assert_int_equal(sites.is_new + sites.gone + sites.changed, 0);
    close_pair(&pair);
}

/* Under a limit, only the cache is smaller. */
TEST(a_limit)
{
    struct pair pair;

    read_pair(&pair, "captures/seq2seq.pickle", "captures/seq2seq_cap.pickle", MT_AT_PEAK);
    check_closes(&pair);
    assert_int_equal(look(&pair.diff.sites).changed, 0);
    assert_int_equal(allocated_change(&pair), 0);
    assert_true(unused(pair.diff.b->answer) < unused(pair.diff.a->answer));
    close_pair(&pair);
}

TEST(programs_that_have_little_in_common)
{
    struct pair pair;

    read_pair(&pair, "captures/leak.pickle", "captures/graph.pickle", MT_AT_RESERVED_PEAK);
    check_closes(&pair);
    struct found sites = look(&pair.diff.sites);
    assert_true(sites.is_new > 0 && sites.gone > 0);
    close_pair(&pair);
}

static void without_numbers(const char *text, char *out, size_t capacity)
{
    size_t length = 0;

    for (; *text && length + 1 < capacity; text++)
        if (*text < '0' || *text > '9')
            out[length++] = *text;
    out[length] = '\0';
}

static const struct mt_moved_site *find_moved(const struct mt_moved_sites *moved,
                                              const struct mt_history_group *group)
{
    for (uint32_t i = 0; i < moved->count; i++)
        if (!strcmp(moved->list[i].a, group->site) && !strcmp(moved->list[i].phase, group->phase))
            return &moved->list[i];
    return NULL;
}

/* The lines of train.py moved, so each of its sites has a partner, also those that no peak holds.
 * Only their numbers differ, and no two sites of A have one partner. */
TEST(sites_of_whole_runs)
{
    struct pair pair;
    uint32_t in_train = 0;

    read_pair(&pair, "captures/gpt_default.pickle", "captures/gpt_seed2.pickle", MT_AT_PEAK);
    struct mt_moved_sites moved = moved_sites(&pair);
    assert_true(moved.count > look(&pair.diff.sites).moved);
    for (uint32_t i = 0; i < moved.count; i++) {
        char a[400], b[400];

        assert_non_null(moved.list[i].b);
        without_numbers(moved.list[i].a, a, sizeof a);
        without_numbers(moved.list[i].b, b, sizeof b);
        assert_string_equal(a, b);
        assert_string_not_equal(moved.list[i].a, moved.list[i].b);
        for (uint32_t j = 0; j < i; j++)
            assert_true(strcmp(moved.list[i].b, moved.list[j].b) != 0 ||
                        strcmp(moved.list[i].phase, moved.list[j].phase) != 0);
    }
    for (uint32_t i = 0; i < pair.diff.a->history->group_count; i++) {
        const struct mt_history_group *group = &pair.diff.a->history->groups[i];

        if (strstr(group->site, "train.py")) {
            assert_non_null(find_moved(&moved, group));
            in_train++;
        }
    }
    assert_true(in_train > 20);
    close_pair(&pair);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
