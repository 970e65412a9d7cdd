/* The content of a record, from constructed reports. */
#include "cmocka_all.h"

#include "cards.h"
#include "level_over_time_model.h"
#include "summarize.h"
#include "synthetic_report.h"

struct summarized {
    struct mt_report report;
    struct mt_identity identity;
    struct mt_rank_set set;
};

static void begin(struct summarized *work, const struct synthetic_options *options)
{
    memset(work, 0, sizeof *work);
    synthetic_report(&work->report, options);
    work->identity.rank = work->identity.local_rank = -1;
    work->identity.world = work->identity.restart = -1;
}

static const struct mt_rank_record *finish(struct summarized *work)
{
    struct mt_error error = {0};

    if (mt_summarize(&work->report, &work->identity, &work->set, &error) != MT_OK)
        fail_msg("%s", error.text);
    return work->set.records;
}

static void end(struct summarized *work)
{
    mt_rank_set_release(&work->set);
    synthetic_release(&work->report);
}

static void check_outcome(enum mt_ending ended, int32_t number, bool cut, enum mt_outcome wanted)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 2};
    struct summarized work;

    begin(&work, &options);
    work.identity.ended = ended;
    work.identity.ended_number = number;
    work.report.integrity.cut = cut;
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->outcome, wanted);
    assert_false(record->has_death);
    assert_int_equal(record->death_path, MT_NO_PATH);
    if (cut)
        assert_false(record->is_complete);
    end(&work);
}

TEST(endings_become_outcomes)
{
    check_outcome(MT_ENDED_EXIT, 0, false, MT_OUTCOME_FINISHED);
    check_outcome(MT_ENDED_EXIT, 0, true, MT_OUTCOME_FINISHED);
    check_outcome(MT_ENDED_EXIT, 1, false, MT_OUTCOME_FAILED);
    check_outcome(MT_ENDED_SIGNAL, 9, true, MT_OUTCOME_KILLED);
    check_outcome(MT_ENDED_TIMEOUT, 0, false, MT_OUTCOME_KILLED);
    check_outcome(MT_ENDED_OOM_KILLED, 0, false, MT_OUTCOME_KILLED);
    check_outcome(MT_ENDED_UNKNOWN, 0, true, MT_OUTCOME_CUT);
    check_outcome(MT_ENDED_UNKNOWN, 0, false, MT_OUTCOME_UNKNOWN);
}

/* Independent of the exit status: a program that catches the error may exit with 0. */
TEST(a_fatal_request_is_a_death)
{
    const struct synthetic_options options = {
        .kind = SYNTHETIC_TRAINING, .steps = 2, .ooms = 2, .fatal = true};
    struct summarized work;

    begin(&work, &options);
    work.identity.ended = MT_ENDED_EXIT;
    const struct mt_oom *oom = &work.report.devices[0].oom_list[1];
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->outcome, MT_OUTCOME_OOM);
    assert_true(record->has_death);
    assert_int_equal(record->death_wanted_bytes, 2 * MT_GIB);
    assert_int_equal(record->death_free_bytes, 300 * MT_MIB);
    assert_int_equal(record->death_event, oom->event);
    assert_int_equal(record->death_t_ns, oom->t_ns);
    assert_int_equal(record->ooms, 2);
    assert_true(record->needed_bytes >= oom->then.allocated + 2 * MT_GIB);
    assert_false(record->needed_is_known);
    end(&work);
}

/* A failed request is not fatal if the driver allocates memory after it. */
TEST(without_a_framework_the_driver_decides)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_NO_PHASES, .seed = 3};
    struct mt_driver_failure failure = {
        .t_ns = 7, .event = 8, .request_bytes = 9 * MT_GIB, .stack = MT_NO_ID};
    struct mt_driver_report driver = {.failures = &failure, .failure_count = 1};

    for (int i = 0; i < 3; i++) {
        bool ended_well = i == 1, is_fatal = i != 2, died = is_fatal && !ended_well;
        struct summarized work;

        begin(&work, &options);
        work.report.is_driver_level = true;
        work.report.drivers = &driver;
        work.report.driver_count = 1;
        work.identity.ended = ended_well ? MT_ENDED_EXIT : MT_ENDED_UNKNOWN;
        driver.fatal = is_fatal ? &failure : NULL;
        const struct mt_rank_record *record = finish(&work);
        assert_int_equal(record->outcome, died         ? MT_OUTCOME_OOM
                                          : ended_well ? MT_OUTCOME_FINISHED
                                                       : MT_OUTCOME_UNKNOWN);
        assert_int_equal(record->death_wanted_bytes, died ? 9 * MT_GIB : 0);
        end(&work);
    }
}

TEST(neighbours_are_merged)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 600};
    struct summarized work;
    uint64_t highest = 0;

    begin(&work, &options);
    struct mt_step_use *steps = work.report.devices[0].steps;
    for (uint32_t i = 0; i < 600; i++)
        steps[i].peak.allocated = steps[i].exit.allocated = 1000 + i * 7919 % 601;
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->step_count, 200); /* three in each */
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step *step = &record->steps[i];
        uint64_t peak = 0;

        assert_int_equal(step->first, steps[3 * i].step);
        assert_int_equal(step->last, steps[3 * i + 2].step);
        assert_int_equal(step->begin_t_ns, steps[3 * i].begin_t_ns);
        assert_int_equal(step->end_t_ns, steps[3 * i + 2].end_t_ns);
        for (uint32_t k = 0; k < 3; k++)
            peak = mt_max_u64(peak, steps[3 * i + k].peak.allocated);
        assert_int_equal(step->allocated_peak_bytes, peak);
        assert_int_equal(step->end_allocated_bytes, steps[3 * i + 2].exit.allocated);
        highest = mt_max_u64(highest, peak);
    }
    assert_int_equal(highest, 1600);
    assert_int_equal(record->last_step, steps[599].step);
    end(&work);
}

/* A program that counts from 0 in each epoch: each step still has its own number, which peaks also
 * use. */
TEST(steps_that_do_not_ascend_are_counted)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 6};
    struct summarized work;

    begin(&work, &options);
    struct mt_device_report *device = &work.report.devices[0];
    for (uint32_t i = 0; i < 6; i++)
        device->steps[i].step = i % 3;
    device->allocated_peak.event = device->steps[4].end_event;
    device->allocated_peak.step = 1;
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->step_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(record->steps[i].first, i);
    assert_int_equal(record->last_step, 5);
    assert_int_equal(record->allocated_peak.step, 4);
    end(&work);
}

TEST(no_steps)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_NO_PHASES, .seed = 5};
    struct summarized work;

    begin(&work, &options);
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->step_count, 0);
    assert_int_equal(record->last_step, MT_NO_STEP);
    end(&work);
}

/* One library each time, and more libraries than there is space for. */
TEST(owners_are_added_up)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 2};
    struct mt_owner_use owners[200];
    struct mt_driver_report driver = {.has_calls = true, .has_then = true, .owners = owners};
    char names[200][16];
    struct summarized work;
    uint64_t total = 0;

    begin(&work, &options);
    memset(owners, 0, sizeof owners);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "lib%u.so", i % 100);
        owners[i].library = i % 10 ? names[i] : NULL;
        owners[i].bytes = i + 1;
        driver.then.bytes += i + 1;
    }
    driver.owner_count = 200;
    work.report.drivers = &driver;
    work.report.driver_count = 1;
    const struct mt_rank_record *record = finish(&work);
    /* "" is one of the largest, and takes the rest */
    assert_int_equal(record->owner_count, MT_RECORD_OWNERS - 1);
    assert_string_equal(record->owners[0].library, "");
    for (uint32_t i = 0; i < record->owner_count; i++) {
        assert_true(!i || strcmp(record->owners[i - 1].library, record->owners[i].library) < 0);
        total += record->owners[i].bytes;
    }
    assert_int_equal(total, record->outside_bytes);
    assert_int_equal(total, 200 * 201 / 2);
    end(&work);
}

/* The parts of the memory that a card must have, as far as they are known, and their sum. */
TEST(needs_have_the_known_parts)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 2};
    const struct mt_need need = {.bytes = 5000, .low_bytes = 4000, .order_count = 8};
    struct mt_driver_report driver = {.has_then = true,
                                      .then = {.bytes = 900, .framework_bytes = 600},
                                      .residual = {.tracked_from = MT_TRACKED_DRIVER,
                                                   .samples = 2,
                                                   .used_bytes = 970,
                                                   .tracked_bytes = 900}};

    for (int known = 0; known < 4; known++) {
        struct summarized work;

        begin(&work, &options);
        uint64_t peak = work.report.devices[0].reserved_peak.bytes;
        work.report.devices[0].need = known & 1 ? &need : NULL;
        driver.residual.samples = known & 2 ? 2 : 0;
        work.report.drivers = &driver;
        work.report.driver_count = 1;
        const struct mt_rank_record *record = finish(&work);
        assert_true(record->needed_is_known); /* the run was served with what it reserved */
        assert_int_equal(record->allocator_need_is_known, known & 1);
        assert_int_equal(record->allocator_need_low_bytes, known & 1 ? 4000 : 0);
        assert_int_equal(record->outside_bytes, 300);
        assert_int_equal(record->has_context, !!(known & 2));
        /* what is assumed for CUDA includes the libraries */
        assert_int_equal(record->needed_bytes, (known & 1 ? 5000 : peak) +
                                                   (known & 2 ? 300 + 70 : MT_CARD_OVERHEAD_BYTES));
        end(&work);
    }
}

TEST(identity_and_devices)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 1, .devices = 2};
    struct summarized work;

    begin(&work, &options);
    work.report.path = "/runs/job7/rank5.trace.zst";
    strcpy(work.identity.job, "slurm:7");
    strcpy(work.identity.host, "node3");
    work.identity.rank = 5;
    work.identity.mesh = (struct mt_mesh){2, {{"pp", 1, 4}, {"tp", 0, 2}}};
    work.identity.device_count = 1;
    work.identity.devices[0].index = 1;
    strcpy(work.identity.devices[0].uuid, "GPU-1");
    work.identity.group_count = 2;
    strcpy(work.identity.groups[0].name, "5");
    strcpy(work.identity.groups[1].name, "0:default_pg");
    work.identity.groups[1].size = 8;
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(work.set.record_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(record[i].device, i);
        assert_int_equal(record[i].identity.rank, 5);
        assert_string_equal(record[i].identity.job, "slurm:7");
        assert_string_equal(record[i].trace_name, "rank5.trace.zst");
        assert_string_equal(record[i].device_uuid, i == 1 ? "GPU-1" : "");
        assert_int_equal(record[i].identity.axis_count, 2);
        assert_string_equal(record[i].identity.axes[0].name, "pp");
        assert_int_equal(record[i].identity.axes[0].size, 4);
        assert_string_equal(record[i].identity.groups[0].name, "0:default_pg");
        assert_int_equal(record[i].identity.groups[0].size, 8);
    }
    end(&work);
}

static uint32_t stack_of(struct mt_symbols *symbols, const char *function)
{
    uint32_t name, file, frame, stack;

    assert_int_equal(mt_symbols_string(symbols, function, strlen(function), &name), MT_OK);
    assert_int_equal(mt_symbols_string(symbols, "a.py", 4, &file), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, name, file, 7, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &stack), MT_OK);
    return stack;
}

enum { SITES = 400 };

/* A block from each of many functions, of all roles. Returns their bytes. */
static uint64_t hold(struct mt_device_report *device, struct mt_symbols *symbols,
                     struct mt_holding *holdings)
{
    uint64_t total = 0;

    memset(device->peak_role_bytes, 0, sizeof device->peak_role_bytes);
    for (uint32_t i = 0; i < SITES; i++) {
        char name[16];

        snprintf(name, sizeof name, "f%u", i);
        holdings[i] = (struct mt_holding){.stack = stack_of(symbols, name),
                                          .tied = MT_NO_ID,
                                          .phase = MT_NO_PHASE,
                                          .role = (enum mt_role)(i % MT_ROLE_COUNT),
                                          .tag = MT_NO_ID,
                                          .block_bytes = 512 * (i + 1),
                                          .blocks = 1,
                                          .bytes = 512 * (i + 1),
                                          .first_birth_event = 1};
        device->peak_role_bytes[i % MT_ROLE_COUNT] += holdings[i].bytes;
        total += holdings[i].bytes;
    }
    return total;
}

/* The largest leaves keep their path, and roles still sum. */
TEST(small_leaves_become_the_rest)
{
    const struct synthetic_options options = {.kind = SYNTHETIC_TRAINING, .steps = 1};
    struct mt_symbols symbols;
    struct mt_holding holdings[SITES];
    struct mt_instant instant = {
        .kind = MT_INSTANT_PEAK_ALLOCATED, .holdings = holdings, .holding_count = SITES};
    struct summarized work;
    uint64_t without_path = 0, total;

    begin(&work, &options);
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    total = hold(&work.report.devices[0], &symbols, holdings);
    instant.bytes.allocated = work.report.devices[0].allocated_peak.bytes = total;
    work.report.devices[0].instants = &instant;
    work.report.devices[0].instant_count = 1;
    work.report.symbols = &symbols;
    const struct mt_rank_record *record = finish(&work);
    assert_int_equal(record->leaf_count, MT_RECORD_LEAVES);
    for (uint32_t i = 0; i < record->leaf_count; i++) {
        without_path += record->leaves[i].path == MT_NO_PATH;
        if (record->leaves[i].path != MT_NO_PATH)
            assert_true(record->leaves[i].bytes > 512 * (SITES - MT_RECORD_LEAVES));
        total -= record->leaves[i].bytes;
    }
    assert_int_equal(without_path, MT_ROLE_COUNT);
    assert_int_equal(total, 0);
    mt_symbols_release(&symbols);
    end(&work);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
