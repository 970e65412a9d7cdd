/* Driver events from CUPTI's callbacks. The driver calls InitializeInjection when the program first
 * calls cuInit. There CUPTI is loaded and subscribed to, and each call of the table is watched.
 * Callbacks decode and emit. They query CUDA and CUPTI only for the device of a new context and for
 * whether a stream is being captured. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "collect.h"
#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_contexts.h"
#include "cupti_decoders.h"
#include "cupti_library.h"
#include "cupti_live.h"
#include "cupti_slot.h"
#include "inject_source.h"
#include "settings.h"
#include "source_cupti.h"
#include "source_nvml.h"

enum { CAPTURE_ACTIVE = 1 /* CU_STREAM_CAPTURE_STATUS_ACTIVE */ };

static mt_cu_is_capturing *ask_legacy, *ask_per_thread;

void mt_cupti_capture_set_query(mt_cu_is_capturing *legacy, mt_cu_is_capturing *per_thread)
{
    ask_legacy = legacy;
    ask_per_thread = per_thread;
}

static mt_cu_is_capturing *find(void *library, const char *name)
{
    mt_cu_is_capturing *function = NULL;
    void *symbol = dlsym(library, name);
    memcpy(&function, &symbol, sizeof symbol);
    return function;
}

/* Like mt_cupti_capture_set_query, with the functions of the libcuda that the process has loaded.
 */
static void cupti_capture_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return;
    mt_cupti_capture_set_query(find(library, "cuStreamIsCapturing"),
                               find(library, "cuStreamIsCapturing_ptsz"));
    dlclose(library); /* the process keeps the library loaded */
}

/* Returns false if the call has no stream. */
static bool stream_of(const struct mt_cupti_entry *entry, const void *params, uint64_t *stream)
{
    if (entry->at_exit == mt_cupti_exit_alloc_async)
        *stream = ((const struct mt_cu_alloc_stream *)params)->hStream;
    else if (entry->at_exit == mt_cupti_exit_alloc_pool)
        *stream = ((const struct mt_cu_alloc_pool *)params)->hStream;
    else
        return false;
    return true;
}

/* Call it at EXIT of a call that succeeded. Returns false for calls that cannot be captured. */
static bool cupti_is_captured(const struct mt_cupti_entry *entry, const void *params)
{
    uint64_t stream;
    uint32_t status = 0;
    if (!stream_of(entry, params, &stream))
        return false;
    mt_cu_is_capturing *ask = strstr(entry->name, "_ptsz") ? ask_per_thread : ask_legacy;
    return ask && ask(stream, &status) == 0 && status == CAPTURE_ACTIVE;
}

enum { MAX_CBIDS = 1024 };

static _Atomic bool active;
static _Atomic bool begun, initialised;   /* the driver is in cuInit; cuInit has ended */
static _Atomic bool told;                 /* the trace names the subscription */
static uint8_t place_in_table[MAX_CBIDS]; /* index in the table + 1; not written while active */

struct cupti_subscription {
    uint32_t version; /* of CUPTI */
    uint32_t watched; /* entry points of the table that are enabled */
    uint32_t absent;  /* entry points of the table that this CUPTI does not have */
    uint32_t differs; /* entry points of the table whose number has another name in this CUPTI; they
                         are not enabled */
    uint32_t newer;   /* entry points newer than the table whose name suggests that they allocate or
                         free */
    char newest[128]; /* names of the first newer entry points */
    char refusal[1280]; /* why there is no subscription */
};

static struct cupti_subscription own_subscription;

/* The current call of the thread. */
static __thread bool put_off; /* the ENTER part, until the result is known */

/* In a broken context calls fail, so a free is reported only after the call has succeeded. */
void mt_cupti_on_enter(const struct mt_cupti_entry *entry, const struct mt_cupti_call *call)
{
    mt_cupti_begin_call();
    put_off = mt_cupti_is_broken(call->context);
    if (entry->at_enter && !put_off)
        entry->at_enter(call);
}

void mt_cupti_on_exit(const struct mt_cupti_entry *entry, const struct mt_cupti_call *call)
{
    if (call->result)
        mt_cupti_see_result(call);
    else if (entry->at_enter && put_off)
        entry->at_enter(call);
    entry->at_exit(call);
    put_off = false;
}

static void on_call(uint32_t cbid, const struct mt_cupti_callback_data *data)
{
    unsigned place = cbid < MAX_CBIDS ? place_in_table[cbid] : 0;
    if (!place || !data->functionParams)
        return;
    const struct mt_cupti_entry *entry = &mt_cupti_entries[place - 1];
    struct mt_cupti_call call = {.params = data->functionParams,
                                 .context = (uint64_t)(uintptr_t)data->context};
    if (data->callbackSite == MT_CUPTI_ENTER) {
        mt_cupti_on_enter(entry, &call);
    } else if (data->functionReturnValue) {
        call.result = *data->functionReturnValue;
        call.captured = !call.result && cupti_is_captured(entry, call.params);
        mt_cupti_on_exit(entry, &call);
    }
}

static void on_resource(uint32_t cbid, const struct mt_cupti_resource_data *data)
{
    uint64_t context = (uint64_t)(uintptr_t)data->context;
    if (cbid == MT_CUPTI_CONTEXT_CREATED)
        mt_cupti_context_created(context);
    else if (cbid == MT_CUPTI_CONTEXT_DESTROY_STARTING)
        mt_cupti_context_destroyed(context);
}

static void on_fatal_error(const struct mt_cupti_state_data *data)
{
    static bool once;
    static const char text[] = "CUPTI stopped: driver events end here";
    struct mt_raw_event event = {.kind = MT_EVENT_MARK,
                                 .id = mt_collect_name(text, sizeof text - 1),
                                 .device = MT_CU_UNKNOWN_DEVICE};
    mt_collect_emit(&event);
    mt_collect_not_recorded(&once, "CUPTI stopped (%s): later driver events are not recorded",
                            data->message ? data->message : "no reason given");
}

static void dispatch(uint32_t domain, uint32_t cbid, const void *data)
{
    if (domain == MT_CUPTI_DRIVER)
        on_call(cbid, data);
    else if (domain == MT_CUPTI_RESOURCE)
        on_resource(cbid, data);
    else if (domain == MT_CUPTI_STATE && cbid == MT_CUPTI_FATAL_ERROR)
        on_fatal_error(data);
}

/* Device queries of a program are remembered, but do not start a trace: launchers of several
 * processes also make them, and never allocate. */
static bool is_question(uint32_t domain, uint32_t cbid)
{
    unsigned place = domain == MT_CUPTI_DRIVER && cbid < MAX_CBIDS ? place_in_table[cbid] : 0;
    return place && mt_cupti_is_device_query(&mt_cupti_entries[place - 1]);
}

static void tell_start(void);

static void on_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    int saved = errno;
    (void)user;
    if (active && data) {
        if (!mt_collect_is_running() && is_question(domain, cbid)) {
            dispatch(domain, cbid, data);
        } else if (mt_collect_enter()) {
            tell_start();
            dispatch(domain, cbid, data);
            mt_collect_leave();
        }
    }
    errno = saved;
}

bool mt_cupti_is_active(void)
{
    return active;
}

/* Facts for the header of the trace (docs/internals/trace-format.md, 2.1). */
static void tell_facts(void)
{
    struct mt_buf text = {0};
    uint64_t unknown = mt_cupti_unknown_frees();
    if (own_subscription.refusal[0]) {
        mt_buf_printf(&text, "without CUPTI: %s", own_subscription.refusal);
    } else {
        mt_buf_printf(&text, "CUPTI %u, %u calls watched", own_subscription.version,
                      own_subscription.watched);
        if (own_subscription.absent)
            mt_buf_printf(&text, ", %u unknown to it", own_subscription.absent);
        if (own_subscription.differs)
            mt_buf_printf(&text, ", %u have another name", own_subscription.differs);
        if (own_subscription.newer)
            mt_buf_printf(&text, ", %u newer ones not decoded: %s", own_subscription.newer,
                          own_subscription.newest);
        if (unknown)
            mt_buf_printf(&text, ", %llu frees of memory that was not known",
                          (unsigned long long)unknown);
    }
    if (!text.failed)
        mt_collect_fact("driver_calls", text.data);
    mt_buf_release(&text);
}

/* If so, libmemtrace-cuda.so reports the driver's calls. */
static bool has_substitute(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "libmemtrace-cuda.so");
}

/* True if driver events were requested and cannot be recorded. */
static bool is_missed(void)
{
    return !active && own_subscription.refusal[0] &&
           strcmp(mt_recorder_settings->cupti, "none") != 0 && !has_substitute();
}

/* Records the facts as soon as the trace and the result of subscribing exist: before the first
 * event of the driver, so that they are on the tape if the process is killed just after it. Threads
 * that start at the same time all record them: none continues before the facts are there, and none
 * waits long. A fact that is recorded twice counts once (tape_symbols.c). */
static void tell_start(void)
{
    static bool once;

    if (!(active || initialised) || atomic_load_explicit(&told, memory_order_acquire))
        return;
    if (active)
        mt_collect_fact("sources", "cupti");
    if (is_missed())
        mt_collect_not_recorded(
            &once, "no driver events: %s (MEMTRACE_CUPTI=none wraps the driver instead)",
            own_subscription.refusal);
    tell_facts();
    mt_cupti_contexts_record_devices();
    atomic_store_explicit(&told, true, memory_order_release);
}

/* Begins a trace in a program that only calls the driver, because nothing else would. The trace
 * states why it is empty. */
static void say_in_trace(void)
{
    if (mt_collect_enter())
        mt_collect_leave();
}

struct attempt {
    mt_cupti_callback *callback;
    uint8_t *place_of;
    size_t places;
    struct cupti_subscription *subscription;
    bool refused;
};

static int subscribe_named(const struct mt_cupti_library *library, bool several, char holder[128],
                           void **subscriber)
{
    struct mt_cupti_subscriber_params params = {
        .structSize = several
                          ? sizeof params
                          : offsetof(struct mt_cupti_subscriber_params, allowMultipleSubscribers),
        .subscriberName = "memtrace",
        .oldSubscriberName = holder,
        .oldSubscriberSize = 128,
        .allowMultipleSubscribers = several,
    };
    return library->subscribe_v2(subscriber, mt_cupti_slot_callback, NULL, &params);
}

static int subscribe_slot(const struct attempt *attempt, const struct mt_cupti_library *library,
                          char holder[128], void **subscriber)
{
    int result = 0;
    if (!library->subscribe_v2)
        return library->subscribe(subscriber, mt_cupti_slot_callback, NULL);
    if (attempt->subscription->version >= MT_CUPTI_SEVERAL_SINCE) {
        result = subscribe_named(library, true, holder, subscriber);
        if (result == 0)
            return 0;
    }
    return subscribe_named(library, false, holder, subscriber);
}

/* Takes the place, or shares it with an earlier subscriber (cupti_slot.c). */
static int take(const struct attempt *attempt, const struct mt_cupti_library *library,
                char holder[128])
{
    void *subscriber = NULL;
    int result = MT_CUPTI_SUCCESS;
    if (!mt_cupti_slot_claim()) {
        strcpy(holder, "it is subscribing now");
        return MT_CUPTI_MULTIPLE_SUBSCRIBERS;
    }
    if (!mt_cupti_slot_library()) {
        result = subscribe_slot(attempt, library, holder, &subscriber);
        if (result == MT_CUPTI_SUCCESS)
            mt_cupti_slot_hold(library, subscriber);
    }
    if (result == MT_CUPTI_SUCCESS)
        mt_cupti_slot_set_own(attempt->callback);
    mt_cupti_slot_release();
    return result;
}

/* Keeps the first reason, which is that of the best library. A reason that names another tool in
 * the place has priority. */
static void explain(struct attempt *attempt, const struct mt_cupti_library *library, int result,
                    const char *holder)
{
    struct cupti_subscription *subscription = attempt->subscription;
    const char *text = NULL;
    if (library->result_string(result, &text) != 0 || !text)
        text = "unknown error";
    if (result == MT_CUPTI_MULTIPLE_SUBSCRIBERS)
        snprintf(subscription->refusal, sizeof subscription->refusal,
                 "another tool already uses CUPTI, which accepts one subscriber: %s",
                 holder[0] ? holder : "CUPTI does not report which (a profiler or debugger)");
    else if (!attempt->refused)
        snprintf(subscription->refusal, sizeof subscription->refusal, "%s: %s (%d)", library->path,
                 text, result);
    attempt->refused = true;
}

static void watch(const struct attempt *attempt, const struct mt_cupti_library *library,
                  size_t place)
{
    const struct mt_cupti_entry *entry = &mt_cupti_entries[place];
    struct cupti_subscription *subscription = attempt->subscription;
    const char *name = NULL;
    if (entry->cbid >= attempt->places || library->name(MT_CUPTI_DRIVER, entry->cbid, &name) != 0 ||
        !name) {
        subscription->absent++;
    } else if (strcmp(name, entry->name) != 0) {
        subscription->differs++;
    } else if (mt_cupti_slot_request(MT_CUPTI_OWN, true, MT_CUPTI_DRIVER, entry->cbid) == 0) {
        attempt->place_of[entry->cbid] = (uint8_t)(place + 1);
        subscription->watched++;
    } else {
        subscription->absent++;
    }
}

static void look_for_newer(struct cupti_subscription *subscription,
                           const struct mt_cupti_library *library)
{
    const char *name;
    for (uint32_t cbid = MT_CUPTI_FIRST_NEWER_CBID;
         library->name(MT_CUPTI_DRIVER, cbid, &name) == 0 && name; cbid++) {
        if (!mt_cupti_name_is_of_memory(name))
            continue;
        size_t used = strlen(subscription->newest);
        if (used + strlen(name) + 2 < sizeof subscription->newest)
            snprintf(subscription->newest + used, sizeof subscription->newest - used, "%s%s",
                     used ? " " : "", name);
        subscription->newer++;
    }
}

static void watch_state(uint32_t domain, uint32_t cbid)
{
    (void)mt_cupti_slot_request(MT_CUPTI_OWN, true, domain, cbid);
}

static void watch_all(const struct attempt *attempt, const struct mt_cupti_library *library)
{
    mt_cupti_contexts_set_query(library->device_id);
    for (size_t place = 0; place < mt_cupti_entry_count; place++)
        watch(attempt, library, place);
    look_for_newer(attempt->subscription, library);
    watch_state(MT_CUPTI_RESOURCE, MT_CUPTI_CONTEXT_CREATED);
    watch_state(MT_CUPTI_RESOURCE, MT_CUPTI_CONTEXT_DESTROY_STARTING);
    watch_state(MT_CUPTI_STATE, MT_CUPTI_FATAL_ERROR);
}

/* If there is a subscriber, another copy would also be refused. */
static bool try_library(void *user, const struct mt_cupti_library *library)
{
    struct attempt *attempt = user;
    char holder[128] = "";
    if (library->version(&attempt->subscription->version) != 0)
        attempt->subscription->version = 0; /* subscribing reports the reason */
    int result = take(attempt, library, holder);
    if (result != MT_CUPTI_SUCCESS) {
        holder[sizeof holder - 1] = 0;
        explain(attempt, library, result, holder);
        return result == MT_CUPTI_MULTIPLE_SUBSCRIBERS;
    }
    attempt->subscription->refusal[0] = 0;
    watch_all(attempt, mt_cupti_slot_library());
    return true;
}

/* Searches for CUPTI (the setting `cupti` in settings.h), subscribes, and enables every entry point
 * of the table and the resource callbacks. Sets `place_of[cbid]` to the entry's index in the table
 * + 1; `places` is the length of that array. On failure returns false, and `refusal` is a sentence
 * for the user. */
static bool cupti_subscribe(mt_cupti_callback *callback, uint8_t *place_of, size_t places,
                            struct cupti_subscription *subscription)
{
    struct attempt attempt = {callback, place_of, places, subscription, false};
    *subscription = (struct cupti_subscription){.refusal = "no libcupti was found"};
    if (strcmp(mt_recorder_settings->cupti, "none") == 0) {
        strcpy(subscription->refusal, "it is disabled");
        return false;
    }
    const struct mt_cupti_library *held = mt_cupti_slot_library();
    bool tried = held ? try_library(&attempt, held)
                      : mt_cupti_search(mt_recorder_settings->cupti, try_library, &attempt);
    if (!held && !tried && !attempt.refused && errno == ENOMEM)
        strcpy(subscription->refusal, "out of memory while libcupti was loaded");
    return tried && subscription->refusal[0] == 0;
}

static void subscribe(void)
{
    cupti_capture_find();
    /* CUPTI may call back from now on, so the table is complete before */
    active = cupti_subscribe(on_callback, place_in_table, MAX_CBIDS, &own_subscription);
}

/* Starts the library that was in this place before memtrace, as it would start without memtrace. */
static void start_next(void)
{
    int (*initialize)(void) = NULL;
    void *next = mt_recorder_settings->next_cuda[0]
                     ? dlopen(mt_recorder_settings->next_cuda, RTLD_NOW)
                     : NULL;
    void *symbol = next ? dlsym(next, "InitializeInjection") : NULL;
    memcpy(&initialize, &symbol, sizeof symbol);
    if (initialize && initialize != InitializeInjection)
        (void)initialize();
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    int saved = errno;
    if (!begun) {
        begun = true;
        start_next();
        mt_nvml_note_environment();
        if (mt_recorder_settings->asked)
            subscribe();
        initialised = true;
        if (mt_recorder_settings->asked && !active && !has_substitute())
            say_in_trace();
        if (mt_collect_is_running())
            tell_start();
    }
    errno = saved;
    return 1;
}

static void stop(void)
{
    if (active && mt_cupti_unknown_frees())
        tell_facts();
}

static void forked(void)
{
    active = false;
    begun = initialised = told = false;
    memset(place_in_table, 0, sizeof place_in_table);
    mt_cupti_slot_forked();
    mt_cupti_live_forget();
    mt_cupti_contexts_forget();
    mt_cupti_pools_forget();
}

const struct mt_inject_source mt_cupti_source = {
    .name = "cupti", .start = tell_start, .stop = stop, .forked = forked};

/* Subscribes to CUPTI and enables callbacks.
 *
 * Up to CUPTI 13.1 a process has one subscriber, and memtrace shares its place (cupti_slot.h).
 * Later versions allow several on request. */
