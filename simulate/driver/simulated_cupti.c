/* Stand-in for libcupti: one subscriber, and callbacks for calls of the stand-in driver, which are
 * enabled one at a time. Environment:
 *   MEMTRACE_SIMULATED_CUPTI_VERSION  result of cuptiGetVersion (default 130000)
 *   MEMTRACE_SIMULATED_CUPTI_NAMES    number of known entry points (default 807)
 *   MEMTRACE_SIMULATED_CUPTI_HOLDER   name of another tool that is subscribed
 *   MEMTRACE_SIMULATED_CUPTI_ERROR    result of cuptiSubscribe */
#define _GNU_SOURCE
#include "simulated_driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum result {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,
    CUPTI_ERROR_INVALID_CONTEXT = 3,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_INVALID_KIND = 21,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
    CUPTI_ERROR_UNKNOWN = 999
};

enum { DOMAIN_DRIVER = 1, DOMAIN_RESOURCE = 3, DOMAIN_STATE = 6, DOMAIN_COUNT };
enum { ACTIVITY_KINDS = 55 };
#define CBIDS_MAX 1024u

struct callback_data {
    int site;
    const char *function_name;
    const void *function_params;
    void *function_return_value;
    const char *symbol_name;
    CUcontext context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

struct resource_data {
    CUcontext context;
    CUstream stream;
    const void *descriptor;
};

struct subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_name_size;
};

typedef void callback_function(void *user, int domain, uint32_t cbid, const void *data);

static struct {
    callback_function *function;
    void *user;
    _Atomic bool active;
    _Atomic uint8_t enabled[DOMAIN_COUNT][CBIDS_MAX]; /* what it says */
    _Atomic uint8_t heard[DOMAIN_COUNT][CBIDS_MAX];   /* what it does */
    atomic_bool whole[DOMAIN_COUNT];                  /* reported as enabled as a whole */
    atomic_bool zero;                                 /* the driver's callback 0 is enabled */
    char name[64];
    struct sd_tool tool;
} subscriber;

static atomic_bool activities[ACTIVITY_KINDS];

static const char *const names[] = {
#define CBID(number, name) [number] = #name,
#include "driver_cbids.def"
#undef CBID
};

static unsigned long number_from_environment(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static bool wants(int domain, uint32_t cbid)
{
    return atomic_load(&subscriber.active) && cbid < CBIDS_MAX &&
           atomic_load(&subscriber.heard[domain][cbid]);
}

static void on_call(struct sd_call *call)
{
    if (!wants(DOMAIN_DRIVER, call->cbid))
        return;
    struct callback_data data = {
        .site = (int)call->site,
        .function_name = call->name,
        .function_params = call->params,
        .function_return_value = call->site == SD_EXIT ? &call->result : NULL,
        .context = call->context,
        .context_uid = call->context_uid,
        .correlation_data = &call->correlation_data,
        .correlation_id = call->correlation_id,
    };
    subscriber.function(subscriber.user, DOMAIN_DRIVER, call->cbid, &data);
}

static void on_resource(enum sd_resource_kind kind, CUcontext context, CUstream stream,
                        const void *descriptor)
{
    if (!wants(DOMAIN_RESOURCE, kind))
        return;
    struct resource_data data = {context, stream, descriptor};
    subscriber.function(subscriber.user, DOMAIN_RESOURCE, kind, &data);
}

/* Returns an entry point of the stand-in driver, which the program has loaded. */
static void *driver_symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, name) : NULL;
    if (driver)
        dlclose(driver);
    return symbol;
}

static const char *attach(void)
{
    const char *(*attach_tool)(const struct sd_tool *) = NULL;
    *(void **)&attach_tool = driver_symbol("memtrace_simulated_attach");
    subscriber.tool = (struct sd_tool){subscriber.name, on_call, on_resource};
    return attach_tool(&subscriber.tool);
}

static int subscribe(void **handle, callback_function *function, void *user,
                     const struct subscriber_params *params)
{
    unsigned long error = number_from_environment("MEMTRACE_SIMULATED_CUPTI_ERROR", 0);
    if (!handle || !function)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (error)
        return (int)error;
    if (!driver_symbol("memtrace_simulated_attach"))
        return CUPTI_ERROR_UNKNOWN;
    const char *holder = getenv("MEMTRACE_SIMULATED_CUPTI_HOLDER");
    if (!holder && atomic_load(&subscriber.active))
        holder = subscriber.name;
    if (!holder) {
        snprintf(subscriber.name, sizeof subscriber.name, "CUPTI for %s",
                 params && params->name ? params->name : "an unnamed subscriber");
        holder = attach();
    }
    if (holder) {
        if (params && params->old_name && params->old_name_size)
            snprintf(params->old_name, params->old_name_size, "%s", holder);
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    if (params && params->old_name && params->old_name_size)
        params->old_name[0] = 0;
    subscriber.function = function;
    subscriber.user = user;
    atomic_store(&subscriber.active, true);
    *handle = &subscriber;
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiSubscribe(void **handle, callback_function *function, void *user)
{
    return subscribe(handle, function, user, NULL);
}

SD_EXPORT int cuptiSubscribe_v2(void **handle, callback_function *function, void *user,
                                struct subscriber_params *params)
{
    if (params && params->size < sizeof *params)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return subscribe(handle, function, user, params);
}

static bool is_subscribed(const void *handle)
{
    return handle == &subscriber && atomic_load(&subscriber.active);
}

SD_EXPORT int cuptiUnsubscribe(void *handle)
{
    void (*detach)(const struct sd_tool *) = NULL;
    if (handle != &subscriber)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!is_subscribed(handle))
        return CUPTI_SUCCESS; /* an old handle */
    *(void **)&detach = driver_symbol("memtrace_simulated_detach");
    if (detach)
        detach(&subscriber.tool);
    atomic_store(&subscriber.active, false);
    memset((void *)subscriber.enabled, 0, sizeof subscriber.enabled);
    memset((void *)subscriber.heard, 0, sizeof subscriber.heard);
    memset((void *)subscriber.whole, 0, sizeof subscriber.whole);
    atomic_store(&subscriber.zero, false);
    return CUPTI_SUCCESS;
}

/* Any caller may end CUPTI for the whole process; a later call starts it again. */
SD_EXPORT int cuptiFinalize(void)
{
    if (atomic_load(&subscriber.active))
        (void)cuptiUnsubscribe(&subscriber);
    memset((void *)activities, 0, sizeof activities);
    return CUPTI_SUCCESS;
}

static uint32_t cbid_limit(int domain)
{
    uint32_t known = sizeof names / sizeof *names;
    unsigned long wanted = number_from_environment("MEMTRACE_SIMULATED_CUPTI_NAMES", 807);
    return domain == DOMAIN_RESOURCE ? 24 : wanted < known ? (uint32_t)wanted : known;
}

static bool is_callback(int domain, uint32_t cbid)
{
    return domain >= 1 && domain < DOMAIN_COUNT && cbid < cbid_limit(domain);
}

/* Callback 0 of the driver stands for all calls. Enabling it activates the callbacks that are
 * marked as enabled, and disabling it deactivates them. CUPTI 13.0 does the same. */
static void choose_zero(bool enable)
{
    bool was = atomic_exchange(&subscriber.zero, enable);
    if (!enable && (!was || atomic_load(&subscriber.whole[DOMAIN_DRIVER])))
        return;
    for (uint32_t cbid = 1; cbid < CBIDS_MAX; cbid++)
        atomic_store(&subscriber.heard[DOMAIN_DRIVER][cbid],
                     enable ? atomic_load(&subscriber.enabled[DOMAIN_DRIVER][cbid]) : 0);
}

/* Does not enable again what it reports as enabled. */
SD_EXPORT int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t cbid)
{
    if (!is_subscribed(handle) || !is_callback(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t was = atomic_exchange(&subscriber.enabled[domain][cbid], enable ? 1 : 0);
    if (domain == DOMAIN_DRIVER && cbid == 0)
        choose_zero(enable);
    else if (!enable || !was)
        atomic_store(&subscriber.heard[domain][cbid], enable ? 1 : 0);
    return CUPTI_SUCCESS;
}

/* Does not enable again what is enabled as a whole, although its callbacks may have been disabled
 * one by one: CUPTI 13.0 does the same. */
SD_EXPORT int cuptiEnableDomain(uint32_t enable, void *handle, int domain)
{
    if (!is_subscribed(handle) || domain < 1 || domain >= DOMAIN_COUNT)
        return CUPTI_ERROR_INVALID_PARAMETER;
    bool again = atomic_exchange(&subscriber.whole[domain], enable != 0) && enable;
    for (uint32_t cbid = 0; cbid < cbid_limit(domain); cbid++) {
        atomic_store(&subscriber.enabled[domain][cbid], enable ? 1 : 0);
        if (!again)
            atomic_store(&subscriber.heard[domain][cbid], enable ? 1 : 0);
    }
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiEnableAllDomains(uint32_t enable, void *handle)
{
    int result = CUPTI_SUCCESS;
    for (int domain = 1; domain < DOMAIN_COUNT && !result; domain++)
        result = cuptiEnableDomain(enable, handle, domain);
    return result;
}

SD_EXPORT int cuptiGetCallbackState(uint32_t *enable, void *handle, int domain, uint32_t cbid)
{
    if (!enable || !is_subscribed(handle) || !is_callback(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = atomic_load(&subscriber.enabled[domain][cbid]);
    return CUPTI_SUCCESS;
}

static int enable_activity(int kind, bool enable)
{
    if (kind < 1 || kind >= ACTIVITY_KINDS)
        return CUPTI_ERROR_INVALID_KIND;
    atomic_store(&activities[kind], enable);
    return CUPTI_SUCCESS;
}

/* Activities need no subscriber. None is ever recorded here. */
SD_EXPORT int cuptiActivityEnable(int kind)
{
    return enable_activity(kind, true);
}

SD_EXPORT int cuptiActivityDisable(int kind)
{
    return enable_activity(kind, false);
}

SD_EXPORT int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
    if (domain != DOMAIN_DRIVER || cbid >= cbid_limit(domain) || !names[cbid] || !name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = names[cbid];
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiGetVersion(uint32_t *version)
{
    *version = (uint32_t)number_from_environment("MEMTRACE_SIMULATED_CUPTI_VERSION", 130000);
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiGetResultString(int result, const char **text)
{
    *text = result == CUPTI_SUCCESS                 ? "CUPTI_SUCCESS"
            : result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED"
            : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiGetTimestamp(uint64_t *timestamp)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *timestamp = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    return CUPTI_SUCCESS;
}

SD_EXPORT int cuptiGetContextId(CUcontext context, uint32_t *id)
{
    unsigned (*uid_of)(CUcontext) = NULL;
    *(void **)&uid_of = driver_symbol("memtrace_simulated_context_uid");
    *id = uid_of ? uid_of(context) : 0;
    return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SD_EXPORT int cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
    if (!context)
        return CUPTI_ERROR_INVALID_CONTEXT;
    *device = (uint32_t)context->device;
    return CUPTI_SUCCESS;
}
