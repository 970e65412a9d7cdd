/* Calls of the driver as CUPTI tells of them, and what the trace hears. CUPTI is
 * imitated: a library whose subscriber the test calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "cupti_abi.h"
#include "cupti_array_bytes.h"
#include "cupti_calls.h"
#include "cupti_capture.h"
#include "cupti_library.h"
#include "cupti_place.h"
#include "recorded_events.h"
#include "source_cupti.h"
#include "source_nvml.h"

/* The sampler, which is not here. */
void mt_nvml_sample_soon(int device)
{
    (void)device;
}

void mt_nvml_note_environment(void) {}

static char context_a, context_b; /* handles are addresses of something */

/* ---- an imitated CUPTI ---- */

static struct {
    mt_cupti_callback *callback;
    uint32_t version;
    int result;            /* of subscribing */
    bool several_only;     /* the place is taken, but for who shares it */
    const char *holder;    /* who holds it */
    uint32_t renamed_cbid; /* has another name here */
    uint32_t newer_cbids;  /* entry points behind the table */
    uint32_t end_of_cbids; /* 0: the table's */
    size_t params_size;    /* what the subscriber said */
    unsigned libraries, tried;
    int search_errno; /* after libraries were looked for in vain */
    bool has_v2;
} cupti;

static int standin_subscribe(void **subscriber, mt_cupti_callback *callback, void *user)
{
    assert_null(user);
    *subscriber = &cupti;
    if (cupti.result == 0)
        cupti.callback = callback;
    return cupti.result;
}

static int standin_subscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
                                struct mt_cupti_subscriber_params *params)
{
    bool shares = params->structSize >
                      offsetof(struct mt_cupti_subscriber_params, allowMultipleSubscribers) &&
                  params->allowMultipleSubscribers;
    cupti.params_size = params->structSize;
    assert_string_equal(params->subscriberName, "memtrace");
    assert_true(params->oldSubscriberSize >= MT_CUPTI_OLD_NAME_BYTES);
    if (cupti.holder)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", cupti.holder);
    if (cupti.several_only)
        cupti.result = shares ? 0 : MT_CUPTI_MULTIPLE_SUBSCRIBERS;
    return standin_subscribe(subscriber, callback, user);
}

static int standin_enable(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    (void)domain;
    (void)cbid;
    assert_ptr_equal(subscriber, &cupti);
    return enable == 1 ? 0 : 1;
}

static int standin_name(uint32_t domain, uint32_t cbid, const char **name)
{
    uint32_t end = MT_CUPTI_FIRST_NEWER_CBID + cupti.newer_cbids;
    assert_int_equal(domain, MT_CUPTI_DRIVER);
    if (cbid >= (cupti.end_of_cbids ? cupti.end_of_cbids : end))
        return 1;
    *name = cbid % 2 ? "cuMemAllocNewest" : "cuSomethingElse";
    for (size_t i = 0; i < mt_cupti_entry_count; i++)
        if (mt_cupti_entries[i].cbid == cbid && cbid != cupti.renamed_cbid)
            *name = mt_cupti_entries[i].name;
    return 0;
}

static int standin_version(uint32_t *version)
{
    *version = cupti.version;
    return 0;
}

static int standin_device_id(const void *context, uint32_t *device)
{
    assert_ptr_equal(context, &context_b);
    *device = 6;
    return 0;
}

static int standin_result_string(int result, const char **text)
{
    *text = result == MT_CUPTI_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "CUPTI_ERROR";
    return 0;
}

/* Instead of cupti_library.c: as many libraries as the test wants; only the last
 * one works if `result` says that the others do not. */
bool mt_cupti_search(const char *wanted, mt_cupti_try *try, void *user)
{
    struct mt_cupti_library library = {.path = "/lib/libcupti.so.13",
                                       .subscribe = standin_subscribe,
                                       .enable = standin_enable,
                                       .name = standin_name,
                                       .version = standin_version,
                                       .result_string = standin_result_string,
                                       .device_id = standin_device_id};
    library.subscribe_v2 = cupti.has_v2 ? standin_subscribe_v2 : NULL;
    (void)wanted;
    for (cupti.tried = 0; cupti.tried < cupti.libraries; cupti.tried++) {
        int result = cupti.result;
        if (cupti.tried + 1 == cupti.libraries && result == MT_CUPTI_NOT_INITIALIZED)
            cupti.result = 0;
        if (try(user, &library))
            return true;
        cupti.result = result;
    }
    errno = cupti.search_errno;
    return false;
}

/* ---- calling ---- */

static void call_at(const char *name, int site, const void *params, uint32_t result,
                    const void *context)
{
    static uint64_t correlation;
    struct mt_cupti_callback_data data = {.callbackSite = (uint32_t)site,
                                          .functionName = name,
                                          .functionParams = params,
                                          .context = context,
                                          .correlationData = &correlation};
    if (site == MT_CUPTI_EXIT)
        data.functionReturnValue = &result;
    for (size_t i = 0; i < mt_cupti_entry_count; i++)
        if (strcmp(mt_cupti_entries[i].name, name) == 0) {
            cupti.callback(NULL, MT_CUPTI_DRIVER, mt_cupti_entries[i].cbid, &data);
            return;
        }
    fail_msg("%s is not in the table", name);
}

static void call_in(const void *context, const char *name, const void *params, uint32_t result)
{
    call_at(name, MT_CUPTI_ENTER, params, 0, context);
    call_at(name, MT_CUPTI_EXIT, params, result, context);
}

static void call(const char *name, const void *params, uint32_t result)
{
    call_in(&context_a, name, params, result);
}

static void resource(uint32_t cbid, const void *context, const void *descriptor)
{
    struct mt_cupti_resource_data data = {.context = context, .resourceDescriptor = descriptor};
    cupti.callback(NULL, MT_CUPTI_RESOURCE, cbid, &data);
}

static void alloc(uint64_t addr, size_t bytes)
{
    struct mt_cu_alloc params = {&addr, bytes};
    call("cuMemAlloc_v2", &params, 0);
}

static void release(uint64_t addr, uint32_t result)
{
    struct mt_cu_handle params = {addr};
    call("cuMemFree_v2", &params, result);
}

/* Creates the context of `handle` on a device, as the driver does. */
static void create_context(const char *handle, int device)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    struct mt_cu_context_retain params = {&value, device};
    call_at("cuDevicePrimaryCtxRetain", MT_CUPTI_ENTER, &params, 0, NULL);
    resource(MT_CUPTI_CONTEXT_CREATED, handle, NULL);
    call_at("cuDevicePrimaryCtxRetain", MT_CUPTI_EXIT, &params, 0, NULL);
}

static void start(void)
{
    mt_cupti_source.forked(); /* as new */
    mt_cupti_place_forget();
    recorded_clear();
    memset(&cupti, 0, sizeof cupti);
    cupti.libraries = 1;
    cupti.version = 130000;
    cupti.has_v2 = true;
}

static int set_up(void **unused)
{
    (void)unused;
    start();
    assert_int_equal(InitializeInjection(), 1);
    create_context(&context_a, 3);
    assert_int_equal(recorded.count, 1);
    assert_int_equal(recorded.events[0].kind, MT_EVENT_CONTEXT);
    assert_int_equal(recorded.events[0].device, 3);
    recorded_clear();
    return 0;
}

#define assert_story(text) assert_string_equal(recorded_story(), text)

/* ---- subscribing ---- */

static void test_subscribes(void **unused)
{
    (void)unused;
    start();
    assert_int_equal(InitializeInjection(), 1);
    assert_int_equal(cupti.params_size, 32);
    assert_non_null(strstr(recorded.facts, "sources=cupti\n"));
    assert_non_null(strstr(recorded.facts, "driver_calls=CUPTI 130000, 57 calls watched\n"));
    assert_string_equal(recorded.said, "");
}

/* From 13.2 on several tools may listen; before that, there is no such field. */
static void test_shares_the_place(void **unused)
{
    (void)unused;
    start();
    cupti.version = 130200;
    cupti.several_only = true;
    InitializeInjection();
    assert_int_equal(cupti.params_size, 40);
    assert_non_null(cupti.callback);
    assert_string_equal(recorded.said, "");
}

/* A profiler of the program came first (cupti_guest.c): its subscription is ours, too. */
static void test_joins_who_came_first(void **unused)
{
    (void)unused;
    uint64_t addr = 0x7f0000000000;
    struct mt_cu_alloc params = {&addr, 100};
    struct mt_cupti_library library = {.subscribe = standin_subscribe,
                                       .enable = standin_enable,
                                       .name = standin_name,
                                       .version = standin_version};
    start();
    mt_cupti_place_hold(&library, &cupti);
    InitializeInjection();
    assert_null(cupti.callback); /* no second subscription */
    assert_int_equal(cupti.tried, 0);
    assert_string_equal(recorded.said, "");
    cupti.callback = mt_cupti_place_callback;
    recorded_clear();
    call("cuMemAlloc_v2", &params, 0);
    assert_int_equal(recorded.count, 1);
}

static void test_says_who_holds_the_place(void **unused)
{
    (void)unused;
    for (uint32_t version = 130000; version <= 130200; version += 200) {
        start();
        cupti.version = version;
        cupti.libraries = 3;
        cupti.result = MT_CUPTI_MULTIPLE_SUBSCRIBERS;
        cupti.holder = "CUPTI for Nsight Systems";
        InitializeInjection();
        assert_int_equal(cupti.tried, 0); /* others would be refused, too */
        assert_null(strstr(recorded.facts, "sources"));
        assert_non_null(strstr(recorded.facts,
                               "without CUPTI: another tool holds CUPTI's one place: "
                               "CUPTI for Nsight Systems\n"));
        /* one line for a process */
        assert_int_equal(strstr(recorded.said, "CUPTI for Nsight Systems") != NULL,
                         version == 130000);
    }
}

static void test_without_v2(void **unused)
{
    (void)unused;
    start();
    cupti.has_v2 = false;
    cupti.version = 18;
    InitializeInjection();
    assert_non_null(cupti.callback);
}

/* A CUPTI that is too new for the driver: another copy may fit. */
static void test_tries_the_next_library(void **unused)
{
    (void)unused;
    start();
    cupti.libraries = 3;
    cupti.result = MT_CUPTI_NOT_INITIALIZED;
    InitializeInjection();
    assert_int_equal(cupti.tried, 2);
    assert_non_null(strstr(recorded.facts, "sources=cupti\n"));
}

static void test_none_fits(void **unused)
{
    (void)unused;
    start();
    cupti.result = 999;
    InitializeInjection();
    assert_null(strstr(recorded.facts, "sources"));
    assert_non_null(
        strstr(recorded.facts, "without CUPTI: /lib/libcupti.so.13: CUPTI_ERROR (999)"));
}

static void test_nothing_was_loaded(void **unused)
{
    (void)unused;
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

static void test_switched_off(void **unused)
{
    (void)unused;
    start();
    strcpy(recorded_settings.cupti, "none");
    InitializeInjection();
    recorded_settings.cupti[0] = 0;
    assert_null(cupti.callback);
    assert_non_null(strstr(recorded.facts, "driver_calls=without CUPTI: it is switched off"));
}

/* A number under which this CUPTI knows another call is not watched; newer calls
 * that may be of memory are said. */
static void test_names_decide(void **unused)
{
    (void)unused;
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

static void test_older_cupti(void **unused)
{
    (void)unused;
    start();
    cupti.end_of_cbids = 677; /* CUPTI 11.8 */
    InitializeInjection();
    assert_non_null(strstr(recorded.facts, " 48 calls watched, 9 it does not know\n"));
}

static void test_calls_the_tool_before(void **unused)
{
    (void)unused;
    start();
    unsetenv("CUDA_TOOL_CALLED");
    strcpy(recorded_settings.next_cuda, CUDA_TOOL);
    InitializeInjection();
    recorded_settings.next_cuda[0] = 0;
    assert_non_null(getenv("CUDA_TOOL_CALLED"));
    assert_non_null(cupti.callback);
}

/* cuInit from within an event: a hook that called what it stands before. */
static void test_starts_inside_an_event(void **unused)
{
    (void)unused;
    start();
    assert_true(mt_collect_enter());
    InitializeInjection();
    mt_collect_leave();
    assert_non_null(cupti.callback);
}

/* A launcher of several processes asks how many devices there are, and what they
 * are called: no trace begins. If one does later, it has the answers. */
static void test_questions_begin_no_trace(void **unused)
{
    (void)unused;
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

static void test_nobody_asked(void **unused)
{
    (void)unused;
    start();
    recorded_settings.asked = false;
    assert_int_equal(InitializeInjection(), 1);
    recorded_settings.asked = true;
    assert_null(cupti.callback);
}

/* The numbers of the table, by name, in a list made from the vendor's headers. */
static void test_numbers(void **unused)
{
    (void)unused;
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

/* ---- decoding ---- */

static void test_alloc_and_free(void **unused)
{
    (void)unused;
    alloc(0x1000, 100);
    release(0x1000, 0);
    assert_int_equal(recorded.events[0].device, 3);
    assert_int_equal(recorded.events[0].native_stack, 72);
    assert_int_equal(recorded.events[1].native_stack, 72); /* or not: collect.c decides */
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100");
    release(0, 0);
    release(0x1000, 1);
    assert_story("");
}

/* A free is told before the driver can hand the address out again. */
static void test_free_is_told_at_once(void **unused)
{
    (void)unused;
    struct mt_cu_handle params = {0x1000};
    alloc(0x1000, 100);
    recorded_clear();
    call_at("cuMemFree_v2", MT_CUPTI_ENTER, &params, 0, &context_a);
    assert_int_equal(recorded.count, 2);
    alloc(0x1000, 200); /* another thread's */
    recorded_clear();
    call_at("cuMemFree_v2", MT_CUPTI_EXIT, &params, 0, &context_a);
    assert_int_equal(recorded.count, 0);
    release(0x1000, 0);
    assert_story("free_requested 1000 200|free_completed 1000 200");
}

static void test_free_that_fails_is_taken_back(void **unused)
{
    (void)unused;
    alloc(0x1000, 100);
    release(0x1000, 1);
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100|alloc 1000 100");
    release(0x1000, 0);
    assert_story("free_requested 1000 100|free_completed 1000 100");
}

static void test_broken_context(void **unused)
{
    (void)unused;
    alloc(0x1000, 100);
    alloc(0x2000, 200);
    recorded_clear();
    release(0x1000, 700);
    assert_story("free_requested 1000 100|free_completed 1000 100|"
                 "mark CUDA error 700: the context is broken|alloc 1000 100");
    release(0x1000, 700); /* nothing more about it */
    assert_story("");
    release(0x2000, 0);
    assert_story("free_requested 2000 200|free_completed 2000 200");
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_a, NULL);
    assert_story("free_requested 1000 100|free_completed 1000 100|mark CUDA context destroyed");
}

static void test_end_that_was_missed(void **unused)
{
    (void)unused;
    alloc(0x1000, 100);
    alloc(0x1000, 300);
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100|alloc 1000 300");
}

static void test_failures(void **unused)
{
    (void)unused;
    uint64_t addr = 0;
    size_t pitch = 0;
    struct mt_cu_pitch params = {&addr, &pitch, (size_t)1 << 40, (size_t)1 << 40, 4};
    struct mt_cu_alloc lacking = {&addr, 12345};
    call("cuMemAlloc_v2", &lacking, 2);
    call("cuMemAllocPitch_v2", &params, 1);
    assert_story("alloc_failed 0 12345|alloc_failed 0 18446744073709551615");
}

static void test_context_takes_all_with_it(void **unused)
{
    (void)unused;
    uint64_t addr = 0x5000, handle = 0x77, array = 0x88;
    struct mt_cu_alloc other = {&addr, 500};
    struct mt_cu_create create = {&handle, 2 << 20, NULL};
    struct mt_cu_array_descriptor flat = {10, 10, 0x20, 1};
    struct mt_cu_array_create shape = {&array, &flat};
    create_context(&context_b, 1);
    recorded_clear();
    alloc(0x1000, 100);
    call_in(&context_b, "cuMemAlloc_v2", &other, 0);
    assert_int_equal(recorded.events[1].device, 1);
    call("cuMemCreate", &create, 0); /* belongs to no context */
    call("cuArrayCreate_v2", &shape, 0);
    recorded_clear();
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_b, NULL);
    assert_story("free_requested 5000 500|free_completed 5000 500|mark CUDA context destroyed");
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_a, NULL);
    assert_int_equal(recorded.count, 5);
    recorded_clear();
    struct mt_cu_handle released = {handle};
    call("cuMemRelease", &released, 0);
    assert_story("free_requested 77 2097152|free_completed 77 2097152");
}

/* ---- physical memory ---- */

static void create(uint64_t handle, size_t bytes)
{
    struct mt_cu_allocation_prop prop = {.location = {MT_CU_LOCATION_DEVICE, 5}};
    struct mt_cu_create params = {&handle, bytes, &prop};
    call("cuMemCreate", &params, 0);
}

static void map(uint64_t addr, size_t bytes, uint64_t handle)
{
    struct mt_cu_map params = {addr, bytes, 0, handle};
    call("cuMemMap", &params, 0);
}

static void unmap(uint64_t addr, size_t bytes, uint32_t result)
{
    struct mt_cu_range params = {addr, bytes};
    call("cuMemUnmap", &params, result);
}

static void let_go(uint64_t handle, uint32_t result)
{
    struct mt_cu_handle params = {handle};
    call("cuMemRelease", &params, result);
}

static void test_physical_memory(void **unused)
{
    (void)unused;
    create(0x70, 4096);
    assert_int_equal(recorded.events[0].device, 5);
    assert_int_equal(recorded.events[0].heap, MT_RAW_VIRTUAL);
    map(0xa000, 4096, 0x70);
    assert_int_equal(recorded.events[1].heap, MT_RAW_MAPPED);
    assert_int_equal(recorded.events[1].aux_bytes, 0x70);
    assert_int_equal(recorded.events[1].device, 5);
    assert_story("alloc 70 4096|alloc a000 4096");
    let_go(0x70, 0);
    assert_story("");
    unmap(0xa000, 4096, 0);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096");
}

static void test_calls_that_fail_on_physical_memory(void **unused)
{
    (void)unused;
    create(0x70, 4096);
    recorded_clear();
    let_go(0x70, 1);
    assert_story("free_requested 70 4096|free_completed 70 4096|alloc 70 4096");
    map(0xa000, 4096, 0x70);
    unmap(0xa000, 4096, 0); /* the handle holds it still */
    map(0xa000, 4096, 0x70);
    assert_story("alloc a000 4096|free_requested a000 4096|free_completed a000 4096|"
                 "alloc a000 4096");
    let_go(0x70, 1); /* only a reference */
    let_go(0x70, 0);
    assert_story("");
    unmap(0xa000, 4096, 1);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096|"
                 "alloc 70 4096|alloc a000 4096");
    unmap(0xa000, 4096, 0);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096");
}

static void test_multicast_objects_are_not_memory(void **unused)
{
    (void)unused;
    map(0xa000, 4096, 0x99);
    unmap(0xa000, 8192, 0);
    let_go(0x99, 0);
    assert_story("alloc a000 4096|free_requested a000 4096|free_completed a000 4096");
}

static void test_memory_on_the_host(void **unused)
{
    (void)unused;
    uint64_t handle = 0x70;
    struct mt_cu_allocation_prop prop = {.location = {3, 0}}; /* HOST_NUMA */
    struct mt_cu_create params = {&handle, 4096, &prop};
    call("cuMemCreate", &params, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_HOST);
}

/* ---- pools, graphs, other processes ---- */

static void alloc_async(uint64_t addr, uint64_t stream)
{
    struct mt_cu_alloc_stream params = {&addr, 64, stream};
    call("cuMemAllocAsync", &params, 0);
}

static void test_pools(void **unused)
{
    (void)unused;
    uint64_t standard = 0xd0, own = 0xe0, addr = 0x3000;
    struct mt_cu_pool_props props = {.location = {MT_CU_LOCATION_DEVICE, 3}};
    struct mt_cu_pool_get get = {&standard, 3};
    struct mt_cu_pool_create make = {&own, &props};
    struct mt_cu_pool_set set = {3, own}, back = {3, standard};
    struct mt_cu_alloc_pool from = {&addr, 64, own, 0x55};
    struct mt_cu_alloc_pool from_standard = {&addr, 32, standard, 0x55};
    call("cuDeviceGetDefaultMemPool", &get, 0);
    call("cuMemPoolCreate", &make, 0);
    alloc_async(0x1000, 0x44);
    call("cuDeviceSetMemPool", &set, 0);
    alloc_async(0x2000, 0x44);
    call("cuDeviceSetMemPool", &back, 0);
    call("cuMemAllocFromPoolAsync", &from, 0);
    call("cuMemAllocFromPoolAsync", &from_standard, 0);
    assert_int_equal(recorded.events[0].stream, 0x44);
    assert_int_equal(recorded.events[2].stream, 0x55);
    assert_story("alloc 1000 64|alloc 2000 64 of e0|alloc 3000 64 of e0|"
                 "free_requested 3000 64 of e0|free_completed 3000 64 of e0|alloc 3000 32");
    struct mt_cu_free_stream freed = {0x2000, 0x66};
    call("cuMemFreeAsync", &freed, 0);
    assert_int_equal(recorded.events[0].stream, 0x66);
    assert_story("free_requested 2000 64 of e0|free_completed 2000 64 of e0");
    struct mt_cu_handle gone = {own};
    call("cuDeviceSetMemPool", &set, 0);
    call("cuMemPoolDestroy", &gone, 0);
    alloc_async(0x4000, 0);
    assert_story("alloc 4000 64");
}

static void test_pool_on_the_host(void **unused)
{
    (void)unused;
    uint64_t own = 0xe0, addr = 0x3000;
    struct mt_cu_pool_props props = {.location = {2, 0}};
    struct mt_cu_pool_create make = {&own, &props};
    struct mt_cu_alloc_pool from = {&addr, 64, own, 0};
    call("cuMemPoolCreate", &make, 0);
    call("cuMemAllocFromPoolAsync", &from, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_HOST);
}

static uint32_t stream_7_is_captured(uint64_t stream, uint32_t *status)
{
    *status = stream == 7;
    return 0;
}

static uint32_t every_stream_is_captured(uint64_t stream, uint32_t *status)
{
    (void)stream;
    *status = 1;
    return 0;
}

static uint32_t refuses(uint64_t stream, uint32_t *status)
{
    *status = (uint32_t)stream;
    return 906; /* of the legacy stream, while another one is captured */
}

static void test_captured_allocation(void **unused)
{
    (void)unused;
    uint64_t addr = 0x3000;
    struct mt_cu_alloc_stream params = {&addr, 64, 0};
    mt_cupti_capture_ask(stream_7_is_captured, every_stream_is_captured);
    alloc_async(0x1000, 7);
    alloc_async(0x2000, 8);
    call("cuMemAllocAsync_ptsz", &params, 0);
    mt_cupti_capture_ask(refuses, refuses);
    alloc_async(0x4000, 1);
    mt_cupti_capture_ask(NULL, NULL);
    assert_int_equal(recorded.events[0].heap, MT_RAW_GRAPH);
    assert_int_equal(recorded.events[1].heap, MT_RAW_ASYNC);
    assert_int_equal(recorded.events[2].heap, MT_RAW_GRAPH);
    assert_int_equal(recorded.events[3].heap, MT_RAW_ASYNC);
}

/* A handle opened twice is one address, closed twice. */
static void test_ipc(void **unused)
{
    (void)unused;
    uint64_t addr = 0x1000;
    struct mt_cu_import open = {&addr};
    struct mt_cu_handle close = {addr};
    call("cuIpcOpenMemHandle_v2", &open, 0);
    call("cuIpcOpenMemHandle_v2", &open, 0);
    call("cuIpcCloseMemHandle", &close, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_IMPORTED);
    assert_story("alloc 1000 0");
    call("cuIpcCloseMemHandle", &close, 0);
    assert_story("free_requested 1000 0|free_completed 1000 0");
}

/* A context that nobody was seen to create. */
static void test_device_of_a_context(void **unused)
{
    (void)unused;
    uint64_t addr = 0x5000;
    struct mt_cu_alloc params = {&addr, 500};
    resource(MT_CUPTI_CONTEXT_CREATED, &context_b, NULL);
    call_in(&context_b, "cuMemAlloc_v2", &params, 0);
    assert_int_equal(recorded.events[0].device, 6);
    assert_int_equal(recorded.events[1].device, 6);
}

static void test_devices(void **unused)
{
    (void)unused;
    size_t bytes = (size_t)80 << 30;
    struct mt_cu_device_total total = {&bytes, 1};
    struct mt_cu_device_name name = {"NVIDIA H200", 64, 1};
    call("cuDeviceTotalMem_v2", &total, 0);
    assert_string_equal(recorded.devices, "");
    call("cuDeviceGetName", &name, 0);
    call("cuDeviceGetName", &name, 0);
    assert_string_equal(recorded.devices, "1 85899345920 NVIDIA H200\n");
}

static void test_array_bytes(void **unused)
{
    (void)unused;
    static const struct {
        struct mt_cu_array3d_descriptor array;
        uint32_t levels;
        uint64_t bytes;
    } cases[] = {
        {{100, 0, 0, 0x20, 1, 0}, 1, 400},
        {{100, 50, 0, 0x10, 2, 0}, 1, 20000},
        {{16, 16, 16, 0x01, 4, 0}, 2, 16384 + 2048},
        {{16, 16, 16, 0x01, 4, MT_CU_ARRAY_LAYERED}, 2, 16384 + 4096},
        {{4, 4, 0, 0x91, 4, 0}, 3, 3 * 8}, /* BC1: no level is smaller than a block */
        {{10, 10, 0, 0xc2, 4, 0}, 1, 400},
        {{(size_t)1 << 60, (size_t)1 << 60, 0, 0x20, 4, 0}, 1, UINT64_MAX / 16 / 8},
        {{0, 5, 5, 0x20, 4, 0}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(mt_cupti_array_bytes(&cases[i].array, cases[i].levels), cases[i].bytes);
    assert_int_equal(mt_cupti_array_bytes(NULL, 1), 0);
}

/* ---- what a program may do to us ---- */

static void test_nothing_is_there(void **unused)
{
    (void)unused;
    static const uint64_t zeros[64];
    for (size_t i = 0; i < mt_cupti_entry_count; i++)
        for (uint32_t result = 0; result < 3; result++)
            call(mt_cupti_entries[i].name, zeros, result);
    call_at("cuMemAlloc_v2", MT_CUPTI_ENTER, NULL, 0, NULL);
    cupti.callback(NULL, MT_CUPTI_DRIVER, 100000, NULL);
    cupti.callback(NULL, 9, 1, zeros);
    resource(100000, NULL, NULL);
}

static void test_errno_stays(void **unused)
{
    (void)unused;
    errno = 77;
    alloc(0x1000, 100);
    assert_int_equal(errno, 77);
}

static void test_frees_of_unknown_memory_are_counted(void **unused)
{
    (void)unused;
    release(0xbad000, 0);
    release(0xbad000, 1);
    recorded_clear();
    mt_cupti_source.stop();
    assert_non_null(strstr(recorded.facts, " 1 frees of memory that was not known\n"));
}

static void test_gives_up(void **unused)
{
    (void)unused;
    struct mt_cupti_state_data data = {1, "out of luck"};
    cupti.callback(NULL, MT_CUPTI_STATE, MT_CUPTI_FATAL_ERROR, &data);
    assert_non_null(strstr(recorded.said, "out of luck"));
    assert_story("mark CUPTI gave up: driver events end here");
}

static void test_forked_child_is_silent(void **unused)
{
    (void)unused;
    alloc(0x1000, 100);
    mt_cupti_source.forked();
    recorded_clear();
    release(0x1000, 0);
    assert_story("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_who_holds_the_place),
        cmocka_unit_test(test_subscribes),
        cmocka_unit_test(test_joins_who_came_first),
        cmocka_unit_test(test_shares_the_place),
        cmocka_unit_test(test_without_v2),
        cmocka_unit_test(test_tries_the_next_library),
        cmocka_unit_test(test_none_fits),
        cmocka_unit_test(test_nothing_was_loaded),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_names_decide),
        cmocka_unit_test(test_older_cupti),
        cmocka_unit_test(test_calls_the_tool_before),
        cmocka_unit_test(test_starts_inside_an_event),
        cmocka_unit_test(test_questions_begin_no_trace),
        cmocka_unit_test(test_nobody_asked),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test_setup(test_alloc_and_free, set_up),
        cmocka_unit_test_setup(test_free_is_told_at_once, set_up),
        cmocka_unit_test_setup(test_free_that_fails_is_taken_back, set_up),
        cmocka_unit_test_setup(test_broken_context, set_up),
        cmocka_unit_test_setup(test_end_that_was_missed, set_up),
        cmocka_unit_test_setup(test_failures, set_up),
        cmocka_unit_test_setup(test_context_takes_all_with_it, set_up),
        cmocka_unit_test_setup(test_physical_memory, set_up),
        cmocka_unit_test_setup(test_calls_that_fail_on_physical_memory, set_up),
        cmocka_unit_test_setup(test_multicast_objects_are_not_memory, set_up),
        cmocka_unit_test_setup(test_memory_on_the_host, set_up),
        cmocka_unit_test_setup(test_pools, set_up),
        cmocka_unit_test_setup(test_pool_on_the_host, set_up),
        cmocka_unit_test_setup(test_captured_allocation, set_up),
        cmocka_unit_test_setup(test_ipc, set_up),
        cmocka_unit_test_setup(test_device_of_a_context, set_up),
        cmocka_unit_test_setup(test_devices, set_up),
        cmocka_unit_test(test_array_bytes),
        cmocka_unit_test_setup(test_nothing_is_there, set_up),
        cmocka_unit_test_setup(test_errno_stays, set_up),
        cmocka_unit_test_setup(test_frees_of_unknown_memory_are_counted, set_up),
        cmocka_unit_test_setup(test_gives_up, set_up),
        cmocka_unit_test_setup(test_forked_child_is_silent, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
