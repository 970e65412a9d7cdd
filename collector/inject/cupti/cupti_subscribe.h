/* Subscribes to CUPTI and enables callbacks. */
#ifndef MT_INJECT_CUPTI_SUBSCRIBE_H
#define MT_INJECT_CUPTI_SUBSCRIBE_H

#include <stdbool.h>

#include "cupti_abi.h"

struct mt_cupti_subscription {
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

/* Searches for CUPTI (the setting `cupti` in settings.h), subscribes, and enables every entry point
 * of the table and the resource callbacks. Sets `place_of[cbid]` to the entry's index in the table
 * + 1; `places` is the length of that array. On failure returns false, and `refusal` is a sentence
 * for the user. */
bool mt_cupti_subscribe(mt_cupti_callback *callback, uint8_t *place_of, size_t places,
                        struct mt_cupti_subscription *subscription);

#endif
