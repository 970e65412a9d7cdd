/* A simulated GPU: a limit, a supply of addresses, and a log of what an
 * allocator asked of it. Addresses are recorded segment bases as long as the
 * supply has a fitting one, else made up by a rule (address_space.h). */
#ifndef MT_ANALYZER_DEVICE_MODEL_H
#define MT_ANALYZER_DEVICE_MODEL_H

#include "address_space.h"
#include "counters.h"
#include "event.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>

/* No machine has more; keeps sums of sizes far from overflow whatever a trace claims. */
#define MT_MAX_TOTAL_BYTES ((uint64_t)1 << 60)

/* One thing the allocator did to the device, with the counters right after
 * it: what a recorded trace shows as a segment event. */
struct mt_device_op {
    uint8_t kind; /* MT_EVENT_SEGMENT_* */
    uint32_t stream;
    uint64_t addr, size_bytes;
    struct mt_counters after;
};

/* A segment base that the trace recorded and the simulation may use next. */
struct mt_device_base {
    uint8_t kind; /* MT_EVENT_SEGMENT_*: releases are listed too */
    bool used;
    uint16_t pool;
    uint32_t stream;
    uint64_t addr, size_bytes;
};

struct mt_device_plan;

struct mt_device_model {
    uint64_t limit_bytes;          /* 0 = unlimited */
    uint64_t total_memory_bytes;   /* physical size; sizes VA reservations */
    struct mt_address_space space; /* of addresses that no recording gave */

    struct mt_device_op *ops; /* since the last mt_device_clear */
    size_t op_count, op_capacity;

    struct mt_device_base *bases; /* of the event group at hand */
    size_t base_count, base_capacity;
    uint64_t bases_missing; /* how often no recorded base fitted */
    bool use_bases;
    uint64_t address_ties;      /* choices between equal free blocks, made by address */
    uint64_t certain_ties;      /* those while every segment lay where the run had it */
    uint64_t refusals;          /* requests that the limit turned away, retried or not */
    uint64_t most_tested_bytes; /* largest sum that PyTorch held, or would have held, against
                                   a limit: from there on a limit changes nothing */

    /* For the policy `planned` (step_plan.h), set by the lane. */
    const struct mt_device_plan *plan; /* NULL = there is none */
    uint32_t planned;                  /* 1 + entry for the request that comes, 0 = none */
    uint64_t plan_hits, plan_misses;   /* requests that found their place free, and not */

    /* An allocator that gives up waits for the streams first: completes all
     * frees that were requested, whatever the trace says of when they were.
     * Set by the lane; NULL = nothing ever waits. */
    enum mt_status (*complete_waiting)(void *lane);
    void *lane;
};

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases);
void mt_device_release(struct mt_device_model *device);

/* How addresses are made up, unless as the driver does. Before the first request. */
void mt_device_order_addresses(struct mt_device_model *device, struct mt_base_order order);

/* What an allocator has at most: the limit, else the physical size; 0 = not known. */
static inline uint64_t mt_device_memory(const struct mt_device_model *device)
{
    return device->limit_bytes ? device->limit_bytes : device->total_memory_bytes;
}

/* Choices between equal free blocks that a real run may make otherwise: those
 * from the first segment on that does not lie where the recorded run had one. */
uint64_t mt_device_open_ties(const struct mt_device_model *device);

/* *addr: for a new segment (kind SEGMENT_ALLOC) or for the first mapped range of a new reservation
 * of `va_bytes` (kind SEGMENT_MAP). MT_ERR_MEMORY. */
enum mt_status mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                              uint64_t va_bytes, uint32_t stream, uint64_t *addr) MT_MUST_USE;

/* Appends to the op log; counters are those right after the operation. A segment that is freed
 * gives its address back. */
enum mt_status mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr,
                             uint64_t size_bytes, uint32_t stream,
                             const struct mt_counters *after) MT_MUST_USE;

/* A recorded segment event of the group at hand, of a segment of this pool. */
enum mt_status mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event,
                                    uint16_t pool) MT_MUST_USE;
void mt_device_clear(struct mt_device_model *device); /* ops and bases */

/* The addresses are sound, and the log holds segment operations in the order of their counters. */
bool mt_device_is_sound(const struct mt_device_model *device, const char **why);

#endif
