/* Which processes are the job: several jobs, restarts, duplicates, and tenants of one device. */
#include "made_job.h"

#include "job_words.h"
#include "phase.h"

TEST(several_jobs_need_a_choice)
{
    struct simulated_job one = simulated_job_new(2, 4, 1), other = simulated_job_new(2, 2, 1);
    struct mt_job_options options = {.job = "slurm:78"};
    struct mt_arena arena = {0};
    struct mt_job_name *names;
    struct made made = made_new();
    uint32_t count;

    other.name = "slurm:78";
    assert_true(simulated_job_add(&one, 0, 1, made.set));
    assert_true(simulated_job_add(&other, 0, 1, made.set));
    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_ERR_USAGE);
    mt_job_names(made.set, &arena, &names, &count);
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

TEST(an_empty_set_is_no_job)
{
    struct made made = made_new();

    report_of_set(&made, &usual);
    assert_int_equal(made.status, MT_ERR_FORMAT);
    release(&made);
}

/* Starts before the last one are told, and count for nothing else. */
TEST(the_last_restart_is_the_job)
{
    struct simulated_job first = simulated_job_new(2, 4, 1), second = first;
    struct made made = made_new();

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
TEST(a_helper_of_a_rank_is_a_duplicate)
{
    struct simulated_job job = simulated_job_new(2, 4, 1);
    struct made made = made_new();
    struct mt_rank_record helper = {0};

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    helper = made.set->records[2];
    helper.identity.process_id = 1;
    helper.leaves = NULL;
    helper.leaf_count = 0;
    memset(helper.role_bytes, 0, sizeof helper.role_bytes);
    helper.allocated_peak.bytes = 0;
    helper.reserved_peak.bytes = 2 * MT_MIB;
    mt_rank_set_add(made.set, &helper);
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
    struct mt_rank_record record = simulated_record(-1, begin_s + (unsigned char)*job);

    record.identity.job = record.trace_name = job;
    record.device_uuid = "GPU-1";
    record.device_bytes = 141 * MT_GIB;
    record.begin_t_ns = begin_s * UINT64_C(1000000000);
    record.end_t_ns = end_s * UINT64_C(1000000000);
    record.columns = columns;
    record.column_count = MT_RECORD_COLUMNS;
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        columns[i].reserved_bytes = i >= from && i < to ? 40 * MT_GIB : 10 * MT_GIB;
    record.reserved_peak.bytes = 40 * MT_GIB;
    record.reserved_peak.t_ns =
        record.begin_t_ns + (record.end_t_ns - record.begin_t_ns) / 512 * from;
    mt_rank_set_add(set, &record);
}

/* Trainer and server hand a device over; the server lets go of 30 of 40 GiB when the trainer wants
 * its own, and 10 GiB do not come back. */
TEST(processes_that_share_a_device_are_added_up)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    add_tenant(made.set, "serve", 0, 512, 0, 200);
    add_tenant(made.set, "train", 0, 512, 300, 400);
    add_tenant(made.set, "later", 600, 700, 0, 10);
    made.set->records[1].device_bytes = 0; /* not known to every process */
    report_of_set(&made, &options);
    assert_int_equal(made.report->row_count, 1);
    assert_int_equal(made.report->device_count, 1);
    const struct mt_job_device *device = &made.report->devices[0];
    assert_int_equal(device->tenant_count, 2);
    assert_int_equal(device->peak_bytes, 50 * MT_GIB);
    assert_true(device->total_bytes == 141 * MT_GIB);
    assert_string_equal(device->tenants[1].record->identity.job, "train");
    assert_int_equal(device->tenants[1].others_bytes, 10 * MT_GIB);
    release(&made);
}

static bool advises_to_give_back(const struct made *made)
{
    struct mt_job_words words = {.report = made->report};
    bool found = false;

    mt_job_describe_device(&words, &made->report->devices[0]);
    for (const struct mt_job_sentence *at = words.first; at; at = at->next)
        found |= strstr(at->text, "let that process give it back first") != NULL;
    mt_job_words_release(&words);
    return found;
}

/* The trainer's level is 40 GiB all the time, and 4 GiB of it are allocated when the server dies.
 */
TEST(a_process_holds_unused_memory_while_another_is_refused)
{
    struct mt_record_level levels[] = {{0, 40 * MT_GIB}};
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    add_tenant(made.set, "serve", 0, 512, 0, 200);
    add_tenant(made.set, "train", 0, 512, 0, 512);
    struct mt_rank_record *server = &made.set->records[0];
    struct mt_rank_record *trainer = &made.set->records[1];
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        trainer->columns[i].allocated_bytes = i == 300 ? 4 * MT_GIB : 39 * MT_GIB;
    server->levels = trainer->levels = levels;
    server->level_count = trainer->level_count = 1;
    server->has_death = true;
    server->death_t_ns = UINT64_C(300500000000);
    server->death_wanted_bytes = 36 * MT_GIB;
    report_of_set(&made, &options);
    const struct mt_job_device *device = &made.report->devices[0];
    assert_true(device->is_exact);
    assert_string_equal(device->refused->record->trace_name, "serve");
    assert_string_equal(device->tenants[1].record->trace_name, "train");
    assert_int_equal(device->tenants[1].refusal_bytes, 40 * MT_GIB);
    assert_int_equal(device->tenants[1].refusal_unused_bytes, 36 * MT_GIB);
    assert_true(advises_to_give_back(&made));
    server->death_free_bytes = server->death_wanted_bytes; /* the device was not full */
    assert_false(advises_to_give_back(&made));
    server->death_free_bytes = 2 * MT_GIB;
    server->death_wanted_bytes = 38 * MT_GIB;
    assert_true(advises_to_give_back(&made));
    server->death_wanted_bytes++; /* more than what is cached and free */
    assert_false(advises_to_give_back(&made));
    release(&made);
}

/* A process that was read twice, as by two versions of the program, holds its memory once. */
TEST(a_process_that_was_read_twice_is_one_tenant)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

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
TEST(a_device_that_was_idle_counts_once_for_each_time)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();
    const uint64_t year_s = 31536000;

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
TEST(many_processes_share_a_device)
{
    enum { PROCESSES = 1100 };
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

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

TEST(processes_one_after_the_other_share_nothing)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();

    add_tenant(made.set, "serve", 0, 100, 0, 200);
    add_tenant(made.set, "train", 100, 200, 300, 400);
    report_of_set(&made, &options);
    assert_int_equal(made.report->device_count, 0);
    release(&made);
}

/* Two processes without a rank, one of which has two devices. */
TEST(devices_of_a_process_without_a_rank_have_names)
{
    struct mt_job_options options = {.job = "train"};
    struct made made = made_new();
    struct mt_arena arena = {0};

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

/* A larger run of the same rank that was over before the last one began was an earlier run. */
TEST(an_earlier_run_of_a_rank_is_a_duplicate)
{
    struct simulated_job job = simulated_job_new(1, 4, 1);
    struct made made = made_new();

    assert_true(simulated_job_add(&job, 0, 1, made.set));
    struct mt_rank_record earlier = made.set->records[2];
    earlier.begin_t_ns -= UINT64_C(90) * 1000000000;
    earlier.end_t_ns = made.set->records[2].begin_t_ns;
    earlier.reserved_peak.bytes += MT_GIB;
    mt_rank_set_add(made.set, &earlier);
    report_of_set(&made, &usual);
    assert_int_equal(made.report->duplicate_count, 1);
    assert_true(made.report->rows[2].record->begin_t_ns == SIMULATED_START_NS);
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
