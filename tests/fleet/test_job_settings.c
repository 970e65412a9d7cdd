/* Which ranks are replayed for --tune, and which setting is chosen, against slow models. */
#include "dice.h"
#include "job_settings.h"
#include "made_job.h"

enum { MAX_ROWS = 6, MAX_SETTINGS = 12, ROUNDS = 4000, MOST_ROWS = 80 };

/* A trial with small numbers, so that equals are common. */
struct made_trial {
    uint64_t beside[MAX_ROWS];
    struct mt_job_cell before[MAX_ROWS], cells[MAX_SETTINGS * MAX_ROWS];
    const char *confs[MAX_SETTINGS];
    struct mt_job_trial trial;
};

static struct mt_job_cell roll_cell(struct dice *dice, bool is_whole)
{
    return (struct mt_job_cell){.peak_bytes = dice_below(dice, 4),
                                .driver_calls = dice_below(dice, 3),
                                .is_searched = is_whole || dice_below(dice, 8),
                                .serves = is_whole || dice_below(dice, 8),
                                .is_exact = dice_below(dice, 2),
                                .limit_bytes = dice_below(dice, 4),
                                .need_bytes = dice_below(dice, 4)};
}

static void roll_trial(struct dice *dice, struct made_trial *made)
{
    static const char *const confs[] = {"", "a:1", "a:1,b:2", "a:2", "a:1,b:2,c:3"};
    uint32_t rows = 1 + (uint32_t)dice_below(dice, MAX_ROWS);
    uint32_t settings = (uint32_t)dice_below(dice, MAX_SETTINGS + 1);

    made->trial = (struct mt_job_trial){.row_count = rows,
                                        .beside_bytes = made->beside,
                                        .before = made->before,
                                        .setting_count = settings,
                                        .confs = made->confs,
                                        .cells = made->cells};
    for (uint32_t r = 0; r < rows; r++) {
        made->beside[r] = dice_below(dice, 4);
        made->before[r] = roll_cell(dice, true);
    }
    for (uint32_t i = 0; i < settings; i++)
        made->confs[i] = confs[dice_below(dice, MT_ARRAY_LEN(confs))];
    for (uint32_t i = 0; i < settings * rows; i++)
        made->cells[i] = roll_cell(dice, false);
}

static uint64_t need_of(const struct mt_job_trial *trial, const struct mt_job_cell *cells,
                        uint32_t row)
{
    return cells[row].need_bytes + trial->beside_bytes[row];
}

/* What is compared, as digits of one number: the largest need, the limit, the sum, calls, options.
 * Each is less than 1,000. */
static uint64_t slow_score(const struct mt_job_trial *trial, uint32_t setting, uint32_t first,
                           uint32_t count)
{
    const struct mt_job_cell *cells = trial->cells + (size_t)setting * trial->row_count;
    uint64_t need = 0, limit = 0, sum = 0, calls = 0, options = 0;

    for (uint32_t r = first; r < first + count; r++) {
        if (!cells[r].is_searched || !cells[r].serves)
            return UINT64_MAX;
        need = need > need_of(trial, cells, r) ? need : need_of(trial, cells, r);
        limit = limit > cells[r].limit_bytes ? limit : cells[r].limit_bytes;
        sum += need_of(trial, cells, r);
        calls += cells[r].driver_calls;
    }
    for (const char *at = trial->confs[setting]; *at; at++)
        options += *at == ':';
    return (((need * 1000 + limit) * 1000 + sum) * 1000 + calls) * 1000 + options;
}

static uint64_t slow_before(const struct mt_job_trial *trial, uint32_t first, uint32_t count)
{
    uint64_t need = 0;

    for (uint32_t r = first; r < first + count; r++)
        need = need > need_of(trial, trial->before, r) ? need : need_of(trial, trial->before, r);
    return need;
}

/* The first of the lowest scores that is below what the rows need. */
static uint32_t slow_best(const struct mt_job_trial *trial, uint32_t first, uint32_t count)
{
    uint64_t least = slow_before(trial, first, count) * 1000000000000;
    uint32_t best = MT_NO_SETTING;

    for (uint32_t i = 0; i < trial->setting_count; i++)
        if (slow_score(trial, i, first, count) < least) {
            least = slow_score(trial, i, first, count);
            best = i;
        }
    return best;
}

static void check_largest(const struct mt_job_trial *trial, const struct mt_job_cell *cells,
                          const struct mt_job_largest *largest)
{
    bool is_exact = true;

    assert_true(largest->row < trial->row_count);
    assert_int_equal(need_of(trial, cells, largest->row), largest->needed_bytes);
    for (uint32_t r = 0; r < trial->row_count; r++) {
        assert_true(need_of(trial, cells, r) < largest->needed_bytes + (r >= largest->row));
        assert_true(cells[r].limit_bytes <= largest->limit_bytes);
        is_exact &= cells[r].is_exact;
    }
    assert_int_equal(largest->is_exact, is_exact);
}

TEST(the_choice_is_that_of_a_slow_model)
{
    struct dice dice = {.state = 1};
    struct made_trial made;
    uint32_t chosen = 0;

    for (int round = 0; round < ROUNDS; round++) {
        const struct mt_job_trial *trial = &made.trial;
        struct mt_job_choice choice;

        roll_trial(&dice, &made);
        mt_job_trial_choose(trial, &choice);
        assert_int_equal(choice.setting, slow_best(trial, 0, trial->row_count));
        check_largest(trial, trial->before, &choice.before);
        check_largest(trial,
                      choice.setting == MT_NO_SETTING
                          ? trial->before
                          : trial->cells + (size_t)choice.setting * trial->row_count,
                      &choice.after);
        for (uint32_t r = 0; r < trial->row_count; r++)
            assert_int_equal(mt_job_trial_own_best(trial, r), slow_best(trial, r, 1));
        chosen += choice.setting != MT_NO_SETTING;
    }
    assert_in_range(chosen, ROUNDS / 10, ROUNDS * 9 / 10);
}

static uint64_t peak_of(const struct mt_job_trial *trial, uint32_t setting)
{
    uint64_t peak = 0;

    for (uint32_t r = 0; r < trial->row_count; r++) {
        uint64_t bytes = trial->cells[(size_t)setting * trial->row_count + r].peak_bytes +
                         trial->beside_bytes[r];

        peak = peak > bytes ? peak : bytes;
    }
    return peak;
}

/* A setting is listed if fewer than `most` come before it. */
TEST(the_shortlist_has_the_smallest_peaks)
{
    struct dice dice = {.state = 2};
    bool is_listed[MAX_SETTINGS];
    struct made_trial made;

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t most = (uint32_t)dice_below(&dice, MAX_SETTINGS + 2);

        roll_trial(&dice, &made);
        mt_job_trial_shortlist(&made.trial, most, is_listed);
        for (uint32_t i = 0; i < made.trial.setting_count; i++) {
            uint32_t before = 0;

            for (uint32_t k = 0; k < made.trial.setting_count; k++)
                before += peak_of(&made.trial, k) < peak_of(&made.trial, i) ||
                          (peak_of(&made.trial, k) == peak_of(&made.trial, i) && k < i);
            assert_int_equal(is_listed[i], before < most);
        }
    }
}

TEST(a_sum_beyond_64_bits_is_the_most)
{
    const uint64_t beside[] = {UINT64_MAX, 0};
    const struct mt_job_cell before[] = {{.is_searched = true, .serves = true, .need_bytes = 5},
                                         {.is_searched = true, .serves = true, .need_bytes = 9}};
    const struct mt_job_trial trial = {.row_count = 2, .beside_bytes = beside, .before = before};
    struct mt_job_choice choice;

    mt_job_trial_choose(&trial, &choice);
    assert_true(choice.before.needed_bytes == UINT64_MAX);
    assert_int_equal(choice.before.row, 0);
    assert_int_equal(choice.setting, MT_NO_SETTING);
}

/* What a row is ordered by: its need, and the reserved peak if its allocator's is not known. */
static uint64_t slow_need(const struct mt_rank_record *record)
{
    uint64_t peak = record->reserved_peak.bytes + record->outside_bytes + record->context_bytes;

    if (record->allocator_need_is_known || record->needed_bytes > peak)
        return record->needed_bytes;
    return peak;
}

static bool comes_first(const struct mt_job_report *report, uint32_t a, uint32_t b)
{
    uint64_t need_a = slow_need(report->rows[a].record);
    uint64_t need_b = slow_need(report->rows[b].record);

    return need_a > need_b || (need_a == need_b && a < b);
}

/* Rows before `row` that can be replayed: all of them, or those of its cluster. */
static uint32_t count_before(const struct mt_job_report *report, const bool *can_replay,
                             uint32_t row, bool of_cluster)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count; i++)
        count += can_replay[i] && comes_first(report, i, row) &&
                 (!of_cluster || report->rows[i].cluster == report->rows[row].cluster);
    return count;
}

static bool is_first_of_cluster(const struct mt_job_report *report, const bool *can_replay,
                                uint32_t row)
{
    return can_replay[row] && !count_before(report, can_replay, row, true);
}

/* The first of its cluster, and fewer than MT_JOB_TUNED clusters have a first before it. */
static bool slow_is_tuned(const struct mt_job_report *report, const bool *can_replay, uint32_t row)
{
    uint32_t clusters = 0;

    for (uint32_t i = 0; i < report->row_count; i++)
        clusters += is_first_of_cluster(report, can_replay, i) && comes_first(report, i, row);
    return is_first_of_cluster(report, can_replay, row) && clusters < MT_JOB_TUNED;
}

/* Wishes by the rules of the header, one row after the other. */
struct slow_plan {
    bool is_tuned[MOST_ROWS], is_wanted[MOST_ROWS], is_replayed[MOST_ROWS];
};

static void slow_plan(const struct mt_job_report *report, const bool *can_replay,
                      struct slow_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    for (uint32_t i = 0; i < report->row_count; i++) {
        plan->is_tuned[i] = slow_is_tuned(report, can_replay, i);
        plan->is_wanted[i] =
            can_replay[i] &&
            (plan->is_tuned[i] || count_before(report, can_replay, i, false) < MT_JOB_WORST);
    }
    /* a device of a process that is wanted is replayed with it */
    for (uint32_t i = 0; i < report->row_count; i++)
        for (uint32_t k = 0; k < report->row_count; k++)
            plan->is_replayed[i] |=
                can_replay[i] && plan->is_wanted[k] &&
                mt_job_is_one_process(report->rows[k].record, report->rows[i].record);
}

static void check_plan(const struct mt_job_report *report, const bool *can_replay)
{
    struct mt_arena arena = {0};
    struct slow_plan slow;
    struct mt_job_check *checks;
    uint32_t count, replayed = 0;

    slow_plan(report, can_replay, &slow);
    mt_job_settings_plan(report, can_replay, &arena, &checks, &count);
    for (uint32_t i = 0; i < report->row_count; i++)
        replayed += slow.is_replayed[i];
    assert_int_equal(count, replayed);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(slow.is_replayed[checks[i].row]);
        assert_int_equal(checks[i].is_tuned, slow.is_tuned[checks[i].row]);
        assert_true(!i || comes_first(report, checks[i - 1].row, checks[i].row));
    }
    mt_arena_release(&arena);
}

/* Changes needs and traces of the records behind the report. */
static void roll_rows(struct dice *dice, struct made *made, bool *can_replay)
{
    for (uint32_t i = 0; i < made->set->record_count; i++) {
        struct mt_rank_record *record = &made->set->records[i];

        record->needed_bytes = dice_below(dice, 6);
        record->allocator_need_is_known = dice_below(dice, 2);
        record->reserved_peak.bytes = dice_below(dice, 6);
        record->outside_bytes = dice_below(dice, 2);
        record->context_bytes = dice_below(dice, 2);
        record->identity.process_id = dice_below(dice, 40);
        record->identity.rank = 0;
        record->trace_name = record->trace_sha256 = record->identity.host = "";
    }
    for (uint32_t i = 0; i < made->report->row_count; i++)
        can_replay[i] = dice_below(dice, 4) != 0;
}

TEST(the_plan_is_that_of_a_slow_model)
{
    struct simulated_job job = simulated_job_new(20, 2, 2);
    struct made made = make(&job);
    struct dice dice = {.state = 3};
    bool can_replay[MOST_ROWS];

    assert_int_equal(made.report->row_count, MOST_ROWS);
    assert_true(made.report->cluster_count > MT_JOB_TUNED);
    for (int round = 0; round < 60; round++) {
        roll_rows(&dice, &made, can_replay);
        check_plan(made.report, can_replay);
    }
    memset(can_replay, 0, sizeof can_replay);
    check_plan(made.report, can_replay);
    release(&made);
}

TEST(a_row_is_alike_if_a_row_of_its_cluster_is_checked)
{
    struct simulated_job job = simulated_job_new(3, 2, 1);
    struct made made = make(&job);
    const struct mt_job_check checks[] = {{0, true}, {3, false}};
    enum mt_job_row_check states[6];
    static const enum mt_job_row_check wanted[] = {MT_JOB_CHECKED,     MT_JOB_ALIKE,
                                                   MT_JOB_ALIKE,       MT_JOB_CHECKED,
                                                   MT_JOB_NOT_CHECKED, MT_JOB_NOT_CHECKED};
    struct mt_arena arena = {0};

    assert_int_equal(made.report->row_count, 6);
    mt_job_settings_states(made.report, checks, 2, &arena, states);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(states[i], wanted[i]);
    mt_arena_release(&arena);
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
