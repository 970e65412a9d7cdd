/* The axes of a job: where they come from, and which of them separates ranks of unlike memory. */
#include "made_job.h"

#include "phase.h"

/* Replicas alone: a job of one axis, with one rank that is off. */
TEST(one_axis_of_replicas_has_an_outlier)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);

    job.leaking_rank = 3;
    job.has_mesh = job.has_hashes = false;
    struct made made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_NONE);
    assert_int_equal(made.report->outlier_count, 1);
    assert_int_equal(rank_of(made.report, made.report->outliers[0].row), 3);
    release(&made);
}

TEST(axes_come_from_process_groups)
{
    struct simulated_job job = simulated_job_new(8, 16, 8);

    job.has_mesh = false;
    job.has_groups = true;
    job.missing[job.missing_count++] = 9;
    struct made made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_GROUPS);
    assert_int_equal(made.report->axis_count, 3);
    assert_axis(made.report, 0, "pp", 8, 128);
    assert_axis(made.report, 1, "dp", 16, 8);
    assert_axis(made.report, 2, "tp", 8, 1);
    assert_int_equal(made.report->outlier_count, 0);
    release(&made);
}

/* Half of the ranks have two groups of one shape: that makes no axis of all ranks. */
TEST(groups_of_one_shape_count_once)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

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

TEST(axes_are_found_where_nobody_names_them)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);

    job.has_mesh = false;
    job.missing[job.missing_count++] = 0;
    job.missing[job.missing_count++] = 40;
    struct made made = make(&job);
    assert_int_equal(made.report->axes_source, MT_AXES_FOUND);
    assert_int_equal(made.report->axis_count, 2);
    assert_axis(made.report, 0, "stage", 4, 16);
    assert_axis(made.report, 1, "replica", 16, 1);
    assert_int_equal(made.report->outlier_count, 0);
    release(&made);
}

TEST(the_user_names_axes)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);
    struct mt_job_options options = {.mesh = "pp:4,dp:8,tp:2"};
    struct made made = make_with(&job, &options);

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

TEST(a_mesh_that_the_job_cannot_have_is_refused)
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

    for (size_t i = 0; i < MT_ARRAY_LEN(meshes); i++) {
        struct mt_job_options options = {.mesh = meshes[i]};
        struct made made = make_with(&job, &options);

        assert_int_equal(made.status, MT_ERR_USAGE);
        assert_null(made.report);
        assert_non_null(strstr(made.error.text, "mesh"));
        release(&made);
    }
}

/* The traces do not say how many ranks there are, and the last one left no file: the mesh says so.
 */
TEST(the_mesh_says_how_many_ranks_there_are)
{
    struct simulated_job job = simulated_job_new(4, 8, 2);
    const struct mt_job_options options = {.mesh = "pp:4,dp:8,tp:2"};

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

/* Two axes, of which the second has no meaning by its name. One rank that is off changes one of its
 * four lines; if the second shards of all lines have more, they are no replicas. */
TEST(an_axis_separates_if_most_of_its_lines_differ)
{
    struct simulated_job job = simulated_job_new(1, 4, 2);

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
TEST(axes_overlap_if_ranks_are_missing)
{
    struct simulated_job job = simulated_job_new(2, 4, 2);
    struct made made;

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
TEST(shares_of_overlapping_axes_exceed_the_whole)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);

    for (int32_t rank = 1; rank < 4; rank++)
        job.missing[job.missing_count++] = rank;
    struct made made = make(&job);
    assert_true(made.report->axes_overlap);
    assert_true((uint64_t)made.report->axes[0].explained_ppm + made.report->axes[1].explained_ppm >
                1000000);
    release(&made);
}

/* Groups of 2 and of 8 neighbors: the smaller ones are the axis, the larger ones are a product. */
TEST(the_smallest_group_of_a_stride_is_the_axis)
{
    struct simulated_job job = simulated_job_new(1, 16, 1);
    struct made made = made_new();

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
    return run_tests_of_file(NULL, NULL);
}
