/* How the recorder subscribes to calls of the driver, and which calls it asks for. */
#include "imitated_cupti.h"

TEST(test_subscribes)
{
    start();
    assert_int_equal(InitializeInjection(), 1);
    assert_int_equal(cupti.params_size, 32);
    assert_non_null(strstr(recorded.facts, "sources=cupti\n"));
    assert_non_null(strstr(recorded.facts, "driver_calls=CUPTI 130000, 57 calls watched\n"));
    assert_string_equal(recorded.said, "");
}

/* From 13.2 on several tools may listen; before that, there is no such field. */
TEST(test_shares_the_place)
{
    start();
    cupti.version = 130200;
    cupti.several_only = true;
    InitializeInjection();
    assert_int_equal(cupti.params_size, 40);
    assert_non_null(cupti.callback);
    assert_string_equal(recorded.said, "");
}

/* A profiler of the program came first (cupti_slot.c): the recorder shares its subscription. */
TEST(test_joins_who_came_first)
{
    uint64_t addr = 0x7f0000000000;
    struct mt_cu_alloc params = {&addr, 100};
    struct mt_cupti_library library = {.subscribe = standin_subscribe,
                                       .enable = standin_enable,
                                       .name = standin_name,
                                       .version = standin_version};
    start();
    mt_cupti_slot_hold(&library, &cupti);
    InitializeInjection();
    assert_null(cupti.callback); /* no second subscription */
    assert_int_equal(cupti.tried, 0);
    assert_string_equal(recorded.said, "");
    cupti.callback = mt_cupti_slot_callback;
    recorded_clear();
    call("cuMemAlloc_v2", &params, 0);
    assert_int_equal(recorded.count, 1);
}

TEST(test_says_who_holds_the_place)
{
    for (uint32_t version = 130000; version <= 130200; version += 200) {
        start();
        cupti.version = version;
        cupti.libraries = 3;
        cupti.result = MT_CUPTI_MULTIPLE_SUBSCRIBERS;
        cupti.holder = "CUPTI for Nsight Systems";
        InitializeInjection();
        assert_int_equal(cupti.tried, 0); /* others would be refused, too */
        assert_null(strstr(recorded.facts, "sources"));
        assert_non_null(
            strstr(recorded.facts,
                   "without CUPTI: another tool already uses CUPTI, which accepts one subscriber: "
                   "CUPTI for Nsight Systems\n"));
        /* one line for a process */
        assert_int_equal(strstr(recorded.said, "CUPTI for Nsight Systems") != NULL,
                         version == 130000);
    }
}

TEST(test_without_v2)
{
    start();
    cupti.has_v2 = false;
    cupti.version = 18;
    InitializeInjection();
    assert_non_null(cupti.callback);
}

/* A CUPTI that is too new for the driver: another copy may fit. */
TEST(test_tries_the_next_library)
{
    start();
    cupti.libraries = 3;
    cupti.result = MT_CUPTI_NOT_INITIALIZED;
    InitializeInjection();
    assert_int_equal(cupti.tried, 2);
    assert_non_null(strstr(recorded.facts, "sources=cupti\n"));
}

TEST(test_none_fits)
{
    start();
    cupti.result = 999;
    InitializeInjection();
    assert_null(strstr(recorded.facts, "sources"));
    assert_non_null(
        strstr(recorded.facts, "without CUPTI: /lib/libcupti.so.13: CUPTI_ERROR (999)"));
}

TEST(test_nothing_was_loaded)
{
    start();
    cupti.libraries = 0;
    InitializeInjection();
    assert_non_null(strstr(recorded.facts, "without CUPTI: no libcupti was found"));
    start();
    cupti.libraries = 0;
    cupti.search_errno = ENOMEM;
    InitializeInjection();
    assert_non_null(strstr(recorded.facts, "without CUPTI: out of memory while libcupti"));
}

TEST(test_switched_off)
{
    start();
    strcpy(recorded_settings.cupti, "none");
    InitializeInjection();
    recorded_settings.cupti[0] = 0;
    assert_null(cupti.callback);
    assert_non_null(strstr(recorded.facts, "driver_calls=without CUPTI: it is disabled"));
}

/* A number under which this CUPTI knows another call is not watched; newer calls
 * that may be of memory are said. */
TEST(test_names_decide)
{
    uint64_t addr = 0x7f0000000000;
    struct mt_cu_alloc params = {&addr, 100};
    start();
    cupti.renamed_cbid = 243;
    cupti.newer_cbids = 4;
    InitializeInjection();
    assert_non_null(strstr(recorded.facts, ", 1 have another name, 2 newer ones not decoded: "
                                           "cuMemAllocNewest cuMemAllocNewest\n"));
    recorded_clear();
    call("cuMemAlloc_v2", &params, 0);
    assert_int_equal(recorded.count, 0);
}

TEST(test_older_cupti)
{
    start();
    cupti.end_of_cbids = 677; /* CUPTI 11.8 */
    InitializeInjection();
    assert_non_null(strstr(recorded.facts, " 48 calls watched, 9 unknown to it\n"));
}

TEST(test_calls_the_tool_before)
{
    start();
    unsetenv("CUDA_TOOL_CALLED");
    strcpy(recorded_settings.next_cuda, CUDA_TOOL);
    InitializeInjection();
    recorded_settings.next_cuda[0] = 0;
    assert_non_null(getenv("CUDA_TOOL_CALLED"));
    assert_non_null(cupti.callback);
}

/* cuInit from within an event: a hook that called what it stands before. */
TEST(test_starts_inside_an_event)
{
    start();
    assert_true(mt_collect_enter());
    InitializeInjection();
    mt_collect_leave();
    assert_non_null(cupti.callback);
}

/* A launcher of several processes asks how many devices there are, and what they
 * are called: no trace begins. If one does later, it has the answers. */
TEST(test_questions_begin_no_trace)
{
    size_t bytes = (size_t)1 << 20;
    struct mt_cu_device_total total = {&bytes, 1};
    struct mt_cu_device_name named = {"GPU", 64, 1};
    start();
    recorded.refuses = true; /* not running: entering would be a failure */
    InitializeInjection();
    call("cuDeviceTotalMem_v2", &total, 0);
    call("cuDeviceGetName", &named, 0);
    assert_non_null(cupti.callback);
    assert_string_equal(recorded.facts, "");
    assert_string_equal(recorded.devices, "");
    recorded.refuses = false;
    mt_cupti_source.start();
    mt_cupti_source.start();
    assert_non_null(strstr(recorded.facts, "sources=cupti\n"));
    assert_null(strstr(strstr(recorded.facts, "sources=cupti\n") + 1, "sources"));
    assert_string_equal(recorded.devices, "1 1048576 GPU\n");
}

static char facts_at_event[sizeof recorded.facts];

static void *allocate(void *unused)
{
    uint64_t addr = 0x7f0000000000;
    struct mt_cu_alloc params = {&addr, 100};
    (void)unused;
    call("cuMemAlloc_v2", &params, 0);
    memcpy(facts_at_event, recorded.facts, sizeof facts_at_event);
    return NULL;
}

static void allocate_meanwhile(void)
{
    pthread_t thread;
    recorded.before_fact = NULL;
    assert_int_equal(pthread_create(&thread, NULL, allocate, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* While one thread tells the facts, another one has the first event. */
TEST(test_no_event_precedes_the_facts)
{
    start();
    recorded.before_fact = allocate_meanwhile;
    InitializeInjection();
    assert_int_equal(recorded.count, 1);
    assert_string_equal(facts_at_event,
                        "sources=cupti\ndriver_calls=CUPTI 130000, 57 calls watched\n");
}

TEST(test_nobody_asked)
{
    start();
    recorded_settings.asked = false;
    assert_int_equal(InitializeInjection(), 1);
    recorded_settings.asked = true;
    assert_null(cupti.callback);
}

/* The numbers of the table, by name, in a list made from the vendor's headers. */
TEST(test_numbers)
{
    static const struct {
        uint32_t cbid;
        const char *name;
    } known[] = {
#define CBID(number, name) {number, #name},
#include DRIVER_CBIDS
#undef CBID
    };
    for (size_t i = 0; i < mt_cupti_entry_count; i++) {
        const char *name = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (known[k].cbid == mt_cupti_entries[i].cbid)
                name = known[k].name;
        assert_non_null(name);
        assert_string_equal(name, mt_cupti_entries[i].name);
        assert_true(mt_cupti_entries[i].cbid < MT_CUPTI_FIRST_NEWER_CBID);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
