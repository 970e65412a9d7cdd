/* Finds and loads CUPTI at run time: the copy that the process has already loaded, otherwise one
 * beside its CUDA libraries, otherwise the machine's. Nothing is linked. */
#ifndef MT_INJECT_CUPTI_LIBRARY_H
#define MT_INJECT_CUPTI_LIBRARY_H

#include <stdbool.h>

#include "cupti_abi.h"

struct mt_cupti_library {
    void *handle;
    char path[1024];
    int (*subscribe)(void **subscriber, mt_cupti_callback *callback, void *user);
    int (*subscribe_v2)(void **subscriber, mt_cupti_callback *callback, void *user,
                        struct mt_cupti_subscriber_params *params); /* NULL before 13.0 */
    int (*enable)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid);
    int (*name)(uint32_t domain, uint32_t cbid, const char **name);
    int (*version)(uint32_t *version);
    int (*result_string)(int result, const char **text);
    int (*device_id)(const void *context, uint32_t *device); /* may be NULL */
    /* used only by other subscribers (cupti_guest.c); may be NULL */
    int (*unsubscribe)(void *subscriber);
    int (*enable_domain)(uint32_t enable, void *subscriber, uint32_t domain);
    int (*state)(uint32_t *enabled, void *subscriber, uint32_t domain, uint32_t cbid);
    int (*disable_activity)(uint32_t kind);
    int (*finalize)(void);
};

/* Calls `try` with each library that can be loaded, best first, until it returns true. That library
 * stays loaded; the others are closed. `wanted`: the only path to try; empty: search. Returns false
 * if `try` accepted none; errno is then ENOMEM if the loader ran out of memory for one of them,
 * otherwise 0. Do not call it while you hold a lock. */
typedef bool mt_cupti_try(void *user, const struct mt_cupti_library *library);
bool mt_cupti_search(const char *wanted, mt_cupti_try *try, void *user);

/* Finds the copy of CUPTI that contains `function`, and keeps it loaded. Returns false if
 * `function` is not in such a library. */
bool mt_cupti_library_of(const void *function, struct mt_cupti_library *library);

/* Returns a function of a copy that the process has mapped, no matter how it was loaded. */
void *mt_cupti_mapped_symbol(const char *name);

#endif
