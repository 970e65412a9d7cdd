/* The part of CUPTI's and the CUDA driver's binary interface that the collector reads, declared
 * here so that no vendor header is needed. Fields have the vendor's names; tests/cupti_headers
 * compares every offset, size and number with the headers of CUPTI 11 to 13. Handles are integers
 * and are never dereferenced. */
#ifndef MT_INJECT_CUPTI_ABI_H
#define MT_INJECT_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { MT_CUPTI_DRIVER = 1, MT_CUPTI_RESOURCE = 3, MT_CUPTI_STATE = 6 }; /* domains */

enum { MT_CUPTI_CONTEXT_CREATED = 1, MT_CUPTI_CONTEXT_DESTROY_STARTING = 2 }; /* of RESOURCE */

enum { MT_CUPTI_FATAL_ERROR = 1 }; /* of STATE */

enum { MT_CUPTI_ENTER = 0, MT_CUPTI_EXIT = 1 };

enum {
    MT_CUPTI_SUCCESS = 0,
    MT_CUPTI_INVALID_PARAMETER = 1,
    MT_CUPTI_OUT_OF_MEMORY = 8,
    MT_CUPTI_NOT_INITIALIZED = 15,
    MT_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

/* Since this version CUPTI accepts several subscribers, if all of them allow it. */
enum { MT_CUPTI_SEVERAL_SINCE = 130200 };

#define MT_CUPTI_OLD_NAME_BYTES 64u /* minimum room for the name of the current subscriber */

struct mt_cupti_callback_data {
    uint32_t callbackSite;
    const char *functionName;
    const void *functionParams;
    const uint32_t *functionReturnValue;
    const char *symbolName;
    const void *context;
    uint32_t contextUid;
    uint64_t *correlationData;
    uint32_t correlationId;
};

struct mt_cupti_resource_data {
    const void *context;
    const void *resourceHandle;
    const void *resourceDescriptor;
};

struct mt_cupti_state_data {
    uint32_t result;
    const char *message;
};

struct mt_cupti_subscriber_params {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName;
    size_t oldSubscriberSize;
    uint8_t allowMultipleSubscribers; /* since 13.2; before, structSize ends here */
    uint8_t padding[7];
};

typedef void mt_cupti_callback(void *user, uint32_t domain, uint32_t cbid, const void *data);

enum {
    MT_CU_LOCATION_DEVICE = 1,
    MT_CU_NODE_MEM_ALLOC = 10,
    MT_CU_NODE_MEM_FREE = 11,
    MT_CU_ARRAY_LAYERED = 1
};

struct mt_cu_location {
    uint32_t type;
    int32_t id;
};

struct mt_cu_allocation_prop {
    uint32_t type, requestedHandleTypes;
    struct mt_cu_location location;
};

struct mt_cu_pool_props {
    uint32_t allocType, handleTypes;
    struct mt_cu_location location;
    void *win32SecurityAttributes;
    uint8_t reserved[64]; /* maxSize, usage, reserved */
};

struct mt_cu_array_descriptor {
    size_t Width, Height;
    uint32_t Format, NumChannels;
};

struct mt_cu_array3d_descriptor {
    size_t Width, Height, Depth;
    uint32_t Format, NumChannels, Flags;
};

struct mt_cu_buffer_desc {
    unsigned long long offset, size;
};

struct mt_cu_mipmapped_desc {
    unsigned long long offset;
    struct mt_cu_array3d_descriptor arrayDesc;
    uint32_t numLevels;
};

struct mt_cu_mem_alloc_node {
    struct mt_cu_pool_props poolProps;
    const void *accessDescs;
    size_t accessDescCount, bytesize;
    uint64_t dptr;
};

struct mt_cu_node_params {
    uint32_t type;
    uint32_t reserved0[3];
    union {
        struct mt_cu_mem_alloc_node alloc;
        uint64_t free_dptr;
    };
};

struct mt_cu_alloc { /* for every call whose first two arguments are an address and a size */
    uint64_t *dptr;
    size_t bytesize;
};

struct mt_cu_alloc_stream {
    uint64_t *dptr;
    size_t bytesize;
    uint64_t hStream;
};

struct mt_cu_alloc_pool {
    uint64_t *dptr;
    size_t bytesize;
    uint64_t pool, hStream;
};

struct mt_cu_pitch {
    uint64_t *dptr;
    size_t *pPitch;
    size_t WidthInBytes, Height;
    uint32_t ElementSizeBytes;
};

struct mt_cu_handle { /* for every call whose first argument is the handle or address to release */
    uint64_t value;
};

struct mt_cu_free_stream {
    uint64_t dptr, hStream;
};

struct mt_cu_register {
    uint64_t p;
    size_t bytesize;
};

struct mt_cu_array_create {
    uint64_t *pHandle;
    const void *pAllocateArray;
};

struct mt_cu_mipmapped_create {
    uint64_t *pHandle;
    const struct mt_cu_array3d_descriptor *pMipmappedArrayDesc;
    uint32_t numMipmapLevels;
};

struct mt_cu_pool_create {
    uint64_t *pool;
    const struct mt_cu_pool_props *poolProps;
};

struct mt_cu_pool_get { /* of cuDeviceGetDefaultMemPool, cuDeviceGetMemPool */
    uint64_t *pool;
    int32_t dev;
};

struct mt_cu_pool_get_at { /* of cuMemGetDefaultMemPool, cuMemGetMemPool */
    uint64_t *pool;
    const struct mt_cu_location *location;
};

struct mt_cu_pool_set {
    int32_t dev;
    uint64_t pool;
};

struct mt_cu_pool_set_at { /* of cuMemSetMemPool */
    const struct mt_cu_location *location;
    uint32_t type;
    uint64_t pool;
};

struct mt_cu_pool_import {
    uint64_t *pool_out;
};

struct mt_cu_pointer_import {
    uint64_t *ptr_out;
    uint64_t pool;
};

struct mt_cu_range { /* of cuMemAddressFree, cuMemUnmap */
    uint64_t ptr;
    size_t size;
};

struct mt_cu_create {
    uint64_t *handle;
    size_t size;
    const struct mt_cu_allocation_prop *prop;
};

struct mt_cu_retain {
    uint64_t *handle;
    uint64_t addr;
};

struct mt_cu_map {
    uint64_t ptr;
    size_t size, offset;
    uint64_t handle;
};

struct mt_cu_import { /* handle of physical memory, pointer of IPC memory */
    uint64_t *out;
};

struct mt_cu_external_buffer {
    uint64_t *devPtr;
    uint64_t extMem;
    const struct mt_cu_buffer_desc *bufferDesc;
};

struct mt_cu_external_mipmapped {
    uint64_t *mipmap;
    uint64_t extMem;
    const struct mt_cu_mipmapped_desc *mipmapDesc;
};

struct mt_cu_graph_alloc {
    uint64_t *phGraphNode;
    uint64_t hGraph;
    const void *dependencies;
    size_t numDependencies;
    const struct mt_cu_mem_alloc_node *nodeParams;
};

struct mt_cu_graph_free {
    uint64_t *phGraphNode;
    uint64_t hGraph;
    const void *dependencies;
    size_t numDependencies;
    uint64_t dptr;
};

struct mt_cu_graph_node {
    uint64_t *phGraphNode;
    uint64_t hGraph;
    const void *dependencies;
    size_t numDependencies;
    const struct mt_cu_node_params *nodeParams;
};

struct mt_cu_graph_node_v2 {
    uint64_t *phGraphNode;
    uint64_t hGraph;
    const void *dependencies, *dependencyData;
    size_t numDependencies;
    const struct mt_cu_node_params *nodeParams;
};

struct mt_cu_context_create_v2 {
    uint64_t *pctx;
    uint32_t flags;
    int32_t dev;
};

struct mt_cu_context_create_v3 {
    uint64_t *pctx;
    const void *paramsArray;
    int32_t numParams;
    uint32_t flags;
    int32_t dev;
};

struct mt_cu_context_create_v4 {
    uint64_t *pctx;
    const void *ctxCreateParams;
    uint32_t flags;
    int32_t dev;
};

struct mt_cu_context_retain {
    uint64_t *pctx;
    int32_t dev;
};

struct mt_cu_green_create {
    uint64_t *phCtx;
    const void *desc;
    int32_t dev;
};

struct mt_cu_green_context {
    uint64_t *pContext;
    uint64_t hCtx;
};

struct mt_cu_device_total {
    size_t *bytes;
    int32_t dev;
};

struct mt_cu_device_name {
    const char *name;
    int32_t len;
    int32_t dev;
};

#endif
