/* The interface between the simulated driver (libcuda.so.1) and the simulated CUPTI
 * (libcupti.so.13), and declarations shared by the files of libcuda.so.1.
 *
 * The simulated driver has devices whose memory is only address space: device allocations cannot be
 * accessed (host memory is real). It counts physical memory in pages of 2 MiB, so small allocations
 * share a page, and it refuses allocations that do not fit. Environment variables:
 *   MEMTRACE_SIMULATED_MEMORY   bytes of each device (default 80 GiB)
 *   MEMTRACE_SIMULATED_DEVICE   the card, by its name in base/cards/cards.h (default H200)
 *   MEMTRACE_SIMULATED_DEVICES  1 to 8 (default 1)
 *   MEMTRACE_SIMULATED_MIG      the devices are MIG instances of this profile ("1g.18gb")
 *   MEMTRACE_SIMULATED_CONTEXT  bytes that a context takes (default 400 MiB) */
#ifndef MT_SIMULATED_DRIVER_H
#define MT_SIMULATED_DRIVER_H

#include <stdbool.h>

#include "cuda_api.h"

#define SD_EXPORT       __attribute__((visibility("default")))
#define SD_PAGE         (UINT64_C(2) << 20)
#define SD_DEVICES_MAX  8
#define SD_CONTEXTS_MAX 16

enum sd_site { SD_ENTER, SD_EXIT };

struct sd_call {
    enum sd_site site;
    unsigned cbid;
    const char *name;
    const void *params;
    CUresult result;
    CUcontext context;
    unsigned context_uid, correlation_id;
    uint64_t correlation_data;
};

enum sd_resource_kind {
    SD_CONTEXT_CREATED = 1,
    SD_CONTEXT_DESTROY_STARTING = 2,
    SD_STREAM_CREATED = 3,
    SD_STREAM_DESTROY_STARTING = 4,
    SD_INIT_FINISHED = 5,
    SD_MODULE_LOADED = 6,
    SD_MODULE_UNLOAD_STARTING = 7,
    SD_GRAPHNODE_CREATED = 13,
    SD_GRAPHEXEC_CREATED = 18,
    SD_GRAPHEXEC_DESTROY_STARTING = 19
};

struct sd_tool {
    const char *name; /* name of the tool in the only slot */
    void (*call)(struct sd_call *call);
    void (*resource)(enum sd_resource_kind kind, CUcontext context, CUstream stream,
                     const void *descriptor);
};

/* Exported by libcuda.so.1. memtrace_simulated_attach registers the tool and returns NULL. If
 * another tool is already registered, it returns the name of that tool and changes nothing. */
const char *memtrace_simulated_attach(const struct sd_tool *tool);
void memtrace_simulated_detach(const struct sd_tool *tool);
unsigned memtrace_simulated_context_uid(CUcontext context);
/* Returns the used bytes of a device, including contexts. For libnvidia-ml.so.1. */
uint64_t memtrace_simulated_used_bytes(int device);

/* The descriptor of graph events, as CUPTI lays it out. */
struct sd_graph_data {
    CUgraph graph, original_graph;
    CUgraphNode node, original_node;
    CUgraphNodeType node_type;
    CUgraphNode dependency;
    CUgraphExec exec;
};

enum sd_cbid {
#define CBID(number, name) SD_CBID_##name = number,
#include "driver_cbids.def"
#undef CBID
};

void sd_enter(struct sd_call *call, unsigned cbid, const char *name, const void *params);
CUresult sd_exit(struct sd_call *call, CUresult result);
void sd_tell(enum sd_resource_kind kind, CUcontext context, CUstream stream,
             const void *descriptor);

/* The body of an entry point. `params` is a local struct with the arguments in order, and
 * `expression` does the work. */
#define SD_CALL(name, params, expression)                                                          \
    do {                                                                                           \
        struct sd_call sd_call_;                                                                   \
        sd_enter(&sd_call_, SD_CBID_##name, #name, &(params));                                     \
        return sd_exit(&sd_call_, expression);                                                     \
    } while (0)

/* An entry point: SD_ENTRY2(cuMemUnmap, CUdeviceptr, ptr, size_t, size, unmap(ptr, size)) has two
 * arguments, each a type and a name, and `work` does the work. */
#define SD_LIST(...) __VA_ARGS__
#define SD_ENTRY(name, arguments, members, values, work)                                           \
    SD_EXPORT CUresult name arguments                                                              \
    {                                                                                              \
        struct {                                                                                   \
            SD_LIST members                                                                        \
        } params = {SD_LIST values};                                                               \
        SD_CALL(name, params, work);                                                               \
    }
#define SD_ENTRY1(name, t1, a1, work) SD_ENTRY(name, (t1 a1), (t1 a1;), (a1), work)
#define SD_ENTRY2(name, t1, a1, t2, a2, work)                                                      \
    SD_ENTRY(name, (t1 a1, t2 a2), (t1 a1; t2 a2;), (a1, a2), work)
#define SD_ENTRY3(name, t1, a1, t2, a2, t3, a3, work)                                              \
    SD_ENTRY(name, (t1 a1, t2 a2, t3 a3), (t1 a1; t2 a2; t3 a3;), (a1, a2, a3), work)
#define SD_ENTRY4(name, t1, a1, t2, a2, t3, a3, t4, a4, work)                                      \
    SD_ENTRY(name, (t1 a1, t2 a2, t3 a3, t4 a4), (t1 a1; t2 a2; t3 a3; t4 a4;), (a1, a2, a3, a4),  \
             work)
#define SD_ENTRY5(name, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, work)                              \
    SD_ENTRY(name, (t1 a1, t2 a2, t3 a3, t4 a4, t5 a5), (t1 a1; t2 a2; t3 a3; t4 a4; t5 a5;),      \
             (a1, a2, a3, a4, a5), work)
#define SD_ENTRY6(name, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, work)                      \
    SD_ENTRY(name, (t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6),                                     \
             (t1 a1; t2 a2; t3 a3; t4 a4; t5 a5; t6 a6;), (a1, a2, a3, a4, a5, a6), work)

void sd_lock(void);
void sd_unlock(void);

struct CUctx_st {
    int device;
    unsigned uid, references;
    bool alive;
    CUresult sticky; /* an error that every call returns until the context ends */
};

/* Returns CUDA_SUCCESS if the driver was initialized in this process. An initialization in the
 * parent before a fork does not count. */
CUresult sd_initialized(void);
/* Returns true on the first call in the process. The caller holds the lock. */
bool sd_begin(void);
/* Like sd_initialized, but also requires a usable current context and sets *context to it. */
CUresult sd_current(CUcontext *context);
CUcontext sd_current_or_null(void);
CUresult sd_push(CUcontext context);
/* Pops `context`, which is being destroyed, if it is current. */
void sd_forget_current(CUcontext context);
bool sd_is_device(CUdevice device);

enum sd_kind {
    SD_LINEAR,   /* freed with cuMemFree; also managed and mapped external memory */
    SD_POOLED,   /* freed with cuMemFree or cuMemFreeAsync */
    SD_GRAPHED,  /* the address that a memory node of a graph has */
    SD_RESERVED, /* address range */
    SD_MAPPING,  /* physical memory that is mapped into an address range */
    SD_ARRAY,    /* addr is the handle */
    SD_MIPMAPPED,
    SD_HOST,
    SD_REGISTERED,
    SD_OPENED, /* memory of another process */
    SD_CONTEXT
};

struct sd_block {
    uint64_t addr, bytes;
    uint64_t physical; /* physical bytes that the block has in addition to pages */
    enum sd_kind kind;
    int device;
    bool paged; /* it takes pages of the device */
    CUcontext context;
    void *owner; /* pool, physical memory */
    struct sd_block *next;
};

void sd_memory_init(int devices);
uint64_t sd_memory_total(int device);
uint64_t sd_memory_used(int device);

/* Takes physical memory that has no address. Returns false if it does not fit. */
bool sd_take(int device, uint64_t bytes);
void sd_give(int device, uint64_t bytes);

/* Adds a block with a new address in the address space of the device (aligned to 512 bytes, or
 * to 2 MiB if it is large), and sets *addr. If `paged` is set, the block takes physical pages. */
CUresult sd_place(const struct sd_block *wanted, uint64_t *addr);
/* Backs a placed block with pages, or removes them. */
CUresult sd_back(struct sd_block *block);
void sd_unback(struct sd_block *block);
/* Adds a block that already has an address. Returns false if memory runs out. */
bool sd_note(const struct sd_block *block);
struct sd_block *sd_find(uint64_t addr, enum sd_kind kind);
struct sd_block *sd_find_around(uint64_t addr);
/* The same in pinned and registered memory of the host. */
struct sd_block *sd_find_host_around(uint64_t addr);
/* Removes a block and returns its memory. */
void sd_drop(struct sd_block *block);
void sd_drop_context(CUcontext context);

struct CUmemPoolHandle_st {
    int device;
    uint64_t used, threshold;
    bool imported;
};
void sd_pools_init(int devices);

struct CUstream_st {
    CUcontext context;
    CUgraph capture; /* NULL: not capturing */
};
/* Adds a memory node to a graph. For an allocation node, sets *addr. */
CUresult sd_add_memory_node(CUgraph graph, CUgraphNodeType type, uint64_t bytes, uint64_t *addr,
                            CUgraphNode *node);

#endif
