/* Shares CUPTI's single subscription with other code of the process. These functions replace those
 * of CUPTI that create and use a subscriber. Code that is linked to CUPTI (such as torch.profiler)
 * calls them, because this library is preloaded. Code that gets the functions from dlsym calls
 * CUPTI itself.
 *
 * A guest gets everything that CUPTI provides: its handle, its results, its callbacks with their
 * data. It is served while memtrace records. Otherwise, and for a second guest or another copy of
 * CUPTI, calls go directly to CUPTI. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "cupti_slot.h"
#include "originals.h"
#include "settings.h"

enum { ACTIVITY_KINDS = 128 }; /* more than CUPTI has */

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* Declared here, next to the definitions, because their types are CUPTI's. */
EXPORT int cuptiSubscribe(void **subscriber, mt_cupti_callback *callback, void *user);
EXPORT int cuptiSubscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
                             struct mt_cupti_subscriber_params *params);
EXPORT int cuptiUnsubscribe(void *subscriber);
EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid);
EXPORT int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
EXPORT int cuptiEnableAllDomains(uint32_t enable, void *subscriber);
EXPORT int cuptiGetCallbackState(uint32_t *enabled, void *subscriber, uint32_t domain,
                                 uint32_t cbid);
EXPORT int cuptiFinalize(void);

/* Returns the function of CUPTI that the caller would have called; NULL if there is no CUPTI. */
static void *behind(const char *name, const void *caller)
{
    int saved = errno;
    void *function = mt_original_for(caller, name);
    if (!function)
        function = mt_cupti_mapped_symbol(name);
    errno = saved;
    return function;
}

static bool has_guest(void)
{
    return mt_cupti_slot_has(MT_CUPTI_GUEST);
}

struct request {
    void **subscriber;
    mt_cupti_callback *callback;
    void *user;
    struct mt_cupti_subscriber_params *params;
    bool is_v2;
    void *function; /* CUPTI's */
};

static int ask(const struct request *request)
{
    int (*subscribe)(void **, mt_cupti_callback *, void *);
    int (*subscribe_v2)(void **, mt_cupti_callback *, void *, struct mt_cupti_subscriber_params *);
    memcpy(&subscribe, &request->function, sizeof subscribe);
    memcpy(&subscribe_v2, &request->function, sizeof subscribe_v2);
    if (!request->function)
        return MT_CUPTI_NOT_INITIALIZED;
    if (!request->is_v2)
        return subscribe(request->subscriber, request->callback, request->user);
    return subscribe_v2(request->subscriber, request->callback, request->user, request->params);
}

static bool knows_several(const struct mt_cupti_library *library)
{
    uint32_t version = 0;
    return library->version(&version) == 0 && version >= MT_CUPTI_SEVERAL_SINCE;
}

static bool wants_several(const struct request *request, const struct mt_cupti_library *library)
{
    return request->params &&
           request->params->structSize >
               offsetof(struct mt_cupti_subscriber_params, allowMultipleSubscribers) &&
           request->params->allowMultipleSubscribers && knows_several(library);
}

/* The guest subscribes first; the collector may join later. */
static int come_first(const struct request *request, const struct mt_cupti_library *library)
{
    struct request ours = *request;
    ours.callback = mt_cupti_slot_callback;
    ours.user = NULL;
    if (!mt_cupti_slot_set_guest(request->callback, request->user))
        return MT_CUPTI_OUT_OF_MEMORY;
    int result = ask(&ours);
    if (result == MT_CUPTI_SUCCESS)
        mt_cupti_slot_hold(library, *request->subscriber);
    else
        (void)mt_cupti_slot_set_guest(NULL, NULL);
    return result;
}

/* The collector has subscribed already. A CUPTI that supports several subscribers may refuse this
 * one, because it did not request to be one of several. */
static int join(const struct request *request, const struct mt_cupti_library *library)
{
    int result = MT_CUPTI_MULTIPLE_SUBSCRIBERS;
    if (has_guest() || knows_several(library))
        result = ask(request);
    if (result != MT_CUPTI_MULTIPLE_SUBSCRIBERS || has_guest())
        return result;
    if (request->params && !request->params->structSize)
        return MT_CUPTI_INVALID_PARAMETER;
    if (!mt_cupti_slot_set_guest(request->callback, request->user))
        return MT_CUPTI_OUT_OF_MEMORY;
    if (request->params && request->params->oldSubscriberName && request->params->oldSubscriberSize)
        request->params->oldSubscriberName[0] = 0; /* no earlier subscriber to name */
    *request->subscriber = mt_cupti_slot_subscriber();
    return MT_CUPTI_SUCCESS;
}

/* Call it between claim and release. Sets *keep if the place keeps the library. */
static int share(const struct request *request, const struct mt_cupti_library *library, bool *keep)
{
    const struct mt_cupti_library *held = mt_cupti_slot_library();
    if (held && held->subscribe == library->subscribe)
        return join(request, library);
    if (held || wants_several(request, library))
        return ask(request);
    int result = come_first(request, library);
    *keep = result == MT_CUPTI_SUCCESS;
    return result;
}

static bool records(void)
{
    return mt_recorder_settings->asked && strcmp(mt_recorder_settings->cupti, "none") != 0;
}

static int subscribe(const struct request *request)
{
    struct mt_cupti_library library;
    bool keep = false;
    int result;
    if (!records() || !request->subscriber || !request->callback || !request->function ||
        !mt_cupti_library_of(request->function, &library))
        return ask(request);
    if (mt_cupti_slot_claim()) {
        result = share(request, &library, &keep);
        mt_cupti_slot_release();
    } else {
        result = ask(request);
    }
    if (!keep)
        dlclose(library.handle);
    return result;
}

int cuptiSubscribe(void **subscriber, mt_cupti_callback *callback, void *user)
{
    struct request request = {.subscriber = subscriber,
                              .callback = callback,
                              .user = user,
                              .function = behind("cuptiSubscribe", CALLER)};
    return subscribe(&request);
}

int cuptiSubscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
                      struct mt_cupti_subscriber_params *params)
{
    struct request request = {.subscriber = subscriber,
                              .callback = callback,
                              .user = user,
                              .params = params,
                              .is_v2 = true,
                              .function = behind("cuptiSubscribe_v2", CALLER)};
    return subscribe(&request);
}

/* The handle is that of the place. It belongs to the guest while there is one. */
static bool is_shared(const void *subscriber)
{
    return subscriber && subscriber == mt_cupti_slot_subscriber();
}

static void drop_guest(void)
{
    (void)mt_cupti_slot_set_guest(NULL, NULL);
    (void)mt_cupti_slot_request_all(MT_CUPTI_GUEST, false);
}

static int leave(void *subscriber)
{
    const struct mt_cupti_library *library = mt_cupti_slot_library();
    int result = MT_CUPTI_SUCCESS;
    bool claimed = mt_cupti_slot_claim();
    if (mt_cupti_slot_has(MT_CUPTI_OWN)) {
        drop_guest();
    } else {
        result = library->unsubscribe ? library->unsubscribe(subscriber) : MT_CUPTI_NOT_INITIALIZED;
        if (result == MT_CUPTI_SUCCESS)
            mt_cupti_slot_forget();
    }
    if (claimed)
        mt_cupti_slot_release();
    return result;
}

int cuptiUnsubscribe(void *subscriber)
{
    int (*unsubscribe)(void *);
    if (is_shared(subscriber))
        return has_guest() ? leave(subscriber) : MT_CUPTI_SUCCESS; /* as CUPTI does */
    void *function = behind("cuptiUnsubscribe", CALLER);
    memcpy(&unsubscribe, &function, sizeof function);
    return function ? unsubscribe(subscriber) : MT_CUPTI_NOT_INITIALIZED;
}

/* CUPTI stays subscribed for the collector, but everything that the guest enabled ends: callbacks
 * and activity records. */
static void detach_guest(const struct mt_cupti_library *library)
{
    drop_guest();
    for (uint32_t kind = 1; library->disable_activity && kind < ACTIVITY_KINDS; kind++)
        (void)library->disable_activity(kind);
}

int cuptiFinalize(void)
{
    int (*finalize)(void), result = MT_CUPTI_SUCCESS;
    const struct mt_cupti_library *library = mt_cupti_slot_library();
    void *function = behind("cuptiFinalize", CALLER);
    memcpy(&finalize, &function, sizeof function);
    if (!function)
        return MT_CUPTI_NOT_INITIALIZED;
    if (!library || library->finalize != finalize)
        return finalize();
    bool claimed = mt_cupti_slot_claim();
    if (mt_cupti_slot_has(MT_CUPTI_OWN)) {
        detach_guest(library);
    } else {
        result = finalize();
        if (result == MT_CUPTI_SUCCESS)
            mt_cupti_slot_forget();
    }
    if (claimed)
        mt_cupti_slot_release();
    return result;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    int (*original)(uint32_t, void *, uint32_t, uint32_t);
    if (is_shared(subscriber))
        return has_guest() ? mt_cupti_slot_request(MT_CUPTI_GUEST, enable, domain, cbid)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiEnableCallback", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enable, subscriber, domain, cbid) : MT_CUPTI_NOT_INITIALIZED;
}

int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain)
{
    int (*original)(uint32_t, void *, uint32_t);
    if (is_shared(subscriber))
        return has_guest() ? mt_cupti_slot_request_domain(MT_CUPTI_GUEST, enable, domain)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiEnableDomain", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enable, subscriber, domain) : MT_CUPTI_NOT_INITIALIZED;
}

int cuptiEnableAllDomains(uint32_t enable, void *subscriber)
{
    int (*original)(uint32_t, void *);
    if (is_shared(subscriber))
        return has_guest() ? mt_cupti_slot_request_all(MT_CUPTI_GUEST, enable)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiEnableAllDomains", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enable, subscriber) : MT_CUPTI_NOT_INITIALIZED;
}

int cuptiGetCallbackState(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t cbid)
{
    int (*original)(uint32_t *, void *, uint32_t, uint32_t);
    if (is_shared(subscriber))
        return has_guest() ? mt_cupti_slot_state(MT_CUPTI_GUEST, enabled, domain, cbid)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiGetCallbackState", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enabled, subscriber, domain, cbid) : MT_CUPTI_NOT_INITIALIZED;
}
