/* What the tests of driver calls share: CUPTI is imitated, as a library whose subscriber the test
 * calls. */
#ifndef MT_IMITATED_CUPTI_H
#define MT_IMITATED_CUPTI_H

#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>

#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_library.h"
#include "cupti_slot.h"
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

static struct {
    mt_cupti_callback *callback;
    uint32_t version;
    int result;            /* of subscribing */
    bool several_only;     /* the place is taken, except for subscribers that share it */
    const char *holder;    /* what holds it */
    uint32_t renamed_cbid; /* has another name here */
    uint32_t newer_cbids;  /* entry points behind the table */
    uint32_t end_of_cbids; /* 0: the table's */
    size_t params_size;    /* what the subscriber said */
    unsigned libraries, tried;
    int search_errno; /* after libraries were looked for in vain */
    bool has_v2;
} cupti;

static inline int standin_subscribe(void **subscriber, mt_cupti_callback *callback, void *user)
{
    assert_null(user);
    *subscriber = &cupti;
    if (cupti.result == 0)
        cupti.callback = callback;
    return cupti.result;
}

static inline int standin_subscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
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

static inline int standin_enable(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    (void)domain;
    (void)cbid;
    assert_ptr_equal(subscriber, &cupti);
    return enable == 1 ? 0 : 1;
}

static inline int standin_name(uint32_t domain, uint32_t cbid, const char **name)
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

static inline int standin_version(uint32_t *version)
{
    *version = cupti.version;
    return 0;
}

static inline int standin_device_id(const void *context, uint32_t *device)
{
    assert_ptr_equal(context, &context_b);
    *device = 6;
    return 0;
}

static inline int standin_result_string(int result, const char **text)
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

static inline void call_at(const char *name, int site, const void *params, uint32_t result,
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

static inline void call_in(const void *context, const char *name, const void *params,
                           uint32_t result)
{
    call_at(name, MT_CUPTI_ENTER, params, 0, context);
    call_at(name, MT_CUPTI_EXIT, params, result, context);
}

static inline void call(const char *name, const void *params, uint32_t result)
{
    call_in(&context_a, name, params, result);
}

static inline void resource(uint32_t cbid, const void *context, const void *descriptor)
{
    struct mt_cupti_resource_data data = {.context = context, .resourceDescriptor = descriptor};
    cupti.callback(NULL, MT_CUPTI_RESOURCE, cbid, &data);
}

static inline void alloc(uint64_t addr, size_t bytes)
{
    struct mt_cu_alloc params = {&addr, bytes};
    call("cuMemAlloc_v2", &params, 0);
}

static inline void release(uint64_t addr, uint32_t result)
{
    struct mt_cu_handle params = {addr};
    call("cuMemFree_v2", &params, result);
}

/* Creates the context of `handle` on a device, as the driver does. */
static inline void create_context(const char *handle, int device)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    struct mt_cu_context_retain params = {&value, device};
    call_at("cuDevicePrimaryCtxRetain", MT_CUPTI_ENTER, &params, 0, NULL);
    resource(MT_CUPTI_CONTEXT_CREATED, handle, NULL);
    call_at("cuDevicePrimaryCtxRetain", MT_CUPTI_EXIT, &params, 0, NULL);
}

static inline void start(void)
{
    mt_cupti_source.forked(); /* as new */
    mt_cupti_slot_forget();
    recorded_clear();
    memset(&cupti, 0, sizeof cupti);
    cupti.libraries = 1;
    cupti.version = 130000;
    cupti.has_v2 = true;
}

static inline int set_up(void **unused)
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

#endif
