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

static void every_planted_fact_is_found_and_nothing_else(void **state)
{
    (void)state;
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

static void a_sound_job_has_nothing_to_report(void **state)
{
    (void)state;
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
static void less_memory_counts_only_of_ranks_that_did_all(void **state)
{
    static const struct {
        enum mt_outcome outcome;
        bool is_complete, is_whole;
    } ends[] = {{MT_OUTCOME_CUT, true, false},
                {MT_OUTCOME_KILLED, true, false},
                {MT_OUTCOME_UNKNOWN, false, false},
                {MT_OUTCOME_UNKNOWN, true, true},
                {MT_OUTCOME_FINISHED, true, true}};

    (void)state;
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

/* Replicas alone: a job of one axis, with one rank that is off. */
static void one_axis_of_replicas_has_an_outlier(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made;

    (void)state;
    job.leaking_rank = 3;
    job.has_mesh = job.has_hashes = false;
    made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_NONE);
    assert_int_equal(made.report->outlier_count, 1);
    assert_int_equal(rank_of(made.report, made.report->outliers[0].row), 3);
    release(&made);
}

static void axes_come_from_process_groups(void **state)
{
    struct simulated_job job = simulated_job_new(8, 16, 8);
    struct made made;

    (void)state;
    job.has_mesh = false;
    job.has_groups = true;
    job.missing[job.missing_count++] = 9;
    made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_GROUPS);
    assert_int_equal(made.report->axis_count, 3);
    assert_axis(made.report, 0, "pp", 8, 128);
    assert_axis(made.report, 1, "dp", 16, 8);
    assert_axis(made.report, 2, "tp", 8, 1);
    assert_int_equal(made.report->outlier_count, 0);
    release(&made);
}

/* Half of the ranks have two groups of one shape: that makes no axis of all ranks. */
static void groups_of_one_shape_count_once(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    (void)state;
    job.has_mesh = false;
    job.has_groups = true;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t i = 0; i < 8; i++) {
        struct mt_record_identity *identity = &made.set->records[i].identity;

        identity->group_count = 2;
        for (uint32_t g = 0; g < 2; g++) {
            uint32_t size = i < 4 ? 2 : 8;

            identity->groups[g] = (struct mt_record_group){.name = g ? "b" : "a",
                                                           .size = size,
                                                           .first = i / size * size,
                                                           .stride = 1,
                                                           .position = (int32_t)(i % size)};
        }
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    assert_int_equal(made.report->axis_count, 0);
    release(&made);
}

static void axes_are_found_where_nobody_names_them(void **state)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);
    struct made made;

    (void)state;
    job.has_mesh = false;
    job.missing[job.missing_count++] = 0;
    job.missing[job.missing_count++] = 40;
    made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_FOUND);
    assert_int_equal(made.report->axis_count, 2);
    assert_axis(made.report, 0, "stage", 4, 16);
    assert_axis(made.report, 1, "replica", 16, 1);
    assert_int_equal(made.report->outlier_count, 0);
    release(&made);
}

/* Four equal ranks; the one that is broken has other parameters at its peak, and other steps. */
static struct made make_broken(enum mt_outcome outcome, bool is_complete)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();
    struct mt_rank_record *broken;

    job.has_mesh = false;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    broken = &made.set->records[2];
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

static void a_broken_rank_is_no_stage_and_has_replicas(void **state)
{
    static const struct {
        enum mt_outcome outcome;
        bool is_complete;
    } ends[] = {{MT_OUTCOME_OOM, true}, {MT_OUTCOME_CUT, true}, {MT_OUTCOME_UNKNOWN, false}};

    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++) {
        struct made made = make_broken(ends[i].outcome, ends[i].is_complete);

        assert_int_equal(made.report->axis_count, 0);
        assert_int_equal(made.report->cluster_count, 1);
        assert_int_equal(rank_of(made.report, outlier_of(made.report, 2)->row), 2);
        release(&made);
    }
}

/* Without any parameters, steps that repeat are stages; steps that all differ are not. */
static void steps_are_stages_only_if_they_repeat(void **state)
{
    struct simulated_job job = simulated_job_new(4, 1, 2);

    (void)state;
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

static void the_user_names_axes(void **state)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);
    struct mt_job_options options = {.mesh = "pp:4,dp:8,tp:2"};
    struct made made = make_with(&job, &options);

    (void)state;
    assert_int_equal(made.status, MT_OK);
    assert_int_equal(made.report->axes_source, MT_AXES_OPTION);
    assert_axis(made.report, 0, "pp", 4, 16);
    assert_axis(made.report, 1, "dp", 8, 2);
    assert_axis(made.report, 2, "tp", 2, 1);
    assert_int_equal(made.report->rows[17].coordinates[0], 1);
    assert_int_equal(made.report->rows[17].coordinates[1], 0);
    assert_int_equal(made.report->rows[17].coordinates[2], 1);
    release(&made);
}

static void a_mesh_that_the_job_cannot_have_is_refused(void **state)
{
    static const char *const meshes[] = {"",
                                         "pp",
                                         "pp:",
                                         "pp:0",
                                         "pp:4,",
                                         ":4",
                                         "PP:64",
                                         "pp:65",
                                         "pp:8,pp:8",
                                         "pp:64x",
                                         "pp:4294967296,dp:1",
                                         "pp:99999999999999999999",
                                         "dp:2147483647,pp:2147483647",
                                         "a:2,b:2,c:2,d:2,e:2,f:2,g:1,h:1,i:1"};
    struct simulated_job job = simulated_job_new(4, 8, 2);

    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(meshes); i++) {
        struct mt_job_options options = {.mesh = meshes[i]};
        struct made made = make_with(&job, &options);

        assert_int_equal(made.status, MT_ERR_USAGE);
        assert_null(made.report);
        assert_non_null(strstr(made.error.text, "mesh"));
        release(&made);
    }
}

static void several_jobs_need_a_choice(void **state)
{
    struct simulated_job one = simulated_job_new(2, 4, 1), other = simulated_job_new(2, 2, 1);
    struct mt_job_options options = {.job = "slurm:78"};
    struct mt_arena arena = {0};
    struct mt_job_name *names;
    struct made made = made_new();
    uint32_t count;

    (void)state;
    other.name = "slurm:78";
    assert_true(simulated_job_add(&one, 0, 1, made.set));
    assert_true(simulated_job_add(&other, 0, 1, made.set));
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_ERR_USAGE);
    assert_int_equal(mt_job_names(made.set, &arena, &names, &count), MT_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[1].name, "slurm:78");
    assert_int_equal(names[1].record_count, 4);
    mt_arena_release(&arena);
    report_of_set(&made, &options);
    assert_int_equal(made.status, MT_OK);
    assert_int_equal(made.report->row_count, 4);
    assert_string_equal(made.report->job, "slurm:78");
    mt_job_report_free(made.report);
    options.job = "slurm:79";
    report_of_set(&made, &options);
    assert_int_equal(made.status, MT_ERR_USAGE);
    release(&made);
}

static void an_empty_set_is_no_job(void **state)
{
    struct made made = made_new();

    (void)state;
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_ERR_FORMAT);
    release(&made);
}

/* Starts before the last one are told, and count for nothing else. */
static void the_last_restart_is_the_job(void **state)
{
    struct simulated_job first = simulated_job_new(2, 4, 1), second = first;
    struct made made = made_new();

    (void)state;
    first.dying_rank = 2;
    second.restart = 1;
    second.missing[second.missing_count++] = 7;
    assert_true(simulated_job_add(&first, 0, 1, made.set));
    assert_true(simulated_job_add(&second, 0, 1, made.set));
    report_of_set(&made, &usual);
    assert_int_equal(made.report->epoch_count, 2);
    assert_int_equal(made.report->epochs[0].record_count, 8);
    assert_int_equal(made.report->epochs[0].death_count, 1);
    assert_int_equal(made.report->epochs[1].record_count, 7);
    assert_null(made.report->death);
    assert_int_equal(made.report->row_count, 7);
    assert_int_equal(made.report->missing_count, 1);
    assert_int_equal(made.report->duplicate_count, 0);
    release(&made);
}

/* A small process also calls itself rank 2: the rank is the one that has more memory. */
static void a_helper_of_a_rank_is_a_duplicate(void **state)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);
    struct made made = made_new();
    struct mt_rank_record helper = {0};

    (void)state;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    helper = made.set->records[2];
    helper.identity.process_id = 1;
    helper.leaves = NULL;
    helper.leaf_count = 0;
    memset(helper.role_bytes, 0, sizeof helper.role_bytes);
    helper.allocated_peak.bytes = 0;
    helper.reserved_peak.bytes = 2 * MT_MIB;
    assert_int_equal(mt_rank_set_add(made.set, &helper), MT_OK);
    report_of_set(&made, &usual);
    assert_int_equal(made.report->row_count, 8);
    assert_int_equal(made.report->duplicate_count, 1);
    assert_int_equal(made.report->duplicates[0].row, 2);
    assert_int_equal(made.report->duplicates[0].record->identity.process_id, 1);
    assert_int_equal(made.report->rows[2].record->identity.process_id, 1002);
    release(&made);
}

/* A level that lasts from one share of a process's life, in 512ths, to another. */
static void add_tenant(struct mt_rank_set *set, const char *job, uint64_t begin_s, uint64_t end_s,
                       uint32_t from, uint32_t to)
{
    struct mt_record_column columns[MT_RECORD_COLUMNS];
    struct mt_rank_record record = {.identity = {.host = "node00",
                                                 .boot_id = "",
                                                 .job = job,
                                                 .process_id = begin_s + (unsigned char)*job,
                                                 .rank = -1,
                                                 .local_rank = -1,
                                                 .world = -1,
                                                 .restart = -1},
                                    .trace_name = job,
                                    .trace_sha256 = "",
                                    .device_name = "",
                                    .device_uuid = "GPU-1",
                                    .device_pci = "",
                                    .device_mig = "",
                                    .death_path = MT_NO_PATH,
                                    .death_site = MT_NO_PATH,
                                    .growth_site = MT_NO_PATH,
                                    .last_step = MT_NO_STEP,
                                    .device_bytes = 141 * MT_GIB,
                                    .begin_t_ns = begin_s * UINT64_C(1000000000),
                                    .end_t_ns = end_s * UINT64_C(1000000000),
                                    .columns = columns,
                                    .column_count = MT_RECORD_COLUMNS};

    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        columns[i].reserved_bytes = i >= from && i < to ? 40 * MT_GIB : 10 * MT_GIB;
    record.reserved_peak.bytes = 40 * MT_GIB;
    record.reserved_peak.t_ns =
        record.begin_t_ns + (record.end_t_ns - record.begin_t_ns) / 512 * from;
    assert_int_equal(mt_rank_set_add(set, &record), MT_OK);
}

/* Trainer and server hand a device over; the server lets go of 30 of 40 GiB when the trainer wants
 * its own, and 10 GiB do not come back. */
static void processes_that_share_a_device_are_added_up(void **state)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();
    const struct mt_job_device *device;

    (void)state;
    add_tenant(made.set, "serve", 0, 512, 0, 200);
    add_tenant(made.set, "train", 0, 512, 300, 400);
    add_tenant(made.set, "later", 600, 700, 0, 10);
    made.set->records[1].device_bytes = 0; /* not known to every process */
    report_of_set(&made, &options);
    assert_int_equal(made.report->row_count, 1);
    assert_int_equal(made.report->device_count, 1);
    device = &made.report->devices[0];
    assert_int_equal(device->tenant_count, 2);
    assert_int_equal(device->peak_bytes, 50 * MT_GIB);
    assert_true(device->total_bytes == 141 * MT_GIB);
    assert_string_equal(device->tenants[1].record->identity.job, "train");
    assert_int_equal(device->tenants[1].others_bytes, 10 * MT_GIB);
    release(&made);
}

/* A process that was read twice, as by two versions of the program, holds its memory once. */
static void a_process_that_was_read_twice_is_one_tenant(void **state)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    (void)state;
    add_tenant(made.set, "serve", 0, 512, 0, 200);
    add_tenant(made.set, "train", 0, 512, 300, 400);
    add_tenant(made.set, "again", 0, 512, 0, 200);
    made.set->records[2].identity.process_id = made.set->records[0].identity.process_id;
    made.set->records[2].reserved_peak.bytes = 41 * MT_GIB;
    report_of_set(&made, &options);
    assert_int_equal(made.report->device_count, 1);
    assert_int_equal(made.report->devices[0].tenant_count, 2);
    assert_int_equal(made.report->devices[0].peak_bytes, 50 * MT_GIB);
    assert_string_equal(made.report->devices[0].tenants[0].record->identity.job, "again");
    release(&made);
}

/* Two restarts of trainer and server, a year apart: in columns of a year, all would overlap. */
static void a_device_that_was_idle_counts_once_for_each_time(void **state)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();
    const uint64_t year_s = 31536000;

    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        add_tenant(made.set, "serve", i * year_s, i * year_s + 512, 0, 200);
        add_tenant(made.set, "train", i * year_s, i * year_s + 512, 300, 400);
        add_tenant(made.set, "again", i * year_s + 512, i * year_s + 600, 0, 512);
    }
    report_of_set(&made, &options);
    assert_int_equal(made.report->device_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(made.report->devices[i].tenant_count, 2);
        assert_int_equal(made.report->devices[i].peak_bytes, 50 * MT_GIB);
    }
    release(&made);
}

/* For a very large number of processes, the memory of the others is a bound without a sum over
 * pairs. */
static void many_processes_share_a_device(void **state)
{
    enum { PROCESSES = 1100 };
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    (void)state;
    for (uint64_t i = 0; i < PROCESSES; i++) {
        add_tenant(made.set, "train", 0, 512, 300, 400);
        made.set->records[i].identity.process_id = i + 1;
        made.set->records[i].identity.rank = (int32_t)i;
    }
    report_of_set(&made, &options);
    assert_int_equal(made.report->devices[0].peak_bytes, PROCESSES * 40 * MT_GIB);
    for (uint32_t i = 0; i < PROCESSES; i++)
        assert_int_equal(made.report->devices[0].tenants[i].others_bytes,
                         (PROCESSES - 1) * 40 * MT_GIB);
    release(&made);
}

static void processes_one_after_the_other_share_nothing(void **state)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    (void)state;
    add_tenant(made.set, "serve", 0, 100, 0, 200);
    add_tenant(made.set, "train", 100, 200, 300, 400);
    report_of_set(&made, &options);
    assert_int_equal(made.report->device_count, 0);
    release(&made);
}

static void steps_stand_side_by_side(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made;

    (void)state;
    job.leaking_rank = 5;
    made = make(&job);
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

static void steps_of_any_number_do_no_harm(void **state)
{
    struct simulated_job job = simulated_job_new(1, 2, 1);
    struct made made = made_new();

    (void)state;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[0].steps[0].first = made.set->records[0].steps[0].last = INT64_MIN;
    made.set->records[1].steps[SIMULATED_STEPS - 1].last = INT64_MAX;
    report_of_set(&made, &usual);
    assert_true(made.report->step_count >= 1 && made.report->step_count <= MT_JOB_STEPS);
    release(&made);
}

static void call_paths_are_summed_over_ranks(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    const struct mt_job_path *first;
    struct made made;
    bool found = false;

    (void)state;
    job.logging_rank = 4;
    made = make(&job);
    first = &made.report->paths[0];
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

/* Two hosts, half a second apart: their clocks may differ by that. */
static void a_death_on_another_host_contests_the_first(void **state)
{
    struct simulated_job job = simulated_job_new(1, 16, 1);
    struct made made = made_new();

    (void)state;
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
static void deaths_on_unknown_hosts_are_contested(void **state)
{
    struct made made = make_deaths(3, "", SIMULATED_DEATH_NS);

    (void)state;
    assert_int_equal(rank_of(made.report, made.report->death->row), 2);
    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 3);
    assert_true(made.report->death->contest_has_clock);
    release(&made);
}

/* A snapshot without times says nothing about who was first, even on the same host. */
static void deaths_without_a_clock_are_contested(void **state)
{
    struct made made = make_deaths(3, NULL, 0);

    (void)state;
    assert_int_equal(rank_of(made.report, made.report->death->contested_row), 3);
    assert_false(made.report->death->contest_has_clock);
    assert_int_equal(made.report->death->followed_count, 0);
    assert_int_equal(made.report->death->after_ns, 0);
    release(&made);
}

/* A time that is no time of day is not the earliest. */
static void a_death_without_a_clock_is_not_the_first(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    (void)state;
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
static void a_rank_with_two_devices_dies_once(void **state)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();
    struct mt_rank_record second;

    (void)state;
    job.dying_rank = 2;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    made.set->records[2].trace_sha256 = "ab";
    made.set->records[2].identity.host = "";
    second = made.set->records[2];
    second.device = 1;
    second.death_t_ns++;
    assert_int_equal(mt_rank_set_add(made.set, &second), MT_OK);
    report_of_set(&made, &usual);
    assert_int_equal(made.report->row_count, 5);
    assert_int_equal(made.report->death->count, 1);
    assert_int_equal(made.report->death->contested_row, MT_NO_ROW);
    assert_int_equal(made.report->rows[made.report->death->row].record->device, 2);
    assert_int_equal(made.report->death->followed_count, 3);
    release(&made);
}

/* Growth explains a difference only if both ranks have a known growth and it is as large. */
static void growth_is_a_cause_only_if_it_amounts_to_the_difference(void **state)
{
    static const struct {
        bool is_judged;
        uint64_t bytes_per_step;
        enum mt_outlier_cause cause;
    } cases[] = {{true, 64 * MT_MIB, MT_OUTLIER_GROWTH},
                 {true, 32 * MT_MIB + MT_MIB, MT_OUTLIER_GROWTH},
                 {true, 16 * MT_MIB, MT_OUTLIER_SITE},
                 {false, 64 * MT_MIB, MT_OUTLIER_SITE}};

    (void)state;
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
static void the_largest_number_of_a_rank_does_no_harm(void **state)
{
    struct simulated_job job = simulated_job_new(1, 2, 1);
    struct made made = made_new();

    (void)state;
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

/* The traces do not say how many ranks there are, and the last one left no file: the mesh says so.
 */
static void the_mesh_says_how_many_ranks_there_are(void **state)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);
    const struct mt_job_options options = {.mesh = "pp:4,dp:8,tp:2"};

    (void)state;
    job.missing[job.missing_count++] = 63;
    for (int with_mesh = 0; with_mesh < 2; with_mesh++) {
        struct made made = made_new();

        assert_true(simulated_job_add(&job, 0, 1, made.set));
        for (uint32_t i = 0; i < made.set->record_count; i++)
            made.set->records[i].identity.world = -1;
        report_of_set(&made, with_mesh ? &options : &usual);
        assert_int_equal(made.status, MT_OK);
        assert_int_equal(made.report->world_is_known, with_mesh);
        assert_int_equal(made.report->world, 63 + with_mesh);
        assert_int_equal(made.report->missing_count, with_mesh);
        assert_int_equal(made.report->needed_is_exact, !with_mesh);
        if (with_mesh)
            assert_int_equal(made.report->missing[0].first, 63);
        release(&made);
    }
}

/* Two processes without a rank, one of which has two devices. */
static void devices_of_a_process_without_a_rank_have_names(void **state)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();
    struct mt_arena arena = {0};

    (void)state;
    add_tenant(made.set, "train", 0, 512, 0, 200);
    report_of_set(&made, &options);
    assert_int_equal(made.report->unranked_count, 1);
    assert_string_equal(mt_job_row_name(&arena, made.report, 0), "train");
    mt_job_report_free(made.report);
    add_tenant(made.set, "train", 0, 512, 0, 200);
    made.set->records[1].device = 1;
    made.set->is_sorted = false;
    add_tenant(made.set, "train", 0, 512, 0, 200);
    made.set->records[2].identity.process_id = 1;
    report_of_set(&made, &options);
    assert_int_equal(made.report->row_count, 3);
    assert_int_equal(made.report->unranked_row_count, 3);
    assert_int_equal(made.report->unranked_count, 2);
    assert_string_equal(mt_job_row_name(&arena, made.report, 2), "train, device 1");
    mt_arena_release(&arena);
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
static void an_outlier_needs_a_replica_and_a_distance(void **state)
{
    static const uint64_t peaks[][3] = {
        {20000, 21000, 0}, {20000, 20004, 21000}, {2000, 2004, 2044}, {2000, 2004, 2034}};
    static const uint32_t counts[] = {2, 3, 3, 3}, outliers[] = {1, 1, 1, 0};

    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(counts); i++) {
        struct made made = make_replicas(peaks[i], counts[i]);

        assert_int_equal(made.report->outlier_count, outliers[i]);
        release(&made);
    }
}

/* Replicas that vary by 100 MiB among themselves: 550 MiB from the median is usual, 900 is not. */
static void replicas_that_vary_have_no_outlier_nearby(void **state)
{
    uint64_t peaks[] = {20000, 20100, 20200, 20300, 20400, 20750, 20250, 20150};

    (void)state;
    for (int is_far = 0; is_far < 2; is_far++) {
        struct made made;

        peaks[5] = is_far ? 21100 : 20750; /* the median is 20,200, the median distance 100 */
        made = make_replicas(peaks, MT_ARRAY_LEN(peaks));
        assert_int_equal(made.report->outlier_count, is_far);
        release(&made);
    }
}

/* A larger run of the same rank that was over before the last one began was an earlier run. */
static void an_earlier_run_of_a_rank_is_a_duplicate(void **state)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();
    struct mt_rank_record earlier;

    (void)state;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    earlier = made.set->records[2];
    earlier.begin_t_ns -= UINT64_C(90) * 1000000000;
    earlier.end_t_ns = made.set->records[2].begin_t_ns;
    earlier.reserved_peak.bytes += MT_GIB;
    assert_int_equal(mt_rank_set_add(made.set, &earlier), MT_OK);
    report_of_set(&made, &usual);
    assert_int_equal(made.report->duplicate_count, 1);
    assert_true(made.report->rows[2].record->begin_t_ns == SIMULATED_START_NS);
    release(&made);
}

/* What an incomplete trace needs is a lower bound. */
static void an_incomplete_trace_makes_the_need_a_lower_bound(void **state)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made;

    (void)state;
    job.cut[job.cut_count++] = 1;
    made = make(&job);
    assert_false(made.report->needed_is_exact);
    release(&made);
}

/* Two axes, of which the second has no meaning by its name. One rank that is off changes one of its
 * four lines; if the second shards of all lines have more, they are no replicas. */
static void an_axis_separates_if_most_of_its_lines_differ(void **state)
{
    struct simulated_job job = simulated_job_new(1, 4, 2);

    (void)state;
    for (int all_differ = 0; all_differ < 2; all_differ++) {
        struct made made = made_new();

        assert_true(simulated_job_add(&job, 0, 1, made.set));
        for (uint32_t rank = 1; rank < (all_differ ? 8 : 2); rank += 2)
            made.set->records[rank].reserved_peak.bytes += 2 * MT_GIB;
        report_of_set(&made, &usual);
        assert_int_equal(made.report->axes[2].separates, all_differ);
        assert_int_equal(made.report->cluster_count, 1 + all_differ);
        assert_int_equal(made.report->outlier_count, !all_differ);
        release(&made);
    }
}

/* Three axes with all ranks are independent. Without one rank they overlap; a job of one axis has
 * nothing that could. */
static void axes_overlap_if_ranks_are_missing(void **state)
{
    struct simulated_job job = simulated_job_new(2, 4, 2);
    struct made made;

    (void)state;
    for (uint32_t missing = 0; missing < 2; missing++) {
        job.missing[0] = 5;
        job.missing_count = missing;
        made = make(&job);
        assert_int_equal(made.report->axis_count, 3);
        assert_int_equal(made.report->axes_overlap, missing);
        release(&made);
    }
    job = simulated_job_new(1, 8, 1);
    job.missing[0] = 5;
    job.missing_count = 1;
    made = make(&job);
    assert_false(made.report->axes_overlap);
    release(&made);
}

/* The shares of the heavy coordinates of two axes that mostly have the same ranks sum to more than
 * the whole. */
static void shares_of_overlapping_axes_exceed_the_whole(void **state)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);
    struct made made;

    (void)state;
    for (int32_t rank = 1; rank < 4; rank++)
        job.missing[job.missing_count++] = rank;
    made = make(&job);
    assert_true(made.report->axes_overlap);
    assert_true((uint64_t)made.report->axes[0].explained_ppm + made.report->axes[1].explained_ppm >
                1000000);
    release(&made);
}

/* Two of the others reserved more than the rank that died was allowed to. */
static void ranks_above_the_limit_do_not_fit(void **state)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    (void)state;
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

/* Groups of 2 and of 8 neighbors: the smaller ones are the axis, the larger ones are a product. */
static void the_smallest_group_of_a_stride_is_the_axis(void **state)
{
    struct simulated_job job = simulated_job_new(1, 16, 1);
    struct made made = made_new();

    (void)state;
    job.has_mesh = false;
    job.has_groups = true;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t i = 0; i < 16; i++) {
        struct mt_record_identity *identity = &made.set->records[i].identity;

        identity->group_count = 2;
        for (uint32_t g = 0; g < 2; g++) {
            uint32_t size = g ? 2 : 8;

            identity->groups[g] = (struct mt_record_group){.name = g ? "tp" : "dp_tp",
                                                           .size = size,
                                                           .first = i / size * size,
                                                           .stride = 1,
                                                           .position = (int32_t)(i % size)};
        }
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.report->axis_count, 2);
    assert_axis(made.report, 0, "every_2", 8, 2);
    assert_axis(made.report, 1, "tp", 2, 1);
    release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_fact_is_found_and_nothing_else),
        cmocka_unit_test(a_sound_job_has_nothing_to_report),
        cmocka_unit_test(less_memory_counts_only_of_ranks_that_did_all),
        cmocka_unit_test(one_axis_of_replicas_has_an_outlier),
        cmocka_unit_test(axes_come_from_process_groups),
        cmocka_unit_test(groups_of_one_shape_count_once),
        cmocka_unit_test(axes_are_found_where_nobody_names_them),
        cmocka_unit_test(a_broken_rank_is_no_stage_and_has_replicas),
        cmocka_unit_test(steps_are_stages_only_if_they_repeat),
        cmocka_unit_test(the_user_names_axes),
        cmocka_unit_test(a_mesh_that_the_job_cannot_have_is_refused),
        cmocka_unit_test(several_jobs_need_a_choice),
        cmocka_unit_test(an_empty_set_is_no_job),
        cmocka_unit_test(the_last_restart_is_the_job),
        cmocka_unit_test(a_helper_of_a_rank_is_a_duplicate),
        cmocka_unit_test(processes_that_share_a_device_are_added_up),
        cmocka_unit_test(a_process_that_was_read_twice_is_one_tenant),
        cmocka_unit_test(a_device_that_was_idle_counts_once_for_each_time),
        cmocka_unit_test(many_processes_share_a_device),
        cmocka_unit_test(processes_one_after_the_other_share_nothing),
        cmocka_unit_test(steps_stand_side_by_side),
        cmocka_unit_test(steps_of_any_number_do_no_harm),
        cmocka_unit_test(call_paths_are_summed_over_ranks),
        cmocka_unit_test(a_death_on_another_host_contests_the_first),
        cmocka_unit_test(an_outlier_needs_a_replica_and_a_distance),
        cmocka_unit_test(replicas_that_vary_have_no_outlier_nearby),
        cmocka_unit_test(an_earlier_run_of_a_rank_is_a_duplicate),
        cmocka_unit_test(an_incomplete_trace_makes_the_need_a_lower_bound),
        cmocka_unit_test(an_axis_separates_if_most_of_its_lines_differ),
        cmocka_unit_test(axes_overlap_if_ranks_are_missing),
        cmocka_unit_test(shares_of_overlapping_axes_exceed_the_whole),
        cmocka_unit_test(ranks_above_the_limit_do_not_fit),
        cmocka_unit_test(the_smallest_group_of_a_stride_is_the_axis),
        cmocka_unit_test(the_largest_number_of_a_rank_does_no_harm),
        cmocka_unit_test(devices_of_a_process_without_a_rank_have_names),
        cmocka_unit_test(the_mesh_says_how_many_ranks_there_are),
        cmocka_unit_test(deaths_on_unknown_hosts_are_contested),
        cmocka_unit_test(deaths_without_a_clock_are_contested),
        cmocka_unit_test(a_death_without_a_clock_is_not_the_first),
        cmocka_unit_test(a_rank_with_two_devices_dies_once),
        cmocka_unit_test(growth_is_a_cause_only_if_it_amounts_to_the_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
