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

/* cupti_decoders.c: device and host memory, arrays */
mt_cupti_decoder mt_cupti_exit_alloc, mt_cupti_exit_pitch, mt_cupti_exit_managed;
mt_cupti_decoder mt_cupti_exit_host_alloc, mt_cupti_enter_host_free, mt_cupti_exit_register;
mt_cupti_decoder mt_cupti_exit_array, mt_cupti_exit_array3d, mt_cupti_enter_array_free;
mt_cupti_decoder mt_cupti_exit_mipmapped, mt_cupti_enter_mipmapped_free;

/* cupti_contexts.c: stream-ordered memory */
mt_cupti_decoder mt_cupti_exit_alloc_async, mt_cupti_exit_alloc_pool, mt_cupti_enter_free_async;
mt_cupti_decoder mt_cupti_exit_pool_create, mt_cupti_exit_pool_destroy, mt_cupti_exit_pool_import;
mt_cupti_decoder mt_cupti_exit_pool_default, mt_cupti_exit_pool_default_at;
mt_cupti_decoder mt_cupti_exit_pool_get, mt_cupti_exit_pool_get_at;
mt_cupti_decoder mt_cupti_exit_pool_set, mt_cupti_exit_pool_set_at;
mt_cupti_decoder mt_cupti_exit_pointer_import;

/* cupti_decoders.c: physical memory, address ranges, mappings */
mt_cupti_decoder mt_cupti_exit_reserve, mt_cupti_enter_address_free;
mt_cupti_decoder mt_cupti_exit_create, mt_cupti_exit_import, mt_cupti_exit_retain;
mt_cupti_decoder mt_cupti_exit_map, mt_cupti_enter_unmap;

/* cupti_decoders.c: other processes, other interfaces, graphs */
mt_cupti_decoder mt_cupti_exit_ipc_open, mt_cupti_enter_ipc_close;
mt_cupti_decoder mt_cupti_exit_external_buffer, mt_cupti_exit_external_mipmapped;
mt_cupti_decoder mt_cupti_exit_graph_alloc, mt_cupti_exit_graph_free;
mt_cupti_decoder mt_cupti_exit_graph_node, mt_cupti_exit_graph_node_v2;

/* cupti_contexts.c */
mt_cupti_decoder mt_cupti_enter_context_v2, mt_cupti_enter_context_v3, mt_cupti_enter_context_v4;
mt_cupti_decoder mt_cupti_enter_context_retain, mt_cupti_enter_green;
mt_cupti_decoder mt_cupti_exit_context, mt_cupti_exit_green_context;
mt_cupti_decoder mt_cupti_exit_device_total, mt_cupti_exit_device_name;

#endif
