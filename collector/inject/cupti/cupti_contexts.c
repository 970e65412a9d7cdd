/* The contexts of the driver and its pools of stream-ordered memory, with the device of each.
 *
 * A call that creates a context names the device. CUPTI reports the new context during that call,
 * so the thread remembers the device. The table has few rows and is read without a lock. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_contexts.h"
#include "cupti_decoders.h"
#include "source_nvml.h"
#include "util.h"

/* Pools and the decoders of stream-ordered memory. An allocation that names no pool comes from the
 * current pool of its device. The default pool has no id of its own in the trace. */

enum { MAX_POOLS = 256, MAX_CONTEXTS = 128, MAX_DEVICES = 64 };

struct pool {
    uint64_t handle; /* 0: free */
    uint8_t device;
    bool on_host, is_default;
};

static struct pool pools[MAX_POOLS];
static unsigned pool_count;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t current[MAX_DEVICES]; /* 0: the default pool, or unknown */

void mt_cupti_pools_forget(void)
{
    pthread_mutex_init(&pool_lock, NULL);
    pool_count = 0;
    memset((void *)current, 0, sizeof current);
}

static struct pool *find_pool(uint64_t handle)
{
    for (unsigned i = 0; i < pool_count; i++)
        if (pools[i].handle == handle)
            return &pools[i];
    return NULL;
}

static void learn_pool(const struct pool *pool)
{
    if (!pool->handle)
        return;
    pthread_mutex_lock(&pool_lock);
    struct pool *row = find_pool(pool->handle);
    if (!row)
        row = find_pool(0);
    if (!row && pool_count < MAX_POOLS)
        row = &pools[pool_count++];
    if (row)
        *row = *pool;
    pthread_mutex_unlock(&pool_lock);
}

/* Returns the known facts about a pool; for an unknown pool, only its handle. */
static struct pool look_up(uint64_t handle)
{
    struct pool pool = {.handle = handle, .device = MT_CU_UNKNOWN_DEVICE};
    pthread_mutex_lock(&pool_lock);
    const struct pool *row = handle ? find_pool(handle) : NULL;
    if (row)
        pool = *row;
    pthread_mutex_unlock(&pool_lock);
    return pool;
}

static struct pool pool_at(uint64_t handle, const struct mt_cu_location *location)
{
    struct pool pool = {.handle = handle, .device = MT_CU_UNKNOWN_DEVICE};
    if (location && location->type == MT_CU_LOCATION_DEVICE && location->id >= 0 &&
        location->id < MAX_DEVICES)
        pool.device = (uint8_t)location->id;
    else if (location)
        pool.on_host = true;
    return pool;
}

static struct pool pool_of_device(uint64_t handle, int32_t device)
{
    struct mt_cu_location location = {MT_CU_LOCATION_DEVICE, device};
    return pool_at(handle, &location);
}

static void make_current(const struct pool *pool)
{
    if (pool->device < MAX_DEVICES)
        current[pool->device] = look_up(pool->handle).is_default ? 0 : pool->handle;
}

/* `bytes` 0: unknown. */
static void tell(const struct mt_cupti_call *call, const struct pool *pool, uint64_t addr,
                 size_t bytes, uint64_t stream)
{
    struct mt_cupti_live_block block = {.addr = addr,
                                        .size_bytes = bytes,
                                        .context = call->context,
                                        .space = MT_LIVE_DEVICE,
                                        .heap = pool->on_host ? MT_RAW_HOST : MT_RAW_ASYNC,
                                        .device = pool->device};
    if (call->captured)
        block.heap = MT_RAW_GRAPH;
    else if (pool->handle && !pool->is_default)
        block.pool = mt_collect_pool(pool->handle, 0);
    mt_cupti_record_alloc(call, &block, stream);
}

static void tell_from(const struct mt_cupti_call *call, const struct pool *pool, uint64_t stream)
{
    const struct mt_cu_alloc *params = call->params;
    if (call->result || !params->dptr)
        mt_cupti_record_failed(call, pool->on_host ? MT_RAW_HOST : MT_RAW_ASYNC, params->bytesize);
    else
        tell(call, pool, *params->dptr, params->bytesize, stream);
}

void mt_cupti_exit_alloc_async(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc_stream *params = call->params;
    uint8_t device = mt_cupti_device_of(call->context);
    struct pool pool = {.device = device};
    if (device < MAX_DEVICES && current[device])
        pool = look_up(current[device]);
    tell_from(call, &pool, params->hStream);
}

void mt_cupti_exit_alloc_pool(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc_pool *params = call->params;
    struct pool pool = look_up(params->pool);
    tell_from(call, &pool, params->hStream);
}

void mt_cupti_enter_free_async(const struct mt_cupti_call *call)
{
    const struct mt_cu_free_stream *params = call->params;
    (void)mt_cupti_free(MT_LIVE_DEVICE, params->dptr, params->hStream);
}

/* Memory from the pool of another process. Its size is unknown. */
void mt_cupti_exit_pointer_import(const struct mt_cupti_call *call)
{
    const struct mt_cu_pointer_import *params = call->params;
    if (call->result || !params->ptr_out)
        return;
    struct mt_cupti_live_block block = {.addr = *params->ptr_out,
                                        .context = call->context,
                                        .space = MT_LIVE_DEVICE,
                                        .heap = MT_RAW_IMPORTED,
                                        .device = look_up(params->pool).device};
    mt_cupti_record_alloc(call, &block, 0);
}

void mt_cupti_exit_pool_create(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_create *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool =
        pool_at(*params->pool, params->poolProps ? &params->poolProps->location : NULL);
    learn_pool(&pool);
}

void mt_cupti_exit_pool_import(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_import *params = call->params;
    if (call->result || !params->pool_out)
        return;
    struct pool pool = {.handle = *params->pool_out, .device = mt_cupti_device_of(call->context)};
    learn_pool(&pool);
}

void mt_cupti_exit_pool_destroy(const struct mt_cupti_call *call)
{
    uint64_t handle = ((const struct mt_cu_handle *)call->params)->value;
    if (call->result || !handle)
        return;
    pthread_mutex_lock(&pool_lock);
    struct pool *row = find_pool(handle);
    if (row)
        row->handle = 0;
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < MAX_DEVICES; i++)
        if (current[i] == handle) /* the driver returns to the default pool */
            current[i] = 0;
}

void mt_cupti_exit_pool_default(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_get *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool = pool_of_device(*params->pool, params->dev);
    pool.is_default = true;
    learn_pool(&pool);
}

void mt_cupti_exit_pool_default_at(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_get_at *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool = pool_at(*params->pool, params->location);
    pool.is_default = true;
    learn_pool(&pool);
}

/* The current pool is the default one unless another one was set before. */
static void see_current(const struct pool *pool)
{
    struct pool known = look_up(pool->handle);
    if (known.device != MT_CU_UNKNOWN_DEVICE || pool->device >= MAX_DEVICES)
        return;
    struct pool seen = *pool;
    seen.is_default = current[pool->device] == 0;
    learn_pool(&seen);
}

void mt_cupti_exit_pool_get(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_get *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool = pool_of_device(*params->pool, params->dev);
    see_current(&pool);
}

void mt_cupti_exit_pool_get_at(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_get_at *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool = pool_at(*params->pool, params->location);
    see_current(&pool);
}

void mt_cupti_exit_pool_set(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_set *params = call->params;
    if (call->result)
        return;
    struct pool pool = pool_of_device(params->pool, params->dev);
    make_current(&pool);
}

void mt_cupti_exit_pool_set_at(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_set_at *params = call->params;
    if (call->result)
        return;
    struct pool pool = pool_at(params->pool, params->location);
    make_current(&pool);
}

struct row {
    _Atomic uint64_t context; /* 0: free */
    _Atomic uint8_t device;
    _Atomic bool broken;
};

static struct row rows[MAX_CONTEXTS];
static _Atomic unsigned row_count; /* rows after it were never used */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int creating_on = -1; /* device of the current call of the thread */

static struct {
    uint64_t total_bytes;
    char name[64];
    bool told;
} devices[MAX_DEVICES]; /* what the driver returned to the program about its devices */

static int (*ask_device)(const void *context, uint32_t *device);

void mt_cupti_contexts_set_query(int (*device_id)(const void *context, uint32_t *device))
{
    ask_device = device_id;
}

static struct row *find(uint64_t context)
{
    unsigned count = row_count;
    for (unsigned i = 0; context && i < count; i++)
        if (rows[i].context == context)
            return &rows[i];
    return NULL;
}

uint8_t mt_cupti_device_of(uint64_t context)
{
    const struct row *row = find(context);
    return row ? row->device : MT_CU_UNKNOWN_DEVICE;
}

uint32_t mt_cupti_contexts_devices(void)
{
    unsigned count = row_count;
    uint32_t found = 0;

    for (unsigned i = 0; i < count; i++)
        if (rows[i].context && rows[i].device < 32)
            found |= 1u << rows[i].device;
    return found;
}

static uint8_t device_number(int device)
{
    return device < 0 || device >= (int)MT_CU_UNKNOWN_DEVICE ? MT_CU_UNKNOWN_DEVICE
                                                             : (uint8_t)device;
}

static struct row *free_row(void)
{
    for (unsigned i = 0; i < row_count; i++)
        if (rows[i].context == 0)
            return &rows[i];
    return row_count < MAX_CONTEXTS ? &rows[row_count] : NULL;
}

static void learn(uint64_t context, int device)
{
    if (!context)
        return;
    pthread_mutex_lock(&lock);
    struct row *row = find(context);
    if (!row && (row = free_row()) != NULL) {
        row->broken = false;
        row->device = MT_CU_UNKNOWN_DEVICE;
        row->context = context;
        if (row == &rows[row_count])
            row_count++;
    }
    if (row && device >= 0)
        row->device = device_number(device);
    pthread_mutex_unlock(&lock);
}

void mt_cupti_contexts_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    row_count = 0;
    memset((void *)rows, 0, sizeof rows);
    memset(devices, 0, sizeof devices);
    creating_on = -1;
}

static void emit_about(uint8_t kind, uint8_t device, const char *text)
{
    struct mt_raw_event event = {.kind = kind,
                                 .id = mt_collect_name(text, strlen(text)),
                                 .heap = MT_RAW_DRIVER,
                                 .device = device};
    mt_collect_emit(&event);
}

void mt_cupti_context_created(uint64_t context)
{
    int device = creating_on;
    uint32_t answer;
    if (device < 0 && ask_device && ask_device((const void *)(uintptr_t)context, &answer) == 0)
        device = answer < MT_CU_UNKNOWN_DEVICE ? (int)answer : -1;
    learn(context, device);
    emit_about(MT_EVENT_CONTEXT, mt_cupti_device_of(context), "CUDA context");
    mt_nvml_sample_soon(mt_cupti_device_of(context));
}

void mt_cupti_context_destroyed(uint64_t context)
{
    mt_cupti_free_all_of(context);
    emit_about(MT_EVENT_MARK, mt_cupti_device_of(context), "CUDA context destroyed");
    struct row *row = find(context);
    if (row)
        row->context = 0;
}

/* Errors that persist in a context until it is destroyed. */
static bool is_lasting(uint32_t result)
{
    static const uint16_t lasting[] = {214, 220, 226, 700, 702, 709, 710,
                                       714, 715, 716, 717, 718, 719, 721};
    for (size_t i = 0; i < MT_ARRAY_LEN(lasting); i++)
        if (result == lasting[i])
            return true;
    return false;
}

bool mt_cupti_is_broken(uint64_t context)
{
    const struct row *row = find(context);
    return row && row->broken;
}

void mt_cupti_see_result(const struct mt_cupti_call *call)
{
    struct row *row = find(call->context);
    char text[64];
    if (!row || row->broken || !is_lasting(call->result))
        return;
    row->broken = true;
    snprintf(text, sizeof text, "CUDA error %u: the context is broken", call->result);
    emit_about(MT_EVENT_MARK, row->device, text);
}

void mt_cupti_enter_context_v2(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v2 *)call->params)->dev;
}

void mt_cupti_enter_context_v3(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v3 *)call->params)->dev;
}

void mt_cupti_enter_context_v4(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_create_v4 *)call->params)->dev;
}

void mt_cupti_enter_context_retain(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_context_retain *)call->params)->dev;
}

void mt_cupti_enter_green(const struct mt_cupti_call *call)
{
    creating_on = ((const struct mt_cu_green_create *)call->params)->dev;
}

/* For all calls that create a context: the first argument is the address of the handle. */
void mt_cupti_exit_context(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    if (call->result == 0 && params->out)
        learn(*params->out, creating_on);
    creating_on = -1;
}

void mt_cupti_exit_green_context(const struct mt_cupti_call *call)
{
    const struct mt_cu_green_context *params = call->params;
    uint8_t device = mt_cupti_device_of(params->hCtx);
    if (call->result == 0 && params->pContext && device != MT_CU_UNKNOWN_DEVICE)
        learn(*params->pContext, device);
}

static void tell_device(int device)
{
    if (!mt_collect_is_running() || devices[device].told || !devices[device].total_bytes ||
        !devices[device].name[0])
        return;
    devices[device].told = true;
    mt_collect_device((uint32_t)device, devices[device].total_bytes, devices[device].name);
}

void mt_cupti_contexts_record_devices(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < MAX_DEVICES; device++)
        tell_device(device);
    pthread_mutex_unlock(&lock);
}

bool mt_cupti_is_device_query(const struct mt_cupti_entry *entry)
{
    return entry->at_exit == mt_cupti_exit_device_total ||
           entry->at_exit == mt_cupti_exit_device_name;
}

void mt_cupti_exit_device_total(const struct mt_cupti_call *call)
{
    const struct mt_cu_device_total *params = call->params;
    if (call->result || !params->bytes || params->dev < 0 || params->dev >= MAX_DEVICES)
        return;
    pthread_mutex_lock(&lock);
    devices[params->dev].total_bytes = *params->bytes;
    tell_device(params->dev);
    pthread_mutex_unlock(&lock);
}

void mt_cupti_exit_device_name(const struct mt_cupti_call *call)
{
    const struct mt_cu_device_name *params = call->params;
    if (call->result || !params->name || params->len <= 0 || params->dev < 0 ||
        params->dev >= MAX_DEVICES)
        return;
    pthread_mutex_lock(&lock);
    char *name = devices[params->dev].name;
    size_t most =
        (size_t)params->len < sizeof devices->name ? (size_t)params->len : sizeof devices->name;
    size_t length = strnlen(params->name, most - 1);
    memcpy(name, params->name, length);
    name[length] = 0;
    tell_device(params->dev);
    pthread_mutex_unlock(&lock);
}
