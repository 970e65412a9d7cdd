/* See cupti_subscribe.h. Up to CUPTI 13.1 a process has one subscriber, and memtrace shares its
 * place (cupti_slot.h). Later versions allow several on request. */
#include "cupti_subscribe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cupti_calls.h"
#include "cupti_contexts.h"
#include "cupti_library.h"
#include "cupti_slot.h"
#include "settings.h"

struct attempt {
    mt_cupti_callback *callback;
    uint8_t *place_of;
    size_t places;
    struct mt_cupti_subscription *subscription;
    bool refused;
};

static void watch(const struct attempt *attempt, const struct mt_cupti_library *library,
                  size_t place)
{
    const struct mt_cupti_entry *entry = &mt_cupti_entries[place];
    struct mt_cupti_subscription *subscription = attempt->subscription;
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

static void look_for_newer(struct mt_cupti_subscription *subscription,
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

static int subscribe(const struct attempt *attempt, const struct mt_cupti_library *library,
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

/* Keeps the first reason, which is that of the best library. A reason that names another tool in
 * the place has priority. */
static void explain(struct attempt *attempt, const struct mt_cupti_library *library, int result,
                    const char *holder)
{
    struct mt_cupti_subscription *subscription = attempt->subscription;
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

/* Takes the place, or shares it with an earlier subscriber (cupti_guest.c). */
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
        result = subscribe(attempt, library, holder, &subscriber);
        if (result == MT_CUPTI_SUCCESS)
            mt_cupti_slot_hold(library, subscriber);
    }
    if (result == MT_CUPTI_SUCCESS)
        mt_cupti_slot_set_own(attempt->callback);
    mt_cupti_slot_release();
    return result;
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

bool mt_cupti_subscribe(mt_cupti_callback *callback, uint8_t *place_of, size_t places,
                        struct mt_cupti_subscription *subscription)
{
    struct attempt attempt = {callback, place_of, places, subscription, false};
    *subscription = (struct mt_cupti_subscription){.refusal = "no libcupti was found"};
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
