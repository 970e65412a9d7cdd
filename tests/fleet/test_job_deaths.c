/* Which rank ran out of memory first, and when the report must not name one. */
#include "made_job.h"

#include "phase.h"

/* Two hosts, half a second apart: their clocks may differ by that. */
TEST(a_death_on_another_host_contests_the_first)
{
    struct simulated_job job = simulated_job_new(1, 16, 1);
    struct made made = made_new();

    job.dying_rank = 2;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (int rank = 3; rank <= 9; rank += 6) { /* of the same host, and of another one */
        made.set->records[rank].outcome = MT_OUTCOME_OOM;
        made.set->records[rank].has_death = true;
        made.set->records[rank].death_t_ns = SIMULATED_DEATH_NS + 500000000;
    }
    report_of_set(&made, &usual);
    assert_int_equal(rank_of(made.report, made.report->death->row), 2);
    assert_int_equal(made.report->death->count, 3);
    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 9);
    assert_int_equal(made.report->death->followed_count, 13);
    release(&made);
}

/* 16 ranks on two hosts; rank 2 dies first, the other one half a second later. */
static struct made make_deaths(int32_t other, const char *host, uint64_t first_t_ns)
{
    struct simulated_job job = simulated_job_new(1, 16, 1);
    struct made made = made_new();
    const int32_t ranks[] = {2, other};

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t i = 0; i < made.set->record_count; i++)
        made.set->records[i].outcome = MT_OUTCOME_FAILED;
    for (size_t i = 0; i < 2; i++) {
        struct mt_rank_record *record = &made.set->records[ranks[i]];

        record->outcome = MT_OUTCOME_OOM;
        record->has_death = true;
        record->death_t_ns = first_t_ns + i * 500000000;
        if (host)
            record->identity.host = host;
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    return made;
}

/* Where no host is known, two ranks need not have one clock. */
TEST(deaths_on_unknown_hosts_are_contested)
{
    struct made made = make_deaths(3, "", SIMULATED_DEATH_NS);

    assert_int_equal(rank_of(made.report, made.report->death->row), 2);
    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 3);
    assert_true(made.report->death->contest_has_clock);
    release(&made);
}

/* A snapshot without times says nothing about who was first, even on the same host. */
TEST(deaths_without_a_clock_are_contested)
{
    struct made made = make_deaths(3, NULL, 0);

    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 3);
    assert_false(made.report->death->contest_has_clock);
    assert_int_equal(made.report->death->followed_count, 0);
    assert_int_equal(made.report->death->after_ns, 0);
    release(&made);
}

/* A time that is no time of day is not the earliest. */
TEST(a_death_without_a_clock_is_not_the_first)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    job.dying_rank = 5;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[1].outcome = MT_OUTCOME_OOM;
    made.set->records[1].has_death = true;
    made.set->records[1].death_t_ns = 17;
    made.set->records[1].begin_t_ns = 0;
    report_of_set(&made, &usual);
    assert_int_equal(rank_of(made.report, made.report->death->row), 5);
    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 1);
    assert_false(made.report->death->contest_has_clock);
    assert_true(made.report->death->after_ns == SIMULATED_DEATH_NS - SIMULATED_START_NS);
    release(&made);
}

/* Both devices of rank 2 ran out: that is one rank, and one clock. */
TEST(a_rank_with_two_devices_dies_once)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    job.dying_rank = 2;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[2].trace_sha256 = "ab";
    made.set->records[2].identity.host = "";
    struct mt_rank_record second = made.set->records[2];
    second.device = 1;
    second.death_t_ns++;
    mt_rank_set_add(made.set, &second);
    report_of_set(&made, &usual);
    assert_int_equal(made.report->row_count, 5);
    assert_int_equal(made.report->death->count, 1);
    assert_int_equal(made.report->death->contested_row, MT_NO_ROW);
    assert_int_equal(made.report->rows[made.report->death->row].record->device, 2);
    assert_int_equal(made.report->death->followed_count, 3);
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
