/* What a card must have, and why memory ran out. */
#include "cmocka_all.h"

#include "card_use.h"
#include "card_words.h"
#include "oom_why.h"
#include "util.h"

static struct mt_need need;
static struct mt_driver_report driver;
static struct mt_device_report device;
static struct mt_report report;
static struct mt_oom oom;
static struct mt_oom_answer answer;
static struct mt_step_use steps[2];

static int fill(void **state)
{
    (void)state;
    need = (struct mt_need){.bytes = 8 * MT_GIB};
    driver = (struct mt_driver_report){
        .has_then = true,
        .then = {.bytes = 9 * MT_GIB, .framework_bytes = 8 * MT_GIB + 512 * MT_MIB},
        .residual = {.tracked_from = MT_TRACKED_DRIVER,
                     .samples = 2,
                     .used_bytes = 10 * MT_GIB,
                     .tracked_bytes = 9 * MT_GIB + 256 * MT_MIB,
                     .most_bytes = 2 * MT_GIB}};
    device = (struct mt_device_report){.need = &need,
                                       .allocations = 1,
                                       .events = 100,
                                       .allocated_peak = {.bytes = 6 * MT_GIB},
                                       .reserved_peak = {.bytes = 7 * MT_GIB}};
    report = (struct mt_report){.devices = &device,
                                .device_count = 1,
                                .drivers = &driver,
                                .driver_count = 1,
                                .framework = "PyTorch 2.11.0+cu130",
                                .world_size = -1};
    oom = (struct mt_oom){
        .event = 50,
        .request_bytes = MT_GIB,
        .device_free_bytes = 100 * MT_MIB,
        .fatal = true,
        .then = {.allocated = 6 * MT_GIB, .active = 6 * MT_GIB, .reserved = 7 * MT_GIB}};
    answer = (struct mt_oom_answer){.oom = &oom, .cause = MT_OOM_DEMAND};
    return 0;
}

static void expect_words(const char *wanted)
{
    struct mt_card_use use;
    struct mt_buf words = {0};

    assert_true(mt_card_use_of(&report, &device, &use));
    mt_card_words_add(&words, &report, &use);
    assert_string_equal(words.data, wanted);
    mt_buf_release(&words);
}

/* CUDA's own share is that of the sample of highest use, not the largest of all: a sample that is
 * taken while the program allocates shows that memory twice. */
TEST_WITH(the_three_parts_have_one_unit, fill, NULL)
{
    expect_words("about 9.25 GiB = PyTorch 8.00 + other libraries 0.50 + CUDA 0.75");
    report.driver_count = 0;
    expect_words("about 9.00 GiB = PyTorch 8.00 + CUDA 1.00 (assumed)");
    device.need = NULL; /* unknown: it was served with what it reserved */
    expect_words("about 8.00 GiB = PyTorch 7.00 + CUDA 1.00 (assumed)");
    report.starts_in_middle = true;
    expect_words("at least 7.00 GiB = PyTorch 6.00 + CUDA 1.00 (assumed): the trace starts in the "
                 "middle of the run");
}

TEST_WITH(no_card_for_host_memory_or_missing_requests, fill, NULL)
{
    struct mt_xla_use xla = {.requests_missing = true};
    struct mt_card_use use;

    device.xla = &xla;
    assert_false(mt_card_use_of(&report, &device, &use));
    device.xla = NULL;
    report.what_if = true;
    device.need = NULL;
    assert_false(mt_card_use_of(&report, &device, &use));
}

TEST_WITH(a_refusal_of_the_driver_is_a_doubt, fill, NULL)
{
    const struct mt_driver_failure failure = {.request_bytes = MT_GIB};

    driver.fatal = &failure;
    expect_words("at least 9.25 GiB = PyTorch 8.00 + other libraries 0.50 + CUDA 0.75: the driver "
                 "refused a request");
}

TEST_WITH(a_card_fits_if_it_has_all_bytes, fill, NULL)
{
    const struct mt_card card = {.memory_bytes = 10 * MT_GIB};
    struct mt_card_use use = {.bytes = 10 * MT_GIB};

    assert_true(mt_card_use_fits(&use, &card));
    use.bytes++;
    assert_false(mt_card_use_fits(&use, &card));
}

static void expect_kind(enum mt_oom_kind kind)
{
    assert_int_equal(mt_oom_why_of(&report, &device, &oom).kind, kind);
}

TEST_WITH(the_reason_is_decided, fill, NULL)
{
    device.oom_answer = &answer;
    expect_kind(MT_OOM_CARD_FULL_BY); /* the size of the card is not in the trace */
    device.total_memory_bytes = 9 * MT_GIB;
    expect_kind(MT_OOM_CARD_FULL);
    device.total_memory_bytes = 16 * MT_GIB;
    expect_kind(MT_OOM_BY_OTHERS);
    oom.device_free_bytes = MT_GIB + 100 * MT_MIB; /* may be too little for the driver */
    expect_kind(MT_OOM_BY_OTHERS);
    oom.device_free_bytes = 2 * MT_GIB;
    expect_kind(MT_OOM_OWN_LIMIT);
    answer.cause = MT_OOM_FRAGMENTATION;
    expect_kind(MT_OOM_FRAGMENTED);
    oom.then.active = 7 * MT_GIB;
    expect_kind(MT_OOM_WAITING);
    oom.request_bytes = UINT64_C(1) << 50;
    expect_kind(MT_OOM_IMPOSSIBLE);
}

TEST_WITH(a_larger_step_is_named, fill, NULL)
{
    steps[0] = (struct mt_step_use){.end_event = 40, .peak = {.allocated = 3 * MT_GIB}};
    steps[1] = (struct mt_step_use){.begin_event = 41, .end_event = 60};
    device.steps = steps;
    device.step_count = 2;
    assert_float_equal(mt_oom_why_of(&report, &device, &oom).times_last_step, 2, 1e-9);
    steps[1].enter.allocated = 3 * MT_GIB; /* what it began with does not count */
    assert_float_equal(mt_oom_why_of(&report, &device, &oom).times_last_step, 0, 0);
}

TEST_WITH(the_first_forward_pass_is_named, fill, NULL)
{
    device.peak_role_bytes[MT_ROLE_PARAMETERS] = 2 * MT_GIB;
    device.peak_role_bytes[MT_ROLE_ACTIVATIONS] = 4 * MT_GIB;
    assert_int_equal(mt_oom_why_of(&report, &device, &oom).to_come_bytes, 2 * MT_GIB);
    report.saw_backward = true;
    assert_int_equal(mt_oom_why_of(&report, &device, &oom).to_come_bytes, 0);
    report.saw_backward = false;
    device.peak_role_bytes[MT_ROLE_ACTIVATIONS] = 0; /* nothing shows that it trains */
    assert_int_equal(mt_oom_why_of(&report, &device, &oom).to_come_bytes, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
