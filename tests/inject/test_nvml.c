/* Samples of what the process uses, against the stand-in of NVML, and the order
 * of devices. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "recorded_events.h"
#include "source_nvml.h"

static uint64_t used[8];

/* The stand-in asks for it: no driver is loaded that would know. */
uint64_t memtrace_simulated_used_bytes(int device);
uint64_t memtrace_simulated_used_bytes(int device)
{
    return used[device];
}

static void *driver;

/* A library that is called libcuda.so.1 is what the sampler waits for. */
static void load_driver(void)
{
    driver = dlopen(STANDIN "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(driver);
}

static int fresh(void **state)
{
    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    unsetenv("MEMTRACE_SIMULATED_NVML");
    setenv("MEMTRACE_SIMULATED_DEVICES", "2", 1);
    setenv("MEMTRACE_SIMULATED_MEMORY", "10737418240", 1);
    memset(used, 0, sizeof used);
    recorded_clear();
    recorded_settings.sample_hz = 1000;
    mt_nvml_source.forked();
    mt_nvml_note_environment();
    return 0;
}

static void poll_again(void)
{
    usleep(1100); /* longer than a period */
    mt_nvml_source.poll();
}

enum { GIB = 1 << 30 };

static void expect_sample(size_t index, unsigned device, uint64_t used_bytes, uint64_t free_bytes)
{
    const struct mt_raw_event *event = &recorded.events[index];

    assert_in_range(index, 0, recorded.count - 1);
    assert_int_equal(event->kind, MT_EVENT_MEMORY_SAMPLE);
    assert_int_equal(event->device, device);
    assert_int_equal(event->size_bytes, used_bytes);
    assert_int_equal(event->aux_bytes, free_bytes);
}

/* First: no test before this one loaded the stand-in's driver. */
TEST_WITH(nothing_without_a_driver, fresh, NULL)
{
    used[0] = 100;
    mt_nvml_sample_soon(0);
    mt_nvml_source.poll();
    assert_null(dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD));
    assert_int_equal(recorded.count, 0);
    assert_string_equal(recorded.devices, "");
    load_driver();
    assert_non_null(dlopen(STANDIN "/libnvidia-ml.so.1", RTLD_NOW));
}

TEST_WITH(our_share_of_each_device, fresh, NULL)
{
    poll_again();
    assert_string_equal(recorded.devices, "0 10737418240 NVIDIA H200\n1 10737418240 NVIDIA H200\n");
    assert_int_equal(recorded.count, 0); /* we use nothing yet */
    assert_string_equal(recorded.facts, "");
    used[1] = 100;
    poll_again();
    assert_string_equal(recorded.facts, "sources=nvml\n");
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 1, 100, 9ull * GIB - 100);
    used[0] = 50;
    poll_again(); /* device 1 as before: not told again so soon */
    assert_int_equal(recorded.count, 2);
    expect_sample(1, 0, 50, 9ull * GIB - 50);
    used[0] = used[1] = 0;
    poll_again();
    assert_int_equal(recorded.count, 4);
    expect_sample(2, 0, 0, 9ull * GIB);
    expect_sample(3, 1, 0, 9ull * GIB);
}

/* On a machine that occasionally stalls, more is also right. */
static size_t seconds_since(time_t start)
{
    return (size_t)(time(NULL) - start);
}

TEST_WITH(equal_values_once_a_second, fresh, NULL)
{
    time_t start = time(NULL);

    used[0] = 100;
    for (int i = 0; i < 30; i++)
        poll_again();
    assert_in_range(recorded.count, 1, 1 + seconds_since(start));
    recorded.count = 0;
    sleep(1);
    poll_again();
    assert_int_equal(recorded.count, 1);
}

TEST_WITH(rate_and_forced_samples, fresh, NULL)
{
    time_t start = time(NULL);

    recorded_settings.sample_hz = 1; /* one a second */
    for (used[0] = 100; used[0] < 120; used[0]++)
        poll_again();
    assert_in_range(recorded.count, 1, 1 + seconds_since(start));
    recorded.count = 0;
    used[0] = 200;
    mt_nvml_sample_soon(0);
    poll_again();
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 0, 200, 9ull * GIB - 200);
    recorded_settings.sample_hz = 0;
    used[0] = 300;
    mt_nvml_sample_soon(0);
    poll_again();
    assert_int_equal(recorded.count, 1);
}

/* As in a pid namespace: the whole use of those devices that have a context. */
TEST_WITH(a_process_that_is_not_listed, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "hide", 1);
    used[0] = 100;
    used[1] = 50;
    mt_nvml_sample_soon(1);
    poll_again();
    assert_int_equal(recorded.count, 0);
    for (int i = 0; i < 30 && !recorded.count; i++) {
        usleep(100000);
        poll_again();
    }
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 1, GIB + 50, 9ull * GIB - 50);
    assert_string_equal(recorded.facts, "sources=nvml-device\n");
}

TEST_WITH(older_drivers, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "old", 1);
    used[0] = 100;
    poll_again();
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 0, 100, 9ull * GIB - 100);
}

TEST_WITH(devices_as_the_program_counts, fresh, NULL)
{
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    used[0] = 100;
    used[1] = 50;
    poll_again(); /* the environment was noted before that: both devices */
    assert_int_equal(recorded.count, 2);
    mt_nvml_source.forked();
    recorded_clear();
    mt_nvml_note_environment();
    poll_again();
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 0, 50, 9ull * GIB - 50);
}

/* Before those below: the library reports only the first reason. */
TEST_WITH(an_order_that_is_not_known, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "mixed", 1);
    used[0] = 100;
    poll_again();
    assert_int_equal(recorded.count, 0);
    assert_string_equal(recorded.said, ""); /* who does not use a device does not mind */
    mt_nvml_sample_soon(0);
    poll_again();
    assert_int_equal(recorded.count, 0);
    assert_string_equal(
        recorded.facts,
        "not_recorded=the memory of the process is not sampled: the devices differ, "
        "and CUDA_DEVICE_ORDER is not PCI_BUS_ID\n");
    assert_string_equal(recorded.said,
                        "the memory of the process is not sampled: the devices differ, and "
                        "CUDA_DEVICE_ORDER is not PCI_BUS_ID");
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    mt_nvml_source.forked();
    mt_nvml_note_environment();
    poll_again();
    assert_int_equal(recorded.count, 1);
    assert_string_equal(recorded.devices, "0 10737418240 NVIDIA H200\n1 10737418240 Other GPU\n");
}

TEST_WITH(a_library_that_does_not_start, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "broken", 1);
    used[0] = 100;
    poll_again();
    unsetenv("MEMTRACE_SIMULATED_NVML");
    poll_again();
    assert_int_equal(recorded.count, 0);
    assert_string_equal(recorded.facts, ""); /* a process without a device misses nothing */
    mt_nvml_sample_soon(0);
    poll_again();
    poll_again();
    assert_int_equal(recorded.count, 0);
    assert_string_equal(recorded.facts,
                        "not_recorded=the memory of the process is not sampled: NVML "
                        "(libnvidia-ml.so.1) cannot be used; use --sample-hz 0 to record without "
                        "samples\n");
}

#define NO_DEVICES                                                                                 \
    "not_recorded=the memory of the process is not sampled: "                                      \
    "NVML reports none of the devices that the program sees\n"

TEST_WITH(a_process_that_ends_before_a_pass, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "broken", 1);
    mt_nvml_sample_soon(0);
    mt_nvml_source.stop();
    assert_int_equal(recorded.count, 0);
    assert_non_null(
        strstr(recorded.facts, "not_recorded=the memory of the process is not sampled"));
}

TEST_WITH(a_library_without_devices, fresh, NULL)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    mt_nvml_source.forked();
    mt_nvml_note_environment();
    mt_nvml_sample_soon(0);
    poll_again();
    assert_string_equal(recorded.facts, NO_DEVICES);
}

TEST_WITH(an_instance_that_is_not_there, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "split", 1);
    setenv("CUDA_VISIBLE_DEVICES", "MIG-2", 1);
    mt_nvml_source.forked();
    mt_nvml_note_environment();
    mt_nvml_sample_soon(0);
    poll_again();
    assert_int_equal(recorded.count, 0);
    assert_string_equal(recorded.facts, NO_DEVICES);
}

/* Until it begins with CUDA a program may choose its devices. */
TEST_WITH(not_before_the_program_begins, fresh, NULL)
{
    mt_nvml_source.forked();
    used[1] = 50;
    poll_again();
    assert_string_equal(recorded.devices, "");
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    mt_nvml_note_environment();
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    mt_nvml_note_environment(); /* too late */
    poll_again();
    expect_sample(0, 0, 50, 9ull * GIB - 50);
    mt_nvml_source.forked();
    recorded_clear();
    poll_again();
    mt_nvml_sample_soon(0); /* a context: it has begun, even without a report */
    poll_again();
    assert_int_equal(recorded.count, 1);
}

TEST_WITH(an_instance, fresh, NULL)
{
    setenv("MEMTRACE_SIMULATED_NVML", "split", 1);
    setenv("CUDA_VISIBLE_DEVICES", "MIG-1", 1);
    mt_nvml_source.forked();
    mt_nvml_note_environment();
    used[0] = 100;
    poll_again();
    assert_int_equal(recorded.count, 1);
    expect_sample(0, 0, 100, 9ull * GIB - 100);
}

static const struct mt_nvml_device four[] = {{"GPU-aa11", "H", false},
                                             {"GPU-aa22", "H", false},
                                             {"GPU-bb", "H", false},
                                             {"GPU-cc", "H", true}};

/* "2 0": NVML's numbers of CUDA's devices; "?" if not known. */
static const char *order(uint32_t count, const char *visible, const char *variable)
{
    struct mt_nvml_cuda_device places[MT_NVML_DEVICES];
    static char text[256];
    const char *why;
    uint32_t found = mt_nvml_order(four, count, visible, variable, places, &why);

    text[0] = 0;
    for (uint32_t i = 0; i < found; i++) {
        recorded_add(text, sizeof text, i ? " " : "");
        if (places[i].instance[0])
            recorded_add(text, sizeof text, "%s", places[i].instance);
        else
            recorded_add(text, sizeof text, "%u", places[i].index);
    }
    return why ? "?" : text;
}

TEST(visible_devices)
{
    assert_string_equal(order(3, NULL, NULL), "0 1 2");
    assert_string_equal(order(3, "", NULL), "");
    assert_string_equal(order(3, "2,1", NULL), "2 1");
    assert_string_equal(order(3, " 2 , 1 ", NULL), "2 1");
    assert_string_equal(order(3, "2,-1,1", NULL), "2");
    assert_string_equal(order(3, "2,7,1", NULL), "2");
    assert_string_equal(order(3, "2,x", NULL), "2");
    assert_string_equal(order(3, "2,,1", NULL), "2");
    assert_string_equal(order(3, "99999999999999999999", NULL), "");
    assert_string_equal(order(3, "NoDevFiles", NULL), "");
    assert_string_equal(order(3, "GPU-bb,GPU-aa2", NULL), "2 1");
    assert_string_equal(order(3, "GPU-bb,GPU-aa", NULL), "2"); /* two begin so */
    assert_string_equal(order(3, "GPU-bb,GPU-zz,1", NULL), "2");
    assert_string_equal(order(4, "MIG-x,2", NULL), "MIG-x 2");
    assert_string_equal(order(4, "1", NULL), "1");
    assert_string_equal(order(4, "3", NULL), "?"); /* split: which instance? */
    assert_string_equal(order(4, NULL, NULL), "?");
    assert_string_equal(order(0, NULL, NULL), "");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
