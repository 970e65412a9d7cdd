/* CUPTI accepts one subscriber. The slot of that subscriber, and the guest who shares it with the
 * collector.
 *
 * Callbacks run while a guest subscribes or unsubscribes. They read two pointers and a byte, and
 * take no lock. The target of a guest pointer is never freed (a profiler that subscribes again uses
 * the same one).
 *
 * Wishes are stored for the domains that the collector uses. In these domains each callback is
 * enabled individually in CUPTI, never the whole domain: after a whole domain was enabled and then
 * disabled callback by callback, CUPTI 13.0 considers it still enabled, and enabling it again does
 * nothing. Callback 0, which is not a call, is never passed to CUPTI: disabling it mutes all others
 * of its domain. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti_library.h"
#include "cupti_slot.h"
#include "originals.h"
#include "settings.h"

enum { DOMAINS = 16, CBIDS = 2048, MAX_WAIT_NS = 2000000000 };

enum { KEPT_DOMAINS = 3 };

struct guest {
    mt_cupti_callback *callback;
    void *user;
    struct guest *next;
};

static struct {
    struct mt_cupti_library library; /* while `subscriber` is set */
    _Atomic(void *) subscriber;
    _Atomic(mt_cupti_callback *) own;
    _Atomic(struct guest *) guest;
    struct guest *guests;                          /* all guests so far */
    _Atomic uint8_t requests[KEPT_DOMAINS][CBIDS]; /* bits of enum mt_cupti_side */
} place;

static atomic_flag cupti_slot_claimed = ATOMIC_FLAG_INIT;
static __thread bool has_claim, is_telling;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

bool mt_cupti_slot_claim(void)
{
    uint64_t start_ns = now_ns();
    if (has_claim)
        return false;
    while (atomic_flag_test_and_set(&cupti_slot_claimed)) {
        if (now_ns() - start_ns > MAX_WAIT_NS)
            return false;
        sched_yield();
    }
    has_claim = true;
    return true;
}

void mt_cupti_slot_release(void)
{
    has_claim = false;
    atomic_flag_clear(&cupti_slot_claimed);
}

const struct mt_cupti_library *mt_cupti_slot_library(void)
{
    return mt_cupti_slot_subscriber() ? &place.library : NULL;
}

void mt_cupti_slot_hold(const struct mt_cupti_library *library, void *subscriber)
{
    place.library = *library;
    atomic_store(&place.subscriber, subscriber);
}

void mt_cupti_slot_forget(void)
{
    atomic_store(&place.subscriber, NULL);
    atomic_store(&place.own, NULL);
    atomic_store(&place.guest, NULL);
    memset((void *)place.requests, 0, sizeof place.requests);
}

void mt_cupti_slot_set_own(mt_cupti_callback *callback)
{
    atomic_store(&place.own, callback);
}

static struct guest *find_guest(mt_cupti_callback *callback, void *user)
{
    struct guest *guest = place.guests;
    while (guest && (guest->callback != callback || guest->user != user))
        guest = guest->next;
    if (!guest && (guest = malloc(sizeof *guest)) != NULL) {
        *guest = (struct guest){callback, user, place.guests};
        place.guests = guest;
    }
    return guest;
}

static bool cupti_slot_set_guest(mt_cupti_callback *callback, void *user)
{
    struct guest *guest = callback ? find_guest(callback, user) : NULL;
    if (guest || !callback)
        atomic_store(&place.guest, guest);
    return guest || !callback;
}

void *mt_cupti_slot_subscriber(void)
{
    return atomic_load(&place.subscriber);
}

static bool cupti_slot_has(enum mt_cupti_side side)
{
    return side == MT_CUPTI_OWN ? atomic_load(&place.own) != NULL
                                : atomic_load(&place.guest) != NULL;
}

void mt_cupti_slot_forked(void)
{
    atomic_store(&place.own, NULL);
    has_claim = false;
    atomic_flag_clear(&cupti_slot_claimed);
}

/* Returns NULL for callbacks that only a guest can want; CUPTI itself stores these. */
static _Atomic uint8_t *requests_of(uint32_t domain, uint32_t cbid)
{
    if (cbid >= CBIDS)
        return NULL;
    switch (domain) {
    case MT_CUPTI_DRIVER: return &place.requests[0][cbid];
    case MT_CUPTI_RESOURCE: return &place.requests[1][cbid];
    case MT_CUPTI_STATE: return &place.requests[2][cbid];
    default: return NULL;
    }
}

/* True if the request is stored but not passed to CUPTI (see above). */
static bool is_no_call(uint32_t cbid)
{
    return cbid == 0;
}

/* Enables the callback in CUPTI if one of the sides wants it, otherwise disables it. Repeats this
 * if the requests changed meanwhile. */
static int settle(const _Atomic uint8_t *requests, uint32_t domain, uint32_t cbid)
{
    void *subscriber = mt_cupti_slot_subscriber();
    bool enable;
    int result;
    do {
        enable = atomic_load(requests) != 0;
        result = place.library.enable(enable, subscriber, domain, cbid);
    } while (result == MT_CUPTI_SUCCESS && enable != (atomic_load(requests) != 0));
    return result;
}

static uint8_t note(_Atomic uint8_t *requests, enum mt_cupti_side side, bool enable)
{
    return enable ? atomic_fetch_or(requests, (uint8_t)side)
                  : atomic_fetch_and(requests, (uint8_t) ~(unsigned)side);
}

int mt_cupti_slot_request(enum mt_cupti_side side, bool enable, uint32_t domain, uint32_t cbid)
{
    _Atomic uint8_t *requests = requests_of(domain, cbid);
    if (!requests)
        return place.library.enable(enable, mt_cupti_slot_subscriber(), domain, cbid);
    uint8_t before = note(requests, side, enable);
    if (is_no_call(cbid))
        return MT_CUPTI_SUCCESS;
    int result = settle(requests, domain, cbid);
    if (result != MT_CUPTI_SUCCESS)
        (void)note(requests, side, before & side); /* restore */
    return result;
}

/* Succeeds if any callback succeeds, because not all numbers below CBIDS are callbacks. */
static int request_each(enum mt_cupti_side side, bool enable, uint32_t domain)
{
    int result = MT_CUPTI_INVALID_PARAMETER;
    for (uint32_t cbid = 0; cbid < CBIDS; cbid++)
        if (mt_cupti_slot_request(side, enable, domain, cbid) == MT_CUPTI_SUCCESS)
            result = MT_CUPTI_SUCCESS;
    return result;
}

static int cupti_slot_request_domain(enum mt_cupti_side side, bool enable, uint32_t domain)
{
    if (requests_of(domain, 0))
        return request_each(side, enable, domain);
    if (!place.library.enable_domain)
        return MT_CUPTI_NOT_INITIALIZED;
    return place.library.enable_domain(enable, mt_cupti_slot_subscriber(), domain);
}

static int cupti_slot_request_all(enum mt_cupti_side side, bool enable)
{
    for (uint32_t domain = 1; domain < DOMAINS; domain++)
        if (cupti_slot_request_domain(side, enable, domain) == MT_CUPTI_NOT_INITIALIZED)
            return MT_CUPTI_NOT_INITIALIZED;
    return MT_CUPTI_SUCCESS; /* there are fewer domains, which is not an error */
}

static int cupti_slot_state(enum mt_cupti_side side, uint32_t *enabled, uint32_t domain,
                            uint32_t cbid)
{
    _Atomic uint8_t *requests = requests_of(domain, cbid);
    if (!place.library.state)
        return MT_CUPTI_NOT_INITIALIZED;
    int result = place.library.state(enabled, mt_cupti_slot_subscriber(), domain, cbid);
    if (result == MT_CUPTI_SUCCESS && requests &&
        (is_no_call(cbid) || (atomic_load(requests) & ~(unsigned)side)))
        *enabled = (atomic_load(requests) & side) != 0;
    return result;
}

/* Calls each side that enabled the callback. The guest also gets callbacks that neither side
 * enabled here: it must have enabled them in CUPTI directly. The collector comes first, because the
 * guest may detach CUPTI and `data` is not used after that. Driver calls that the collector makes
 * itself in its callback are reported to neither. */
void mt_cupti_slot_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    mt_cupti_callback *own = atomic_load_explicit(&place.own, memory_order_acquire);
    const _Atomic uint8_t *requests = requests_of(domain, cbid);
    unsigned sides = requests ? atomic_load_explicit(requests, memory_order_relaxed) : 0;
    (void)user;
    if (is_telling)
        return;
    if (own && (sides & MT_CUPTI_OWN)) {
        is_telling = true;
        own(NULL, domain, cbid, data);
        is_telling = false;
    }
    const struct guest *guest = atomic_load_explicit(&place.guest, memory_order_acquire);
    if (guest && sides != MT_CUPTI_OWN)
        guest->callback(guest->user, domain, cbid, data);
}

/* Shares CUPTI's single subscription with other code of the process. These functions replace those
 * of CUPTI that create and use a subscriber. Code that is linked to CUPTI (such as torch.profiler)
 * calls them, because this library is preloaded. Code that gets the functions from dlsym calls
 * CUPTI itself.
 *
 * A guest gets everything that CUPTI provides: its handle, its results, its callbacks with their
 * data. It is served while memtrace records. Otherwise, and for a second guest or another copy of
 * CUPTI, calls go directly to CUPTI. */

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
    return cupti_slot_has(MT_CUPTI_GUEST);
}

struct request {
    void **subscriber;
    mt_cupti_callback *callback;
    void *user;
    struct mt_cupti_subscriber_params *params;
    bool is_v2;
    void *function; /* CUPTI's */
};

static bool records(void)
{
    return mt_recorder_settings->asked && strcmp(mt_recorder_settings->cupti, "none") != 0;
}

static int ask(const struct request *request);

static bool knows_several(const struct mt_cupti_library *library)
{
    uint32_t version = 0;
    return library->version(&version) == 0 && version >= MT_CUPTI_SEVERAL_SINCE;
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
    if (!cupti_slot_set_guest(request->callback, request->user))
        return MT_CUPTI_OUT_OF_MEMORY;
    if (request->params && request->params->oldSubscriberName && request->params->oldSubscriberSize)
        request->params->oldSubscriberName[0] = 0; /* no earlier subscriber to name */
    *request->subscriber = mt_cupti_slot_subscriber();
    return MT_CUPTI_SUCCESS;
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
    if (!cupti_slot_set_guest(request->callback, request->user))
        return MT_CUPTI_OUT_OF_MEMORY;
    int result = ask(&ours);
    if (result == MT_CUPTI_SUCCESS)
        mt_cupti_slot_hold(library, *request->subscriber);
    else
        (void)cupti_slot_set_guest(NULL, NULL);
    return result;
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

static int subscribe_guest(const struct request *request)
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

int cuptiSubscribe(void **subscriber, mt_cupti_callback *callback, void *user)
{
    struct request request = {.subscriber = subscriber,
                              .callback = callback,
                              .user = user,
                              .function = behind("cuptiSubscribe", CALLER)};
    return subscribe_guest(&request);
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
    return subscribe_guest(&request);
}

/* The handle is that of the place. It belongs to the guest while there is one. */
static bool is_shared(const void *subscriber)
{
    return subscriber && subscriber == mt_cupti_slot_subscriber();
}

static void drop_guest(void)
{
    (void)cupti_slot_set_guest(NULL, NULL);
    (void)cupti_slot_request_all(MT_CUPTI_GUEST, false);
}

static int leave(void *subscriber)
{
    const struct mt_cupti_library *library = mt_cupti_slot_library();
    int result = MT_CUPTI_SUCCESS;
    bool claimed = mt_cupti_slot_claim();
    if (cupti_slot_has(MT_CUPTI_OWN)) {
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
    if (cupti_slot_has(MT_CUPTI_OWN)) {
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
        return has_guest() ? cupti_slot_request_domain(MT_CUPTI_GUEST, enable, domain)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiEnableDomain", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enable, subscriber, domain) : MT_CUPTI_NOT_INITIALIZED;
}

int cuptiEnableAllDomains(uint32_t enable, void *subscriber)
{
    int (*original)(uint32_t, void *);
    if (is_shared(subscriber))
        return has_guest() ? cupti_slot_request_all(MT_CUPTI_GUEST, enable)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiEnableAllDomains", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enable, subscriber) : MT_CUPTI_NOT_INITIALIZED;
}

int cuptiGetCallbackState(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t cbid)
{
    int (*original)(uint32_t *, void *, uint32_t, uint32_t);
    if (is_shared(subscriber))
        return has_guest() ? cupti_slot_state(MT_CUPTI_GUEST, enabled, domain, cbid)
                           : MT_CUPTI_INVALID_PARAMETER;
    void *function = behind("cuptiGetCallbackState", CALLER);
    memcpy(&original, &function, sizeof function);
    return function ? original(enabled, subscriber, domain, cbid) : MT_CUPTI_NOT_INITIALIZED;
}
