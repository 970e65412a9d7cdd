/* The fact that a device was simulated: how it is written and read, that no times are reported, and
 * what the report adds for memory that only a real device shows. */
#include <string.h>

#include "card_use.h"
#include "cards.h"
#include "header.h"
#include "source.h"

#include "cmocka_all.h"

TEST(a_written_fact_is_read)
{
    const struct mt_dry_run wrote = {"H200 141 GB", 2, UINT64_C(150109880320)};
    struct mt_dry_run read;
    struct mt_buf out = {0};

    mt_dry_run_write(&wrote, &out);
    assert_string_equal(out.data, "version=1;card=H200 141 GB;devices=2;memory_bytes=150109880320");
    assert_true(mt_dry_run_read(out.data, &read));
    assert_string_equal(read.card, wrote.card);
    assert_int_equal(read.devices, 2);
    assert_int_equal(read.memory_bytes, wrote.memory_bytes);
    mt_buf_release(&out);
    assert_false(mt_dry_run_read(NULL, &read));
}

TEST(damaged_facts_still_mark_a_dry_run)
{
    char text[200] = "card=";
    struct mt_dry_run read;

    memset(text + 5, 'x', 190);
    assert_true(mt_dry_run_read(text, &read)); /* too long a name */
    assert_string_equal(read.card, "");
    assert_true(mt_dry_run_read("", &read));
    assert_true(mt_dry_run_read(";;=;card;devices=-1;memory_bytes=99999999999999999999999", &read));
    assert_string_equal(read.card, "");
    assert_int_equal(read.devices, 0);
    assert_int_equal(read.memory_bytes, 0);
    assert_true(mt_dry_run_read("version=9;later=thing;card=T4 16 GB", &read));
    assert_string_equal(read.card, "T4 16 GB");
}

static enum mt_status one_event(struct mt_source *source, struct mt_event_batch *batch,
                                struct mt_error *error)
{
    static struct mt_event event;

    (void)error;
    if (source->progress_bytes++)
        return MT_END;
    event = (struct mt_event){.kind = MT_EVENT_PHASE_PUSH, .t_ns = 77};
    *batch = (struct mt_event_batch){.events = &event, .count = 1};
    return MT_OK;
}

static uint64_t time_of_first_event(const char *fact)
{
    static const struct mt_source_ops ops = {.next = one_event};
    struct mt_source source = {.ops = &ops, .header = {.dry_run = fact}};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_event_batch batch;

    assert_int_equal(mt_source_next(&source, &batch, &error), MT_OK);
    return batch.events[0].t_ns;
}

TEST(times_are_removed)
{
    assert_int_equal(time_of_first_event(NULL), 77);
    assert_int_equal(time_of_first_event("version=1;card=H200 141 GB"), 0);
}

TEST(overhead_of_a_card_comes_from_the_table)
{
    const struct mt_device_report device = {.device = 0};
    struct mt_report report = {.framework = "PyTorch 2.11.0+cu130",
                               .is_dry_run = true,
                               .dry_run = {.card = "H200 141 GB"},
                               .saw_backward = true};
    struct mt_card_overhead overhead = mt_card_overhead_of(&report, &device);

    assert_true(overhead.is_known);
    assert_int_equal(overhead.cuda_major, 13);
    assert_int_equal(overhead.row_count, 2);
    assert_int_equal(overhead.most_bytes, 769339908 + 2 * 67240960);
    report.saw_backward = false; /* autograd's thread has no cuBLAS handle in that case */
    overhead = mt_card_overhead_of(&report, &device);
    assert_int_equal(overhead.most_bytes, 769339908 + 67240960);
}

TEST(unmeasured_overhead_is_unknown)
{
    const struct mt_device_report device = {.device = 0};
    struct mt_report report = {.framework = "PyTorch 2.11.0+cu130",
                               .is_dry_run = true,
                               .dry_run = {.card = "RTX 4090 24 GB"}};

    assert_false(mt_card_overhead_of(&report, &device).is_known);
    report.dry_run = (struct mt_dry_run){.card = "H200 141 GB"};
    report.framework = "PyTorch 2.9.0+cu128";
    assert_false(mt_card_overhead_of(&report, &device).is_known);
    report.framework = NULL;
    assert_false(mt_card_overhead_of(&report, &device).is_known);
    assert_int_equal(mt_card_overhead_of(&report, &device).most_bytes, 0);
}

TEST(communicators_of_many_ranks_are_not_measured)
{
    const struct mt_device_report device = {.device = 0};
    struct mt_owner_use owner = {.library = "NCCL"};
    struct mt_communicator_use told = {.ranks = 5};
    struct mt_driver_report driver = {.owners = &owner, .owner_count = 1};
    struct mt_report report = {.framework = "PyTorch 2.11.0+cu130",
                               .is_dry_run = true,
                               .dry_run = {.card = "H200 141 GB"},
                               .world_size = 2,
                               .drivers = &driver,
                               .driver_count = 1};
    struct mt_card_overhead overhead = mt_card_overhead_of(&report, &device);

    assert_true(overhead.is_known);
    report.world_size = 8;
    overhead = mt_card_overhead_of(&report, &device);
    assert_false(overhead.is_known);
    assert_false(overhead.lacks_rows);
    assert_int_equal(overhead.unmeasured_ranks, 8);
    report.world_size = -1; /* made without a launcher */
    assert_true(mt_card_overhead_of(&report, &device).is_known);
    driver.communicators = &told;
    driver.told_communicator_count = 1;
    assert_int_equal(mt_card_overhead_of(&report, &device).unmeasured_ranks, 5);
    told.ranks = 4;
    assert_true(mt_card_overhead_of(&report, &device).is_known);
    strcpy(report.dry_run.card, "H100 80 GB");
    assert_true(mt_card_overhead_of(&report, &device).is_known);
    strcpy(report.dry_run.card, "T4 16 GB");
    assert_true(mt_card_overhead_of(&report, &device).lacks_rows);
    strcpy(report.dry_run.card, "H200 141 GB");
    owner.library = "cuBLAS"; /* no NCCL */
    assert_true(mt_card_overhead_of(&report, &device).is_known);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
