/* Decoders of driver calls that CUPTI reports, and the table that assigns them to entry points.
 *
 * Frees are recorded at ENTER, before the driver can return the address to another thread, and
 * undone at EXIT if the call failed. Everything else is recorded at EXIT. */
#ifndef MT_INJECT_CUPTI_CALLS_H
#define MT_INJECT_CUPTI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_cupti_call {
    const void *params; /* the structure of cupti_abi.h for this entry point */
    uint64_t context;   /* current in the thread, 0 = none */
    uint32_t result;    /* EXIT: CUresult */
    bool captured;      /* EXIT: the call added a memory node to a graph */
};

typedef void mt_cupti_decoder(const struct mt_cupti_call *call);

/* Either decoder may be NULL. */
struct mt_cupti_entry {
    uint32_t cbid;
    const char *name;
    mt_cupti_decoder *at_enter, *at_exit;
};

extern const struct mt_cupti_entry mt_cupti_entries[];
extern const size_t mt_cupti_entry_count;

/* Entry points with this number or a higher one are newer than the table (CUPTI 13.4). */
#define MT_CUPTI_FIRST_NEWER_CBID 868u

/* Returns true if the name suggests that the entry point allocates or frees memory. For entry
 * points that are newer than the table. */
bool mt_cupti_name_is_of_memory(const char *name);

/* cupti_contexts.c: stream-ordered memory */
mt_cupti_decoder mt_cupti_exit_alloc_async, mt_cupti_exit_alloc_pool, mt_cupti_enter_free_async;
mt_cupti_decoder mt_cupti_exit_pool_create, mt_cupti_exit_pool_destroy, mt_cupti_exit_pool_import;
mt_cupti_decoder mt_cupti_exit_pool_default, mt_cupti_exit_pool_default_at;
mt_cupti_decoder mt_cupti_exit_pool_get, mt_cupti_exit_pool_get_at;
mt_cupti_decoder mt_cupti_exit_pool_set, mt_cupti_exit_pool_set_at;
mt_cupti_decoder mt_cupti_exit_pointer_import;

/* cupti_contexts.c: contexts and devices */
mt_cupti_decoder mt_cupti_enter_context_v2, mt_cupti_enter_context_v3, mt_cupti_enter_context_v4;
mt_cupti_decoder mt_cupti_enter_context_retain, mt_cupti_enter_green;
mt_cupti_decoder mt_cupti_exit_context, mt_cupti_exit_green_context;
mt_cupti_decoder mt_cupti_exit_device_total, mt_cupti_exit_device_name;

#endif
