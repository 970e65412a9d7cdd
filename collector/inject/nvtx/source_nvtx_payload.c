/* See nvtx_parts.h: ranges and marks of the payload extension. A range may begin with a core
 * function and end with a function of this extension, so both use one stack. */
#include "nvtx_parts.h"

#include <errno.h>

mt_nvtx_next_slot mt_nvtx_next_payload[NVTX_PAYLOAD_SLOT_COUNT];

/* next_NAME(): the function of the previous tool, or NULL. */
#define DECLARE(number, name, result, parameters)                                                  \
    typedef result(*name##_fn) parameters;                                                         \
    static name##_fn next_##name(void)                                                             \
    {                                                                                              \
        return (name##_fn)atomic_load_explicit(&mt_nvtx_next_payload[number],                      \
                                               memory_order_relaxed);                              \
    }
NVTX_PAYLOAD_SLOTS(DECLARE)

/* Without another tool, schemas without a number get one here. */
static uint64_t on_schema_register(void *domain, const struct nvtx_schema *schema)
{
    static _Atomic uint64_t last_dynamic = UINT64_C(1) << 32;
    int saved = errno;

    mt_nvtx_schema_add(mt_nvtx_domain(domain), schema);
    errno = saved;
    if (next_schema_register())
        return next_schema_register()(mt_nvtx_next_handle(domain), schema);
    if (schema && schema->fields & NVTX_SCHEMA_HAS_ID)
        return schema->id;
    return atomic_fetch_add_explicit(&last_dynamic, 1, memory_order_relaxed);
}

static void on_mark_payload(void *domain, const struct nvtx_payload *payloads, size_t count)
{
    int saved = errno;

    mt_nvtx_mark(mt_nvtx_domain(domain), NULL);
    errno = saved;
    if (next_mark_payload())
        next_mark_payload()(mt_nvtx_next_handle(domain), payloads, count);
}

static int on_range_push_payload(void *domain, const struct nvtx_payload *payloads, size_t count)
{
    int saved = errno;
    int level = mt_nvtx_push(mt_nvtx_domain(domain), NULL);

    errno = saved;
    if (next_range_push_payload())
        level = next_range_push_payload()(mt_nvtx_next_handle(domain), payloads, count);
    return level;
}

static int on_range_pop_payload(void *domain, const struct nvtx_payload *payloads, size_t count)
{
    uint32_t number = mt_nvtx_domain(domain);
    int saved = errno;

    mt_nvtx_communicator_record(number, payloads, count);
    int level = mt_nvtx_pop(number);
    errno = saved;
    if (next_range_pop_payload())
        level = next_range_pop_payload()(mt_nvtx_next_handle(domain), payloads, count);
    return level;
}

static uint64_t on_range_start_payload(void *domain, const struct nvtx_payload *payloads,
                                       size_t count)
{
    uint64_t id = 0;

    if (next_range_start_payload())
        id = next_range_start_payload()(mt_nvtx_next_handle(domain), payloads, count);
    int saved = errno;
    id = mt_nvtx_start(id, mt_nvtx_domain(domain), NULL);
    errno = saved;
    return id;
}

static void on_range_end_payload(void *domain, uint64_t id, const struct nvtx_payload *payloads,
                                 size_t count)
{
    int saved = errno;

    mt_nvtx_end(id);
    errno = saved;
    if (next_range_end_payload())
        next_range_end_payload()(mt_nvtx_next_handle(domain), id, payloads, count);
}

#define SLOT(number, name, result, parameters) [number] = (nvtx_function)on_##name,
const nvtx_function mt_nvtx_payload_slots[NVTX_PAYLOAD_SLOT_COUNT] = {NVTX_PAYLOAD_SLOTS(SLOT)};
