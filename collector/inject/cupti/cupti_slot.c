/* See cupti_slot.h. Callbacks run while a guest subscribes or unsubscribes. They read two pointers
 * and a byte, and take no lock. The target of a guest pointer is never freed (a profiler that
 * subscribes again uses the same one).
 *
 * Wishes are stored for the domains that the collector uses. In these domains each callback is
 * enabled individually in CUPTI, never the whole domain: after a whole domain was enabled and then
 * disabled callback by callback, CUPTI 13.0 considers it still enabled, and enabling it again does
 * nothing. Callback 0, which is not a call, is never passed to CUPTI: disabling it mutes all others
 * of its domain. */
#include "cupti_slot.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "monotonic_clock.h"

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

static atomic_flag claimed = ATOMIC_FLAG_INIT;
static __thread bool has_claim, is_telling;

bool mt_cupti_slot_claim(void)
{
    uint64_t start_ns = mt_now_ns();
    if (has_claim)
        return false;
    while (atomic_flag_test_and_set(&claimed)) {
        if (mt_now_ns() - start_ns > MAX_WAIT_NS)
            return false;
        sched_yield();
    }
    has_claim = true;
    return true;
}

void mt_cupti_slot_release(void)
{
    has_claim = false;
    atomic_flag_clear(&claimed);
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

bool mt_cupti_slot_set_guest(mt_cupti_callback *callback, void *user)
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

bool mt_cupti_slot_has(enum mt_cupti_side side)
{
    return side == MT_CUPTI_OWN ? atomic_load(&place.own) != NULL
                                : atomic_load(&place.guest) != NULL;
}

void mt_cupti_slot_forked(void)
{
    atomic_store(&place.own, NULL);
    has_claim = false;
    atomic_flag_clear(&claimed);
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

int mt_cupti_slot_request_domain(enum mt_cupti_side side, bool enable, uint32_t domain)
{
    if (requests_of(domain, 0))
        return request_each(side, enable, domain);
    if (!place.library.enable_domain)
        return MT_CUPTI_NOT_INITIALIZED;
    return place.library.enable_domain(enable, mt_cupti_slot_subscriber(), domain);
}

int mt_cupti_slot_request_all(enum mt_cupti_side side, bool enable)
{
    for (uint32_t domain = 1; domain < DOMAINS; domain++)
        if (mt_cupti_slot_request_domain(side, enable, domain) == MT_CUPTI_NOT_INITIALIZED)
            return MT_CUPTI_NOT_INITIALIZED;
    return MT_CUPTI_SUCCESS; /* there are fewer domains, which is not an error */
}

int mt_cupti_slot_state(enum mt_cupti_side side, uint32_t *enabled, uint32_t domain, uint32_t cbid)
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
