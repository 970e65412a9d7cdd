/* What a job is told, against facts that were planted in simulated jobs. */
#include "made_job.h"

#include "phase.h"

/* Sizes of the jobs that all facts are looked for in. */
static const struct {
    uint32_t stages, replicas, shards;
} sizes[] = {{2, 4, 1}, {8, 16, 8}, {8, 256, 8}};

/* Three outliers, one death with everyone else timed out behind it, ranks that left no file, and
 * traces that are cut. */
static struct simulated_job plant(size_t size)
{
    struct simulated_job job =
        simulated_job_new(sizes[size].stages, sizes[size].replicas, sizes[size].shards);
    int32_t world = (int32_t)(job.stages * job.replicas * job.shards);

    job.logging_rank = 0;
    job.talking_rank = 1;
    job.leaking_rank = world - 1;
    job.dying_rank = world - 2;
    if (world == 8)
        return job;
    for (int32_t i = 0; i < 5; i++)
        job.missing[job.missing_count++] = i < 2 ? 100 + i : 17 * (i + 10);
    job.cut[job.cut_count++] = 5;
    job.cut[job.cut_count++] = world / 2;
    return job;
}

/* The bytes are the planted ones, except for the usual differences between ranks. */
static void assert_about(uint64_t bytes, uint64_t planted)
{
    assert_in_range(bytes, planted - 8 * MT_MIB, planted + 24 * MT_MIB);
}

static void check_outliers(const struct mt_job_report *report, const struct simulated_job *job)
{
    const struct mt_job_outlier *leak = outlier_of(report, job->leaking_rank);
    const struct mt_job_outlier *logs = outlier_of(report, job->logging_rank);
    const struct mt_job_outlier *talk = outlier_of(report, job->talking_rank);

    assert_int_equal(report->outlier_count, 3);
    assert_int_equal(leak->cause, MT_OUTLIER_GROWTH);
    assert_string_equal(mt_job_site(report, leak->path), "remember train.py:99");
    assert_int_equal(leak->path_bytes, SIMULATED_LEAK);
    assert_int_equal(leak->growth_bytes_per_step, 64 * MT_MIB);
    assert_about(leak->bytes, SIMULATED_LEAK);
    assert_int_equal(logs->cause, MT_OUTLIER_SITE);
    assert_string_equal(mt_job_site(report, logs->path), "log logs.py:5");
    assert_int_equal(logs->path_bytes, SIMULATED_LOGS);
    assert_int_equal(talk->cause, MT_OUTLIER_LIBRARY);
    assert_string_equal(talk->library, "NCCL");
    assert_int_equal(talk->bytes, SIMULATED_TALK);
    assert_int_equal(talk->path_bytes, SIMULATED_TALK);
}

static void check_death(const struct mt_job_report *report, const struct simulated_job *job)
{
    const struct mt_job_death *death = report->death;

    assert_non_null(death);
    assert_int_equal(rank_of(report, death->row), job->dying_rank);
    assert_true(death->t_ns == SIMULATED_DEATH_NS);
    assert_int_equal(death->wanted_bytes, SIMULATED_WANTED);
    assert_string_equal(mt_job_site(report, death->path), "forward model.py:88");
    assert_int_equal(death->count, 1);
    assert_int_equal(death->contested_row, MT_NO_ROW);
    assert_int_equal(death->followed_count, report->row_count - 1 - job->cut_count);
    assert_int_equal(death->limit_bytes, SIMULATED_LIMIT);
    assert_false(death->limit_is_device);
    assert_int_equal(death->fitting_count, death->other_count);
    assert_int_equal(death->other_count, report->row_count - 1);
}

static void check_ranks(const struct mt_job_report *report, const struct simulated_job *job)
{
    uint32_t world = job->stages * job->replicas * job->shards, missing = 0;

    assert_int_equal(report->world, world);
    assert_true(report->world_is_known);
    assert_false(report->worlds_differ);
    assert_int_equal(report->seen_count, world - job->missing_count);
    assert_int_equal(report->row_count, world - job->missing_count);
    assert_int_equal(report->missing_count, job->missing_count);
    for (uint32_t i = 0; i < report->missing_ranges; i++)
        for (int32_t rank = report->missing[i].first; rank <= report->missing[i].last; rank++)
            assert_int_equal(rank, job->missing[missing++]);
    assert_int_equal(missing, job->missing_count);
    assert_int_equal(report->outcome_counts[MT_OUTCOME_CUT], job->cut_count);
    assert_int_equal(report->incomplete_count, job->cut_count);
    assert_int_equal(report->duplicate_count, 0);
    assert_int_equal(report->epoch_count, 1);
    assert_int_equal(report->device_count, 0);
}

static void check_axes(const struct mt_job_report *report, const struct simulated_job *job)
{
    const struct mt_job_axis *pp = &report->axes[0];

    assert_int_equal(report->axis_count, 3);
    assert_string_equal(pp->name, "pp");
    assert_true(pp->separates);
    assert_false(report->axes[1].separates);
    assert_false(report->axes[2].separates);
    assert_int_equal(pp->group_count, job->stages);
    assert_int_equal(pp->heavy, 0);
    for (uint32_t i = 0; i < pp->group_count; i++)
        assert_in_range(pp->groups[i].reserved.median, simulated_stage_bytes(job, i),
                        simulated_stage_bytes(job, i) + 24 * MT_MIB);
    /* The embedding is 2 GiB, all on the first stage: 2 GiB - 2 GiB / 8 more than the mean. The
     * activations are 8 to 1 times 512 MiB: 1.75 GiB more as well. */
    if (job->stages == 8) {
        assert_int_equal(pp->heavy_role, MT_ROLE_PARAMETERS);
        assert_int_equal(pp->heavy_role_bytes, 2 * MT_GIB - 2 * MT_GIB / 8);
        assert_in_range(pp->explained_ppm, 980000, 1000000);
        assert_in_range(report->axes[1].explained_ppm, 0, 20000);
        assert_in_range(report->axes[2].explained_ppm, 0, 20000);
    }
}

TEST(every_planted_fact_is_found_and_nothing_else)
{
    for (size_t size = 0; size < MT_ARRAY_LEN(sizes); size++) {
        struct simulated_job job = plant(size);
        struct made made = make(&job);

        check_ranks(made.report, &job);
        check_axes(made.report, &job);
        check_death(made.report, &job);
        check_outliers(made.report, &job);
        assert_int_equal(made.report->growing_count, 1);
        assert_int_equal(rank_of(made.report, made.report->growth.max_row), job.leaking_rank);
        release(&made);
    }
}

TEST(a_sound_job_has_nothing_to_report)
{
    for (size_t size = 0; size < 2; size++) {
        struct simulated_job job =
            simulated_job_new(sizes[size].stages, sizes[size].replicas, sizes[size].shards);
        struct made made = make(&job);

        assert_int_equal(made.report->outlier_count, 0);
        assert_null(made.report->death);
        assert_int_equal(made.report->missing_count, 0);
        assert_int_equal(made.report->growing_count, 0);
        assert_int_equal(made.report->clusters[0].count, job.replicas * job.shards);
        assert_int_equal(made.report->cluster_count, job.stages);
        assert_true(made.report->needed_is_exact);
        assert_true(made.report->limit_is_known);
        assert_int_equal(made.report->limit_bytes, made.report->reserved.max);
        release(&made);
    }
}

/* Takes 1 GiB from the parameters of a record. */
static void take_1_gib(struct mt_rank_record *record)
{
    record->leaves[0].bytes -= MT_GIB;
    record->role_bytes[MT_ROLE_PARAMETERS] -= MT_GIB;
    record->allocated_peak.bytes -= MT_GIB;
    record->reserved_peak.bytes -= MT_GIB;
}

/* A rank that stopped before the others may have less than they. One that did not may not. */
TEST(less_memory_counts_only_of_ranks_that_did_all)
{
    static const struct {
        enum mt_outcome outcome;
        bool is_complete, is_whole;
    } ends[] = {{MT_OUTCOME_CUT, true, false},
                {MT_OUTCOME_KILLED, true, false},
                {MT_OUTCOME_UNKNOWN, false, false},
                {MT_OUTCOME_UNKNOWN, true, true},
                {MT_OUTCOME_FINISHED, true, true}};

    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++) {
        struct simulated_job job = simulated_job_new(1, 8, 1);
        struct made made = made_new();

        assert_true(simulated_job_add(&job, 0, 1, made.set));
        take_1_gib(&made.set->records[3]);
        made.set->records[3].outcome = ends[i].outcome;
        made.set->records[3].is_complete = ends[i].is_complete;
        report_of_set(&made, &usual);
        assert_int_equal(made.report->outlier_count, ends[i].is_whole);
        if (made.report->outlier_count) {
            assert_true(made.report->outliers[0].is_less);
            assert_string_equal(mt_job_site(made.report, made.report->outliers[0].path),
                                "build model.py:20");
        }
        release(&made);
    }
}

/* Four equal ranks; the one that is broken has other parameters at its peak, and other steps. */
static struct made make_broken(enum mt_outcome outcome, bool is_complete)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    job.has_mesh = false;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    struct mt_rank_record *broken = &made.set->records[2];
    broken->outcome = outcome;
    broken->has_death = outcome == MT_OUTCOME_OOM;
    broken->is_complete = is_complete;
    broken->parameter_hash = 77;
    broken->reserved_peak.bytes += 5 * MT_GIB;
    for (uint32_t i = 0; i < 4; i++)
        made.set->records[i].step_hash = 1 + i;
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    return made;
}

TEST(a_broken_rank_is_no_stage_and_has_replicas)
{
    static const struct {
        enum mt_outcome outcome;
        bool is_complete;
    } ends[] = {{MT_OUTCOME_OOM, true}, {MT_OUTCOME_CUT, true}, {MT_OUTCOME_UNKNOWN, false}};

    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++) {
        struct made made = make_broken(ends[i].outcome, ends[i].is_complete);

        assert_int_equal(made.report->axis_count, 0);
        assert_int_equal(made.report->cluster_count, 1);
        assert_int_equal(rank_of(made.report, outlier_of(made.report, 2)->row), 2);
        release(&made);
    }
}

/* Without any parameters, steps that repeat are stages; steps that all differ are not. */
TEST(steps_are_stages_only_if_they_repeat)
{
    struct simulated_job job = simulated_job_new(4, 1, 2);

    job.has_mesh = job.has_hashes = false;
    for (int32_t differ = 0; differ < 2; differ++) {
        struct made made = made_new();

        assert_true(simulated_job_add(&job, 0, 1, made.set));
        for (uint32_t i = 0; i < 8; i++)
            made.set->records[i].step_hash = 1 + (differ ? i : i % 4);
        report_of_set(&made, &usual);
        assert_int_equal(made.report->axis_count, differ ? 0 : 2);
        if (!differ)
            assert_axis(made.report, 1, "stage", 4, 1);
        release(&made);
    }
}

TEST(steps_stand_side_by_side)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);

    job.leaking_rank = 5;
    struct made made = make(&job);
    assert_int_equal(made.report->step_count, SIMULATED_STEPS);
    assert_int_equal(made.report->step_width, 1);
    for (uint32_t i = 0; i < SIMULATED_STEPS; i++) {
        const struct mt_job_step *step = &made.report->steps[i];

        assert_int_equal(step->first, i);
        assert_int_equal(step->last, i);
        assert_int_equal(step->row_count, 8);
    }
    assert_int_equal(rank_of(made.report, made.report->steps[19].reserved_max_row), 5);
    assert_true(made.report->steps[19].reserved_max_bytes -
                    made.report->steps[19].reserved_min_bytes >=
                SIMULATED_LEAK - 20 * MT_MIB);
    release(&made);
}

TEST(steps_of_any_number_do_no_harm)
{
    struct simulated_job job = simulated_job_new(1, 2, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[0].steps[0].first = made.set->records[0].steps[0].last = INT64_MIN;
    made.set->records[1].steps[SIMULATED_STEPS - 1].last = INT64_MAX;
    report_of_set(&made, &usual);
    assert_true(made.report->step_count >= 1 && made.report->step_count <= MT_JOB_STEPS);
    release(&made);
}

TEST(call_paths_are_summed_over_ranks)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    bool found = false;

    job.logging_rank = 4;
    struct made made = make(&job);
    const struct mt_job_path *first = &made.report->paths[0];
    assert_string_equal(mt_job_site(made.report, first->path), "build model.py:20");
    assert_true(first->sum_bytes == (unsigned __int128)8 * 12 * MT_GIB);
    assert_int_equal(first->row_count, 8);
    assert_int_equal(first->min_bytes, 12 * MT_GIB);
    for (uint32_t i = 0; i < made.report->path_count; i++) {
        const struct mt_job_path *path = &made.report->paths[i];

        if (strcmp(mt_job_site(made.report, path->path), "log logs.py:5") != 0)
            continue;
        found = true;
        assert_int_equal(path->row_count, 1);
        assert_int_equal(path->max_row, 4);
        assert_int_equal(path->min_bytes, 0);
        assert_int_equal(path->min_row, 0);
        assert_int_equal(path->mean_bytes, SIMULATED_LOGS / 8);
    }
    assert_true(found);
    release(&made);
}

/* Growth explains a difference only if both ranks have a known growth and it is as large. */
TEST(growth_is_a_cause_only_if_it_amounts_to_the_difference)
{
    static const struct {
        bool is_judged;
        uint64_t bytes_per_step;
        enum mt_outlier_cause cause;
    } cases[] = {{true, 64 * MT_MIB, MT_OUTLIER_GROWTH},
                 {true, 32 * MT_MIB + MT_MIB, MT_OUTLIER_GROWTH},
                 {true, 16 * MT_MIB, MT_OUTLIER_SITE},
                 {false, 64 * MT_MIB, MT_OUTLIER_SITE}};

    for (size_t c = 0; c < MT_ARRAY_LEN(cases); c++) {
        struct simulated_job job = simulated_job_new(1, 8, 1);
        struct made made = made_new();

        job.leaking_rank = 3;
        assert_true(simulated_job_add(&job, 0, 1, made.set));
        made.set->records[3].growth_bytes_per_step = cases[c].bytes_per_step;
        for (uint32_t i = 0; i < 8; i++)
            made.set->records[i].growth_is_judged = i == 3 || cases[c].is_judged;
        report_of_set(&made, &usual);
        assert_int_equal(outlier_of(made.report, 3)->cause, cases[c].cause);
        assert_int_equal(outlier_of(made.report, 3)->growth_bytes_per_step,
                         cases[c].is_judged ? cases[c].bytes_per_step : 0);
        release(&made);
    }
}

/* No launcher numbers a rank so; a file can. */
TEST(the_largest_number_of_a_rank_does_no_harm)
{
    struct simulated_job job = simulated_job_new(1, 2, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[1].identity.rank = INT32_MAX;
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    assert_true(made.report->world == UINT32_C(1) << 31);
    assert_true(made.report->worlds_differ);
    assert_int_equal(made.report->missing_ranges, 1);
    assert_int_equal(made.report->missing[0].first, 1);
    assert_int_equal(made.report->missing[0].last, INT32_MAX - 1);
    assert_true(made.report->missing_count == INT32_MAX - 1);
    release(&made);
}

/* A job of replicas alone whose reserved peaks are set. */
static struct made make_replicas(const uint64_t *reserved_mib, uint32_t count)
{
    struct simulated_job job = simulated_job_new(1, count, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t i = 0; i < count; i++)
        made.set->records[i].reserved_peak.bytes = reserved_mib[i] * MT_MIB;
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    return made;
}

/* If two replicas differ, the one that has more is named. Among three that agree to 4 MiB, the one
 * that is 40 MiB away is, and the one that is 30 MiB away is not. */
TEST(an_outlier_needs_a_replica_and_a_distance)
{
    static const uint64_t peaks[][3] = {
        {20000, 21000, 0}, {20000, 20004, 21000}, {2000, 2004, 2044}, {2000, 2004, 2034}};
    static const uint32_t counts[] = {2, 3, 3, 3}, outliers[] = {1, 1, 1, 0};

    for (size_t i = 0; i < MT_ARRAY_LEN(counts); i++) {
        struct made made = make_replicas(peaks[i], counts[i]);

        assert_int_equal(made.report->outlier_count, outliers[i]);
        release(&made);
    }
}

/* Replicas that vary by 100 MiB among themselves: 550 MiB from the median is usual, 900 is not. */
TEST(replicas_that_vary_have_no_outlier_nearby)
{
    uint64_t peaks[] = {20000, 20100, 20200, 20300, 20400, 20750, 20250, 20150};

    for (int is_far = 0; is_far < 2; is_far++) {
        peaks[5] = is_far ? 21100 : 20750; /* the median is 20,200, the median distance 100 */
        struct made made = make_replicas(peaks, MT_ARRAY_LEN(peaks));
        assert_int_equal(made.report->outlier_count, is_far);
        release(&made);
    }
}

/* What an incomplete trace needs is a lower bound. */
TEST(an_incomplete_trace_makes_the_need_a_lower_bound)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);

    job.cut[job.cut_count++] = 1;
    struct made made = make(&job);
    assert_false(made.report->needed_is_exact);
    release(&made);
}

/* Two of the others reserved more than the rank that died was allowed to. */
TEST(ranks_above_the_limit_do_not_fit)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    job.dying_rank = 3;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[0].reserved_peak.bytes = SIMULATED_LIMIT + 1;
    made.set->records[7].reserved_peak.bytes = SIMULATED_LIMIT + MT_GIB;
    made.set->records[6].reserved_peak.bytes = SIMULATED_LIMIT;
    report_of_set(&made, &usual);
    assert_int_equal(made.report->death->other_count, 7);
    assert_int_equal(made.report->death->fitting_count, 5);
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
