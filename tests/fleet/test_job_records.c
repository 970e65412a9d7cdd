/* What a job is told from the lists of its records: sites, levels, communicators, endings. */
#include "made_job.h"

#include "dice.h"

/* A leak that another moment hides: rank 3 has no more than the others at any peak. */
TEST(a_leak_below_the_peak_is_an_outlier)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();
    static const char site[] = "remember train.py:99";

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    struct mt_rank_record *leaking = &made.set->records[3];
    leaking->growth_bytes_per_step = 48 * MT_MIB;
    leaking->growth_site = mt_rank_set_path(made.set, MT_NO_PATH, site, strlen(site));
    report_of_set(&made, &usual);
    assert_int_equal(made.report->outlier_count, 1);
    const struct mt_job_outlier *outlier = outlier_of(made.report, 3);
    assert_int_equal(outlier->metric, MT_JOB_GROWTH);
    assert_int_equal(outlier->cause, MT_OUTLIER_GROWTH);
    assert_true(outlier->bytes == SIMULATED_STEPS * 48 * MT_MIB);
    assert_string_equal(mt_job_site(made.report, outlier->path), site);
    release(&made);
}

/* What a trace does not tell is not less than what the others have. */
TEST(what_is_not_known_is_no_outlier)
{
    struct simulated_job job = simulated_job_new(1, 8, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t r = 0; r < 8; r++) {
        struct mt_rank_record *record = &made.set->records[r];

        record->has_driver = r != 3;
        record->growth_is_judged = r != 5;
        record->growth_bytes_per_step = r != 5 ? 48 * MT_MIB : 0;
        if (r == 3)
            record->outside_bytes = record->owner_count = 0;
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.report->outlier_count, 0);
    release(&made);
}

/* Two call paths of one site count as one, in each row and over all. */
TEST(call_paths_of_one_site_are_one)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t r = 0; r < 4; r++) {
        struct mt_record_leaf *leaves = made.set->records[r].leaves;

        leaves[2].site = leaves[1].site;
        made.set->records[r].role_bytes[MT_ROLE_ACTIVATIONS] += leaves[2].bytes;
        made.set->records[r].role_bytes[MT_ROLE_TEMPORARIES] -= leaves[2].bytes;
        leaves[2].role = MT_ROLE_ACTIVATIONS;
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.report->path_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct mt_job_path *path = &made.report->paths[i];

        if (path->role != MT_ROLE_ACTIVATIONS)
            continue;
        assert_int_equal(path->row_count, 4);
        assert_true(path->max_bytes > 512 * MT_MIB && path->min_bytes > 512 * MT_MIB);
        assert_true(path->sum_bytes > 4 * 512 * (unsigned __int128)MT_MIB);
    }
    release(&made);
}

TEST(ranks_without_an_exit_are_counted)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    job.dying_rank = 1;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t r = 2; r < 4; r++) {
        struct mt_rank_record *record = &made.set->records[r];

        record->outcome = MT_OUTCOME_UNKNOWN;
        record->identity.ended = MT_ENDED_UNKNOWN;
        record->identity.ended_number = 0;
        record->identity.ended_t_ns = 0;
        record->identity.boot_id = r == 2 ? "5f0c" : ""; /* rank 3: a snapshot, not recorded */
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.report->death->followed_count, 1);
    assert_int_equal(made.report->death->vanished_count, 1);
    assert_int_equal(made.report->death->vanished[0].first, 2);
    release(&made);
}

/* Rank 2 runs out on one of its two devices: it did not fail for another reason on the other. */
TEST(a_rank_that_died_on_a_device_did_not_follow)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    job.dying_rank = 1;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    struct mt_rank_record *records = made.set->records;
    records[2].has_death = true;
    records[2].outcome = MT_OUTCOME_OOM;
    records[2].death_t_ns = records[1].death_t_ns + 1;
    records[3].identity = records[2].identity;
    records[3].device = records[2].device + 1;
    report_of_set(&made, &usual);
    assert_int_equal(made.report->row_count, 4);
    assert_int_equal(made.report->death->count, 2);
    assert_int_equal(made.report->death->followed_count, 1);
    assert_int_equal(made.report->death->followed[0].last, 0);
    release(&made);
}

/* A rank's communicators: one with `size` ranks at equal distances, by its id. */
static void add_communicator(struct mt_rank_set *set, uint32_t rank, uint64_t id, uint32_t size,
                             uint32_t position)
{
    struct mt_rank_record *record = &set->records[rank];

    record->communicators[record->communicator_count++] =
        (struct mt_record_communicator){id, size, position, 0};
}

/* Two stages of four replicas; `chain`: also a communicator of each pair of neighbors. */
static struct made make_communicating(struct mt_record_communicator rooms[8][8], bool chain,
                                      bool is_incomplete)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);
    struct made made = made_new();

    job.has_mesh = false;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    for (uint32_t rank = 0; rank < 8; rank++) {
        made.set->records[rank].communicators = rooms[rank];
        add_communicator(made.set, rank, 1, 8, rank);
        if (rank != 5 || !is_incomplete)
            add_communicator(made.set, rank, 10 + rank / 4, 4, rank % 4);
        add_communicator(made.set, rank, 20 + rank % 4, 2, rank / 4);
        if (chain && rank)
            add_communicator(made.set, rank, 30 + rank, 2, 1);
        if (chain && rank < 7)
            add_communicator(made.set, rank, 31 + rank, 2, 0);
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    return made;
}

TEST(axes_come_from_communicators)
{
    for (int chain = 0; chain < 2; chain++) {
        struct mt_record_communicator rooms[8][8];
        struct made made = make_communicating(rooms, chain, false);

        assert_int_equal(made.report->axes_source, MT_AXES_COMMUNICATORS);
        assert_int_equal(made.report->axis_count, 2);
        assert_axis(made.report, 0, "stage", 2, 4);
        assert_axis(made.report, 1, "replica", 4, 1);
        release(&made);
    }
}

/* A process with two devices has a record for each, and both name its communicators. */
TEST(a_rank_with_two_devices_is_one_member)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);
    struct mt_record_communicator rooms[9][8];
    struct made made = made_new();

    job.has_mesh = false;
    assert_true(simulated_job_add(&job, 0, 1, made.set));
    assert_true(simulated_job_add(&job, 3, 8, made.set));
    assert_int_equal(made.set->record_count, 9);
    made.set->records[8].device = 1;
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t rank = i < 8 ? i : 3;

        made.set->records[i].communicators = rooms[i];
        add_communicator(made.set, i, 10 + rank / 4, 4, rank % 4);
        add_communicator(made.set, i, 20 + rank % 4, 2, rank / 4);
    }
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_OK);
    assert_int_equal(made.report->row_count, 9);
    assert_int_equal(made.report->axes_source, MT_AXES_COMMUNICATORS);
    assert_int_equal(made.report->axis_count, 2);
    assert_axis(made.report, 0, "stage", 2, 4);
    assert_axis(made.report, 1, "replica", 4, 1);
    for (uint32_t row = 3; row < 5; row++) { /* both devices of rank 3 */
        assert_int_equal(made.report->rows[row].record->identity.rank, 3);
        assert_int_equal(made.report->rows[row].coordinates[0], 0);
        assert_int_equal(made.report->rows[row].coordinates[1], 3);
    }
    release(&made);
}

/* A member is missing: the group of four is none, and the axis between groups of two remains. */
TEST(communicators_without_a_member_are_no_axis)
{
    struct mt_record_communicator rooms[8][8];
    struct made made = make_communicating(rooms, false, true);

    assert_int_equal(made.report->axis_count, 2);
    assert_axis(made.report, 0, "stage", 2, 4);
    release(&made);
}

enum { TENANTS = 3, CHANGES = 40 };

/* Largest sum by walking over all levels, each with what the others have at its time. */
static uint64_t slow_peak(struct mt_record_level levels[TENANTS][CHANGES], const uint64_t *ends)
{
    uint64_t most = 0;

    for (uint32_t t = 0; t < TENANTS; t++)
        for (uint32_t c = 0; c < CHANGES; c++) {
            uint64_t sum = levels[t][c].reserved_bytes, now = levels[t][c].t_ns;

            for (uint32_t i = 0; i < TENANTS; i++)
                for (uint32_t k = CHANGES; k-- > 0 && i != t;)
                    if (levels[i][k].t_ns <= now) {
                        sum += now < ends[i] ? levels[i][k].reserved_bytes : 0;
                        break;
                    }
            most = mt_max_u64(most, sum);
        }
    return most;
}

/* Times of the tenants differ. A tenant may have several levels at one time. */
static void add_random_tenant(struct mt_rank_set *set, uint64_t *seed, uint32_t number,
                              struct mt_record_level *levels)
{
    struct mt_record_column columns[MT_RECORD_COLUMNS] = {{0, 0}};
    struct mt_rank_record record = simulated_record(-1, 1 + number);
    uint64_t t_ns = SIMULATED_START_NS + number;

    record.device_uuid = "GPU-1";
    record.columns = columns;
    record.column_count = MT_RECORD_COLUMNS;
    record.levels = levels;
    record.level_count = CHANGES;
    for (uint32_t i = 0; i < CHANGES; i++) {
        levels[i] = (struct mt_record_level){t_ns, (dice_linear(seed) >> 40) * 512};
        record.reserved_peak.bytes =
            mt_max_u64(record.reserved_peak.bytes, levels[i].reserved_bytes);
        if ((dice_linear(seed) >> 40) % 3)
            t_ns += TENANTS * (1 + (dice_linear(seed) >> 44) % 1000);
    }
    record.begin_t_ns = levels[0].t_ns;
    record.end_t_ns = t_ns;
    mt_rank_set_add(set, &record);
}

TEST(sums_of_a_shared_device_are_exact)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct mt_record_level levels[TENANTS][CHANGES];
        struct made made = made_new();
        uint64_t dice = seed, ends[TENANTS], highest = 0;

        for (uint32_t i = 0; i < TENANTS; i++)
            add_random_tenant(made.set, &dice, i, levels[i]);
        for (uint32_t i = 0; i < TENANTS; i++)
            ends[i] = made.set->records[i].end_t_ns;
        report_of_set(&made, &usual);
        assert_int_equal(made.report->device_count, 1);
        const struct mt_job_device *device = &made.report->devices[0];
        assert_true(device->is_exact);
        if (device->peak_bytes != slow_peak(levels, ends))
            fail_msg("seed %llu: %llu", (unsigned long long)seed,
                     (unsigned long long)device->peak_bytes);
        for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
            uint64_t sum = 0;

            for (uint32_t i = 0; i < TENANTS; i++)
                sum += mt_job_tenant_bytes(device, i, c);
            assert_true(sum == device->columns[c]);
            highest = mt_max_u64(highest, sum);
        }
        assert_true(highest == device->peak_bytes);
        release(&made);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
