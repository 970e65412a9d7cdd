/* See cupti_pools.h, and decoders of stream-ordered memory. An allocation that names no pool comes
 * from the current pool of its device. The default pool has no id of its own in the trace. */
#include "cupti_pools.h"

#include <pthread.h>
#include <string.h>

#include "collect.h"
#include "cupti_abi.h"
#include "cupti_contexts.h"
#include "cupti_tell.h"

enum { MAX_POOLS = 256, MAX_DEVICES = 64 };

struct pool {
    uint64_t handle; /* 0: free */
    uint8_t device;
    bool on_host, is_default;
};

static struct pool pools[MAX_POOLS];
static unsigned pool_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t current[MAX_DEVICES]; /* 0: the default pool, or unknown */

void mt_cupti_pools_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pool_count = 0;
    memset((void *)current, 0, sizeof current);
}

static struct pool *find(uint64_t handle)
{
    for (unsigned i = 0; i < pool_count; i++)
        if (pools[i].handle == handle)
            return &pools[i];
    return NULL;
}

static void learn(const struct pool *pool)
{
    if (!pool->handle)
        return;
    pthread_mutex_lock(&lock);
    struct pool *row = find(pool->handle);
    if (!row)
        row = find(0);
    if (!row && pool_count < MAX_POOLS)
        row = &pools[pool_count++];
    if (row)
        *row = *pool;
    pthread_mutex_unlock(&lock);
}

/* Returns the known facts about a pool; for an unknown pool, only its handle. */
static struct pool look_up(uint64_t handle)
{
    struct pool pool = {.handle = handle, .device = MT_CU_UNKNOWN_DEVICE};
    pthread_mutex_lock(&lock);
    const struct pool *row = handle ? find(handle) : NULL;
    if (row)
        pool = *row;
    pthread_mutex_unlock(&lock);
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
    struct mt_live_block block = {.addr = addr,
                                  .size_bytes = bytes,
                                  .context = call->context,
                                  .space = MT_LIVE_DEVICE,
                                  .heap = pool->on_host ? MT_RAW_HOST : MT_RAW_ASYNC,
                                  .device = pool->device};
    if (call->captured)
        block.heap = MT_RAW_GRAPH;
    else if (pool->handle && !pool->is_default)
        block.pool = mt_collect_pool(pool->handle, 0);
    mt_cupti_tell_alloc(call, &block, stream);
}

static void tell_from(const struct mt_cupti_call *call, const struct pool *pool, uint64_t stream)
{
    const struct mt_cu_alloc *params = call->params;
    if (call->result || !params->dptr)
        mt_cupti_tell_failed(call, pool->on_host ? MT_RAW_HOST : MT_RAW_ASYNC, params->bytesize);
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
    struct mt_live_block block = {.addr = *params->ptr_out,
                                  .context = call->context,
                                  .space = MT_LIVE_DEVICE,
                                  .heap = MT_RAW_IMPORTED,
                                  .device = look_up(params->pool).device};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_exit_pool_create(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_create *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool =
        pool_at(*params->pool, params->poolProps ? &params->poolProps->location : NULL);
    learn(&pool);
}

void mt_cupti_exit_pool_import(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_import *params = call->params;
    if (call->result || !params->pool_out)
        return;
    struct pool pool = {.handle = *params->pool_out, .device = mt_cupti_device_of(call->context)};
    learn(&pool);
}

void mt_cupti_exit_pool_destroy(const struct mt_cupti_call *call)
{
    uint64_t handle = ((const struct mt_cu_handle *)call->params)->value;
    if (call->result || !handle)
        return;
    pthread_mutex_lock(&lock);
    struct pool *row = find(handle);
    if (row)
        row->handle = 0;
    pthread_mutex_unlock(&lock);
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
    learn(&pool);
}

void mt_cupti_exit_pool_default_at(const struct mt_cupti_call *call)
{
    const struct mt_cu_pool_get_at *params = call->params;
    if (call->result || !params->pool)
        return;
    struct pool pool = pool_at(*params->pool, params->location);
    pool.is_default = true;
    learn(&pool);
}

/* The current pool is the default one unless another one was set before. */
static void see_current(const struct pool *pool)
{
    struct pool known = look_up(pool->handle);
    if (known.device != MT_CU_UNKNOWN_DEVICE || pool->device >= MAX_DEVICES)
        return;
    struct pool seen = *pool;
    seen.is_default = current[pool->device] == 0;
    learn(&seen);
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
