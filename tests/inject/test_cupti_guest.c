/* Two subscribers in one place. CUPTI is imitated: one or two copies of it, whose
 * subscriber the test calls. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cupti_slot.h"
#include "originals.h"
#include "recorded_events.h"

int cuptiSubscribe(void **subscriber, mt_cupti_callback *callback, void *user);
int cuptiSubscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
                      struct mt_cupti_subscriber_params *params);
int cuptiUnsubscribe(void *subscriber);
int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid);
int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
int cuptiEnableAllDomains(uint32_t enable, void *subscriber);
int cuptiGetCallbackState(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t cbid);
int cuptiFinalize(void);

enum { DRIVER = 1, RUNTIME = 2, RESOURCE = 3, DOMAINS = 7, CBIDS = 2100, ALLOC = 243, FREE = 245 };

static struct {
    mt_cupti_callback *callback;
    void *user;
    uint32_t version;
    bool several; /* takes a second one */
    bool absent;
    bool enabled[DOMAINS][CBIDS];
    unsigned asked, finalized, activities_ended, second;
    bool watch_alloc;    /* it may never be disabled */
    bool calls_back;     /* while it subscribes */
    bool claimed_inside; /* what that led to */
} cupti;

static char handle, second_handle, another_copy;

static int real_subscribe(void **subscriber, mt_cupti_callback *callback, void *user)
{
    cupti.asked++;
    if (cupti.calls_back)
        cupti.claimed_inside = mt_cupti_slot_claim();
    if (cupti.callback && !cupti.several)
        return MT_CUPTI_MULTIPLE_SUBSCRIBERS;
    *subscriber = cupti.callback ? &second_handle : &handle;
    cupti.second += cupti.callback != NULL;
    cupti.user = user;
    cupti.callback = callback;
    return 0;
}

static int real_subscribe_v2(void **subscriber, mt_cupti_callback *callback, void *user,
                             struct mt_cupti_subscriber_params *params)
{
    if (params && params->oldSubscriberName && cupti.callback)
        strcpy(params->oldSubscriberName, "CUPTI for memtrace");
    return real_subscribe(subscriber, callback, user);
}

static int real_unsubscribe(void *subscriber)
{
    assert_ptr_equal(subscriber, &handle);
    if (!cupti.callback)
        return MT_CUPTI_INVALID_PARAMETER;
    cupti.callback = NULL;
    memset(cupti.enabled, 0, sizeof cupti.enabled);
    return 0;
}

static int real_enable(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    if (subscriber != &handle || domain >= DOMAINS || !domain || cbid >= CBIDS - 1)
        return MT_CUPTI_INVALID_PARAMETER;
    cupti.enabled[domain][cbid] = enable;
    assert_true(!cupti.watch_alloc || cupti.enabled[DRIVER][ALLOC]);
    return 0;
}

/* Not to be used where we listen (cupti_slot.c). */
static int real_enable_domain(uint32_t enable, void *subscriber, uint32_t domain)
{
    assert_true(!cupti.watch_alloc || domain == RUNTIME || domain >= 4);
    if (subscriber != &handle || domain >= DOMAINS)
        return MT_CUPTI_INVALID_PARAMETER;
    for (uint32_t cbid = 1; cbid < CBIDS - 1; cbid++)
        (void)real_enable(enable, subscriber, domain, cbid);
    return 0;
}

static int real_enable_all(uint32_t enable, void *subscriber)
{
    for (uint32_t domain = 1; domain < DOMAINS; domain++)
        if (real_enable_domain(enable, subscriber, domain) != 0)
            return MT_CUPTI_INVALID_PARAMETER;
    return 0;
}

static int real_state(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t cbid)
{
    if (subscriber != &handle || domain >= DOMAINS || !domain || cbid >= CBIDS - 1)
        return MT_CUPTI_INVALID_PARAMETER;
    *enabled = cupti.enabled[domain][cbid];
    return 0;
}

static int real_disable_activity(uint32_t kind)
{
    cupti.activities_ended += kind == 8; /* CUPTI_ACTIVITY_KIND_KERNEL's neighbor */
    return kind < 55 ? 0 : 21;
}

static int real_finalize(void)
{
    cupti.finalized++;
    cupti.callback = NULL;
    return 0;
}

static int real_version(uint32_t *version)
{
    *version = cupti.version;
    return 0;
}

static const struct mt_cupti_library copy = {.path = "/lib/libcupti.so.13",
                                             .subscribe = real_subscribe,
                                             .subscribe_v2 = real_subscribe_v2,
                                             .unsubscribe = real_unsubscribe,
                                             .enable = real_enable,
                                             .enable_domain = real_enable_domain,
                                             .state = real_state,
                                             .version = real_version,
                                             .disable_activity = real_disable_activity,
                                             .finalize = real_finalize};

void *mt_original_for(const void *caller, const char *name)
{
    int (*const enable_all)(uint32_t, void *) = real_enable_all;
    const struct {
        const char *name;
        const void *function;
    } functions[] = {
        {"cuptiSubscribe", &copy.subscribe},        {"cuptiSubscribe_v2", &copy.subscribe_v2},
        {"cuptiUnsubscribe", &copy.unsubscribe},    {"cuptiEnableCallback", &copy.enable},
        {"cuptiEnableDomain", &copy.enable_domain}, {"cuptiEnableAllDomains", &enable_all},
        {"cuptiGetCallbackState", &copy.state},     {"cuptiFinalize", &copy.finalize}};
    void *function = NULL;
    assert_non_null(caller);
    errno = 1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!cupti.absent && strcmp(functions[i].name, name) == 0)
            memcpy(&function, functions[i].function, sizeof function);
    return function;
}

void *mt_cupti_mapped_symbol(const char *name)
{
    (void)name;
    return NULL;
}

bool mt_cupti_library_of(const void *function, struct mt_cupti_library *library)
{
    assert_non_null(function);
    *library = copy;
    library->handle = dlopen(NULL, RTLD_NOW);
    return true;
}

static struct heard {
    unsigned count;
    uint32_t domain, cbid;
    void *user;
    const void *data;
} own, guest;

static void *subscriber;

static void own_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    own = (struct heard){own.count + 1, domain, cbid, user, data};
    if (cbid == ALLOC) /* what we ask the driver for ourselves */
        cupti.callback(cupti.user, DRIVER, 7, data);
}

static void guest_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    guest = (struct heard){guest.count + 1, domain, cbid, user, data};
}

static int come(void)
{
    return cuptiSubscribe(&subscriber, guest_callback, &guest);
}

/* As cupti_subscribe.c does it. */
static void own_comes(void)
{
    void *given = NULL;
    assert_true(mt_cupti_slot_claim());
    if (!mt_cupti_slot_library()) {
        assert_int_equal(copy.subscribe(&given, mt_cupti_slot_callback, NULL), 0);
        mt_cupti_slot_hold(&copy, given);
    }
    mt_cupti_slot_set_own(own_callback);
    mt_cupti_slot_release();
    assert_int_equal(mt_cupti_slot_request(MT_CUPTI_OWN, true, DRIVER, ALLOC), 0);
    assert_int_equal(mt_cupti_slot_request(MT_CUPTI_OWN, true, DRIVER, FREE), 0);
    cupti.watch_alloc = true;
}

/* Which of the two received CUPTI's callback? 1: the collector, 2: the guest. */
static int happens(uint32_t domain, uint32_t cbid)
{
    static const char data;
    own.count = guest.count = 0;
    if (cupti.callback && cupti.enabled[domain][cbid])
        cupti.callback(cupti.user, domain, cbid, &data);
    assert_true(own.count <= 1 && guest.count <= 1);
    if (guest.count) {
        assert_ptr_equal(guest.user, &guest);
        assert_ptr_equal(guest.data, &data);
        assert_int_equal(guest.domain, domain);
        assert_int_equal(guest.cbid, cbid);
    }
    return (int)(own.count + 2 * guest.count);
}

static uint32_t state_of(uint32_t domain, uint32_t cbid)
{
    uint32_t enabled = 77;
    assert_int_equal(cuptiGetCallbackState(&enabled, subscriber, domain, cbid), 0);
    return enabled;
}

static int set_up(void **unused)
{
    (void)unused;
    mt_cupti_slot_forget();
    memset(&cupti, 0, sizeof cupti);
    memset(&recorded_settings.cupti, 0, sizeof recorded_settings.cupti);
    recorded_settings.asked = true;
    cupti.version = 130000;
    subscriber = NULL;
    errno = 0;
    return 0;
}

TEST_WITH(test_guest_second, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(errno, 0);
    assert_ptr_equal(subscriber, &handle);
    assert_int_equal(cupti.asked, 1);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, ALLOC), 0);
    assert_int_equal(cuptiEnableCallback(1, subscriber, RESOURCE, 1), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 3);
    assert_int_equal(happens(DRIVER, FREE), 1);
    assert_int_equal(happens(RESOURCE, 1), 2);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
    assert_false(cupti.enabled[RESOURCE][1]);
    assert_non_null(cupti.callback);
}

TEST_WITH(test_guest_first, set_up, NULL)
{
    assert_int_equal(come(), 0);
    assert_ptr_equal(subscriber, &handle);
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, FREE), 0);
    assert_int_equal(happens(DRIVER, FREE), 2);
    own_comes();
    assert_int_equal(cupti.asked, 1);
    assert_int_equal(happens(DRIVER, FREE), 3);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
    assert_int_equal(state_of(DRIVER, ALLOC), 0);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_int_equal(happens(DRIVER, FREE), 1);
}

TEST_WITH(test_guest_alone, set_up, NULL)
{
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiEnableAllDomains(1, subscriber), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 2);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_null(cupti.callback);
    assert_null(mt_cupti_slot_subscriber());
    assert_int_equal(cuptiUnsubscribe(subscriber), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(come(), 0); /* and again, with nothing left of before */
    assert_int_equal(state_of(DRIVER, ALLOC), 0);
}

/* A guest that has left cannot reach what is ours by its old handle. */
TEST_WITH(test_old_handle, set_up, NULL)
{
    uint32_t enabled;
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_int_equal(cuptiEnableCallback(0, subscriber, DRIVER, ALLOC), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableDomain(0, subscriber, DRIVER), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableAllDomains(0, subscriber), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiGetCallbackState(&enabled, subscriber, DRIVER, ALLOC),
                     MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
}

TEST_WITH(test_second_guest_is_refused_by_cupti, set_up, NULL)
{
    char holder[64] = "";
    struct mt_cupti_subscriber_params params = {.structSize = 32, .oldSubscriberName = holder};
    void *second = NULL;
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiSubscribe_v2(&second, guest_callback, NULL, &params),
                     MT_CUPTI_MULTIPLE_SUBSCRIBERS);
    assert_string_equal(holder, "CUPTI for memtrace");
    assert_null(second);
}

TEST_WITH(test_parameters, set_up, NULL)
{
    char holder[64] = "?";
    struct mt_cupti_subscriber_params params = {.oldSubscriberName = holder,
                                                .oldSubscriberSize = sizeof holder};
    own_comes();
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, NULL, &params),
                     MT_CUPTI_INVALID_PARAMETER);
    params.structSize = 32;
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, &guest, &params), 0);
    assert_string_equal(holder, "");
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, FREE), 0);
    assert_int_equal(happens(DRIVER, FREE), 3);
}

/* CUPTI calls back, or starts CUDA, before it has subscribed. */
TEST_WITH(test_claim_is_not_nested, set_up, NULL)
{
    cupti.calls_back = cupti.claimed_inside = true;
    assert_int_equal(come(), 0);
    assert_false(cupti.claimed_inside);
    cupti.calls_back = false;
    own_comes();
}

TEST_WITH(test_straight_through, set_up, NULL)
{
    for (int why = 0; why < 3; why++) {
        set_up(NULL);
        recorded_settings.asked = why != 0;
        if (why == 1)
            strcpy(recorded_settings.cupti, "none");
        if (why == 2) { /* we are in another copy */
            struct mt_cupti_library other = copy;
            other.subscribe = NULL;
            mt_cupti_slot_hold(&other, &another_copy);
        }
        assert_int_equal(come(), 0);
        assert_ptr_equal(cupti.callback, guest_callback);
        assert_ptr_equal(cupti.user, &guest);
        assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, ALLOC), 0);
        assert_int_equal(state_of(DRIVER, ALLOC), 1);
        assert_int_equal(cuptiEnableAllDomains(1, subscriber), 0);
        assert_int_equal(cuptiEnableDomain(0, subscriber, DRIVER), 0);
        assert_int_equal(state_of(DRIVER, ALLOC), 0);
        assert_int_equal(cuptiUnsubscribe(subscriber), 0);
        assert_int_equal(cuptiFinalize(), 0);
        assert_int_equal(cupti.finalized, 1);
    }
}

TEST_WITH(test_no_cupti, set_up, NULL)
{
    uint32_t enabled;
    cupti.absent = true;
    assert_int_equal(come(), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, NULL, NULL),
                     MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiUnsubscribe(&handle), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiEnableCallback(1, &handle, DRIVER, 1), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiEnableDomain(1, &handle, DRIVER), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiEnableAllDomains(1, &handle), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiGetCallbackState(&enabled, &handle, DRIVER, 1), MT_CUPTI_NOT_INITIALIZED);
    assert_int_equal(cuptiFinalize(), MT_CUPTI_NOT_INITIALIZED);
}

/* From 13.2 on CUPTI may take several; who did not ask for that shares. */
TEST_WITH(test_several, set_up, NULL)
{
    struct mt_cupti_subscriber_params params = {.structSize = sizeof params,
                                                .allowMultipleSubscribers = 1};
    cupti.version = 130200;
    own_comes();
    assert_int_equal(come(), 0);
    assert_ptr_equal(subscriber, &handle);
    assert_int_equal(cupti.asked, 2);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    cupti.several = true;
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, &guest, &params), 0);
    assert_ptr_equal(subscriber, &second_handle);

    set_up(NULL);
    cupti.version = 130200; /* comes first, and leaves room for us */
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, &guest, &params), 0);
    assert_null(mt_cupti_slot_subscriber());
    assert_ptr_equal(cupti.callback, guest_callback);

    set_up(NULL); /* the field means nothing to an older one */
    assert_int_equal(cuptiSubscribe_v2(&subscriber, guest_callback, &guest, &params), 0);
    assert_ptr_equal(mt_cupti_slot_subscriber(), &handle);
}

TEST_WITH(test_domains, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiEnableDomain(1, subscriber, DRIVER), 0);
    assert_int_equal(happens(DRIVER, 9), 2);
    assert_int_equal(happens(DRIVER, 2040), 2);
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, 2060), 0); /* behind the table */
    assert_int_equal(happens(DRIVER, 2060), 2);
    assert_int_equal(cuptiEnableDomain(1, subscriber, RUNTIME), 0);
    assert_int_equal(happens(RUNTIME, 5), 2);
    assert_int_equal(state_of(RUNTIME, 5), 1);
    assert_int_equal(happens(DRIVER, FREE), 3);
    assert_int_equal(cuptiEnableCallback(0, subscriber, DRIVER, FREE), 0);
    assert_int_equal(happens(DRIVER, FREE), 1);
    assert_int_equal(state_of(DRIVER, FREE), 0);
    assert_int_equal(state_of(DRIVER, ALLOC), 1);
    assert_int_equal(cuptiEnableDomain(0, subscriber, DRIVER), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
    assert_int_equal(happens(DRIVER, 9), 0);
    assert_int_equal(state_of(DRIVER, ALLOC), 0);
    assert_int_equal(cuptiEnableAllDomains(1, subscriber), 0);
    assert_int_equal(happens(RESOURCE, 5), 2);
    assert_int_equal(happens(DRIVER, ALLOC), 3);
    assert_int_equal(cuptiEnableAllDomains(0, subscriber), 0);
    assert_int_equal(happens(RESOURCE, 5), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
}

TEST_WITH(test_refused_requests, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiEnableCallback(1, subscriber, 0, 5), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableCallback(1, subscriber, 12, 5), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableCallback(1, subscriber, 1000, 5), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, 5000), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableDomain(1, subscriber, 12), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableDomain(1, subscriber, 1000), MT_CUPTI_INVALID_PARAMETER);
    assert_int_equal(mt_cupti_slot_request(MT_CUPTI_OWN, true, 12, 5), MT_CUPTI_INVALID_PARAMETER);
}

/* It enabled something by a function that it found itself. */
TEST_WITH(test_ways_that_we_do_not_see, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(copy.enable(1, subscriber, DRIVER, 9), 0);
    assert_int_equal(happens(DRIVER, 9), 2);
    assert_int_equal(state_of(DRIVER, 9), 1);
}

TEST_WITH(test_forked_child, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiEnableCallback(1, subscriber, DRIVER, FREE), 0);
    assert_true(mt_cupti_slot_claim());
    mt_cupti_slot_forked();
    cupti.watch_alloc = false;
    assert_int_equal(happens(DRIVER, FREE), 2);
    assert_int_equal(happens(DRIVER, ALLOC), 0);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_null(cupti.callback);
}

TEST_WITH(test_finalize, set_up, NULL)
{
    own_comes();
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiEnableCallback(1, subscriber, RESOURCE, 1), 0);
    assert_int_equal(cuptiFinalize(), 0);
    assert_int_equal(cupti.finalized, 0);
    assert_int_equal(cupti.activities_ended, 1);
    assert_int_equal(happens(RESOURCE, 1), 0);
    assert_int_equal(happens(DRIVER, ALLOC), 1);
    assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    assert_int_equal(come(), 0);
    assert_int_equal(state_of(RESOURCE, 1), 0);

    set_up(NULL); /* we are not there */
    assert_int_equal(come(), 0);
    assert_int_equal(cuptiFinalize(), 0);
    assert_int_equal(cupti.finalized, 1);
    assert_null(mt_cupti_slot_subscriber());
    own_comes();
    assert_int_equal(happens(DRIVER, ALLOC), 1);
}

static _Atomic bool stop;
static _Atomic unsigned told;

static void one(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    (void)domain, (void)cbid, (void)data;
    assert_int_equal((uintptr_t)user, 1);
    told++;
}

static void two(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    (void)domain, (void)cbid, (void)data;
    assert_int_equal((uintptr_t)user, 2);
    told++;
}

static _Atomic unsigned ours;

static void count(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    (void)user, (void)domain, (void)cbid, (void)data;
    ours++;
}

static void *call_back(void *calls)
{
    unsigned made = 0;
    for (; !stop || !told; made++)
        mt_cupti_slot_callback(NULL, DRIVER, made % 2 ? ALLOC : 9, NULL);
    *(unsigned *)calls = made / 2;
    return NULL;
}

/* Guests come and go while callbacks run: ours are all there, theirs go to who
 * subscribed. */
TEST_WITH(test_threads, set_up, NULL)
{
    enum { THREADS = 3, TURNS = 300 };
    pthread_t threads[THREADS];
    unsigned calls[THREADS], expected = 0;
    own_comes();
    mt_cupti_slot_set_own(count);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_back, &calls[i]);
    for (uintptr_t turn = 0; turn < TURNS; turn++) {
        assert_int_equal(cuptiSubscribe(&subscriber, turn % 2 ? two : one, (void *)(turn % 2 + 1)),
                         0);
        assert_int_equal(cuptiEnableDomain(1, subscriber, DRIVER), 0);
        assert_int_equal(cuptiUnsubscribe(subscriber), 0);
    }
    stop = true;
    assert_int_equal(cuptiSubscribe(&subscriber, one, (void *)1), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        expected += calls[i];
    }
    assert_int_equal(ours, expected);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
