/* CUPTI accepts one subscriber. Two sides share it: the collector, and a guest, which is any other
 * code in the process that subscribes to the same copy of CUPTI (cupti_guest.c). Each side has a
 * callback function and a set of callback ids that it enabled; CUPTI has the union of both sets
 * enabled. The collector receives only the callbacks that it enabled. The guest receives those that
 * it enabled, and also those that neither side enabled here, because the guest must have enabled
 * them in CUPTI directly. */
#ifndef MT_INJECT_CUPTI_SLOT_H
#define MT_INJECT_CUPTI_SLOT_H

#include <stdbool.h>

#include "cupti_library.h"

enum mt_cupti_side { MT_CUPTI_OWN = 1, MT_CUPTI_GUEST = 2 };

/* Claims the subscription before a change of subscribers. Waits for another thread for a bounded
 * time. Returns false if the wait timed out, or if this thread has already claimed it (CUPTI
 * called back, or started CUDA, during a subscription). */
bool mt_cupti_slot_claim(void);
void mt_cupti_slot_release(void);

/* The copy of CUPTI that is subscribed to with mt_cupti_slot_callback; NULL: none. */
const struct mt_cupti_library *mt_cupti_slot_library(void);

/* `subscriber` is the handle that `library` gave for mt_cupti_slot_callback. */
void mt_cupti_slot_hold(const struct mt_cupti_library *library, void *subscriber);

/* Call it when the handle is no longer valid. Removes both callbacks and all requests. */
void mt_cupti_slot_forget(void);

/* Set the callback function of a side; NULL removes it. The callback ids that the side enabled stay
 * enabled. mt_cupti_slot_set_guest returns false if memory runs out. */
void mt_cupti_slot_set_own(mt_cupti_callback *callback);
bool mt_cupti_slot_set_guest(mt_cupti_callback *callback, void *user);

mt_cupti_callback mt_cupti_slot_callback;

/* The handle; NULL: there is no subscription. */
void *mt_cupti_slot_subscriber(void);
bool mt_cupti_slot_has(enum mt_cupti_side side);

/* Enable or disable callback ids for a side, or query one. They return the result of CUPTI. What
 * one side disables stays enabled for the other. mt_cupti_slot_hold must have been called. They
 * take no lock, so callbacks may call them. */
int mt_cupti_slot_request(enum mt_cupti_side side, bool enable, uint32_t domain, uint32_t cbid);
int mt_cupti_slot_request_domain(enum mt_cupti_side side, bool enable, uint32_t domain);
int mt_cupti_slot_request_all(enum mt_cupti_side side, bool enable);
int mt_cupti_slot_state(enum mt_cupti_side side, uint32_t *enabled, uint32_t domain, uint32_t cbid);

/* Call it in a forked child. Removes the callback of the collector and any claim. The guest
 * stays, as it does in CUPTI. */
void mt_cupti_slot_forked(void);

#endif
