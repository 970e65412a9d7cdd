/* Compares the peaks of three dry runs over orders of addresses with an H200 that ran the same
 * program (fixtures/dry_run). */
#include <stdio.h>

#include "cmocka_all.h"

#include "capture.h"
#include "report.h"
#include "util.h"

static const struct {
    const char *name;
    uint64_t allocated_bytes, reserved_bytes; /* on the H200 */
    uint64_t reserved_low_bytes, reserved_high_bytes, allocated_low_bytes, allocated_high_bytes;
} runs[] = {{"gpt_batch3", 490912256, 568328192, 568328192, 593494016, 490387968, 499300864},
            {"gpt_batch4", 557450752, 689963008, 652214272, 689963008, 553256448, 557450752},
            {"gpt_batch6", 664507904, 778043392, 778043392, 828375040, 661362176, 668702208}};

static struct capture analyze(const char *name, bool needs, uint64_t limit_bytes)
{
    char path[512];

    snprintf(path, sizeof path, "%s/dry_run/%s.trace.zst", MEMTRACE_FIXTURES, name);
    const struct mt_analyze_options options = {
        .path = path, .needs = needs, .replay.limit_bytes = limit_bytes};

    return capture_analyze(path, &options);
}

TEST(ranges_hold_what_the_device_did)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(runs); i++) {
        struct capture run = analyze(runs[i].name, true, 0);
        const struct mt_peak_orders *orders = run.report->devices[0].peak_orders;

        assert_non_null(orders);
        assert_int_equal(orders->order_count, 8);
        assert_int_equal(orders->reserved_low_bytes, runs[i].reserved_low_bytes);
        assert_int_equal(orders->reserved_high_bytes, runs[i].reserved_high_bytes);
        assert_int_equal(orders->allocated_low_bytes, runs[i].allocated_low_bytes);
        assert_int_equal(orders->allocated_high_bytes, runs[i].allocated_high_bytes);
        assert_in_range(runs[i].reserved_bytes, orders->reserved_low_bytes,
                        orders->reserved_high_bytes);
        assert_in_range(runs[i].allocated_bytes, orders->allocated_low_bytes,
                        orders->allocated_high_bytes);
        mt_report_release(run.report);
        mt_source_close(run.source);
    }
}

/* Under a limit, the allocator releases memory, which lowers the peaks. */
TEST(a_limit_holds_for_the_range)
{
    struct capture run = analyze("gpt_batch4", true, 640 * MT_MIB);
    const struct mt_peak_orders *orders = run.report->devices[0].peak_orders;

    assert_non_null(orders);
    assert_true(orders->reserved_high_bytes <= 640 * MT_MIB);
    mt_report_release(run.report);
    mt_source_close(run.source);
}

TEST(nobody_asked)
{
    struct capture run = analyze("gpt_batch4", false, 0);

    assert_null(run.report->devices[0].peak_orders);
    mt_report_release(run.report);
    mt_source_close(run.source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
