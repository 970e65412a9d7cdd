/* A simulated GPU: a limit, a supply of addresses, and a log of the allocator's driver operations.
 * Addresses are recorded segment bases as long as the supply has a fitting one, otherwise invented
 * by a rule (mt_address_space). */
#ifndef MT_ANALYZER_DEVICE_MODEL_H
#define MT_ANALYZER_DEVICE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "event.h"
#include "status.h"

/* Simulates where the driver places memory. The addresses matter, because an allocator chooses
 * among equal free blocks by address.
 *
 * The driver's order was found by experiment. It holds for all 18,438 requests in the 18 lists of
 * tests/gpu/driver_addresses.cu (H100, driver 580, 2026-11-23), except the first request of each
 * list:
 *   - Address space comes in regions of a multiple of 32 MiB.
 *   - A request goes into the newest region that has a hole for it. It takes the lower end of the
 *     smallest such hole, or of the lowest one if several are equal.
 *   - Without such a hole it gets a region of its own: at the upper end of the highest gap between
 *     regions that is larger than the region (not equal to it), else below all regions.
 *   - A region without requests becomes a gap at once; gaps that meet are one.
 * Other parts of the process (CUDA's modules, libraries, mapped files) also take holes and gaps. No
 * trace records these, so a real run may differ. The other orders show by how much.
 *
 * Addresses are multiples of 2 MiB in [32 MiB, 2^46), below those that Linux gives. The time of a
 * call is linear in the number of live requests. Zeroed memory is not a valid space: use
 * mt_address_space_init. */

enum mt_address_rule {
    MT_ADDRESSES_DRIVER,    /* as described above */
    MT_ADDRESSES_UPWARDS,   /* above all earlier ones; nothing is reused until the end is reached */
    MT_ADDRESSES_DOWNWARDS, /* below all earlier ones; reuse as with UPWARDS */
    MT_ADDRESSES_RANDOM     /* anywhere; the same for the same seed and requests */
};

struct mt_base_order {
    enum mt_address_rule rule;
    uint64_t seed; /* for MT_ADDRESSES_RANDOM */
};

enum { MT_BASE_ORDERS = 8 };

/* The orders to try: the driver's, upwards, downwards, and random ones with the seeds 1, 2, ...;
 * `index` counts from 0. */
struct mt_base_order mt_base_order_at(uint32_t index);

/* "driver", "upwards", "downwards", "random". */
const char *mt_address_rule_name(enum mt_address_rule rule);

/* A part of a region: one request, or a hole. */
struct mt_address_piece {
    uint64_t base, end;
    uint64_t region; /* its number; newer ones are larger */
    bool taken;
};

struct mt_address_space {
    struct mt_base_order order;
    uint64_t top;    /* end of the usable space */
    uint64_t cursor; /* upwards: end of the last request; downwards: its start */
    uint64_t random; /* state of the generator */
    uint64_t regions;
    uint64_t hole_bound,
        gap_bound; /* upper bounds of holes and gaps, so that searches that must fail are skipped */
    struct mt_address_piece *pieces; /* sorted by address */
    size_t count, capacity;
};

void mt_address_space_init(struct mt_address_space *space, struct mt_base_order order);
void mt_address_space_release(struct mt_address_space *space);

/* Limits the space to addresses below `top`, a multiple of 2 MiB. Only while nothing is taken. */
void mt_address_space_end_at(struct mt_address_space *space, uint64_t top);

/* Takes `size_bytes`, rounded up to 2 MiB, and sets *base to their address. If the space has no
 * room left, the address overlaps others. */
void mt_address_space_take(struct mt_address_space *space, uint64_t size_bytes, uint64_t *base);

/* Frees the request at `base`. Ignores other addresses. */
void mt_address_space_give(struct mt_address_space *space, uint64_t base);

/* Checks that pieces are sorted and do not overlap, that no hole touches another of its region, and
 * that no region is empty. */
bool mt_address_space_is_sound(const struct mt_address_space *space, const char **why);

/* No machine has more. Keeps sums of sizes far from overflow for any trace. */
#define MT_MAX_TOTAL_BYTES ((uint64_t)1 << 60)

/* One operation of the allocator on the device, with the counters right after it. A recorded trace
 * shows it as a segment event. */
struct mt_device_op {
    uint8_t kind; /* MT_EVENT_SEGMENT_* */
    uint32_t stream;
    uint64_t addr, size_bytes;
    struct mt_counters after;
};

/* A segment base that the trace recorded and the simulation may use next. */
struct mt_device_base {
    uint8_t kind; /* MT_EVENT_SEGMENT_*: includes releases */
    bool used;
    uint16_t pool;
    uint32_t stream;
    uint64_t addr, size_bytes;
};

struct mt_device_plan;

struct mt_device_model {
    uint64_t limit_bytes;          /* 0 = unlimited */
    uint64_t total_memory_bytes;   /* physical size; sizes VA reservations */
    struct mt_address_space space; /* for invented addresses */

    struct mt_device_op *ops; /* since the last mt_device_clear */
    size_t op_count, op_capacity;

    struct mt_device_base *bases; /* of the current event group */
    size_t base_count, base_capacity;
    uint64_t bases_missing; /* how often no recorded base fitted */
    bool use_bases;
    uint64_t address_ties; /* choices between equal free blocks by address */
    uint64_t certain_ties; /* of these, while every segment was at its recorded address */
    bool any_order;        /* no free list had two bases at a time: their order decides nothing */
    uint64_t refusals;     /* requests refused by the limit, retried or not */
    uint64_t most_tested_bytes; /* largest sum that PyTorch compared, or would have compared, with a
                                   limit: a limit of at least this changes nothing */
    bool only_compares;         /* the policy uses the limit in mt_device_refuses only */
    uint64_t most_accepted_bytes, least_refused_bytes; /* sums that it compared */

    /* For the policy `planned` (step_plan.h), set by the lane. */
    const struct mt_device_plan *plan; /* NULL = there is none */
    uint32_t planned;                  /* 1 + entry of the next request, 0 = none */
    uint64_t plan_hits, plan_misses;   /* requests whose place was free, and the others */

    /* Before an allocator fails, it waits for the streams: completes all requested frees, whenever
     * they complete in the trace. Set by the lane; NULL = nothing ever waits. */
    enum mt_status (*complete_waiting)(void *lane);
    void *lane;
};

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases);
void mt_device_release(struct mt_device_model *device);

/* Selects the rule for invented addresses; the default is the driver's. Call it before the first
 * request. */
void mt_device_order_addresses(struct mt_device_model *device, struct mt_base_order order);

/* The maximum memory of an allocator: the limit, otherwise the physical size; 0 = unknown. */
static inline uint64_t mt_device_memory(struct mt_device_model *device)
{
    device->only_compares = false;
    return device->limit_bytes ? device->limit_bytes : device->total_memory_bytes;
}

/* Whether the limit, if there is one, refuses this sum of reserved bytes. */
static inline bool mt_device_refuses(struct mt_device_model *device, uint64_t sum_bytes)
{
    const bool refuses = device->limit_bytes && sum_bytes > device->limit_bytes;

    if (refuses && sum_bytes < device->least_refused_bytes)
        device->least_refused_bytes = sum_bytes;
    if (!refuses && sum_bytes > device->most_accepted_bytes)
        device->most_accepted_bytes = sum_bytes;
    return refuses;
}

/* Choices between equal free blocks that a real run may make differently: all those since the first
 * segment that is not at its recorded address. */
uint64_t mt_device_open_ties(const struct mt_device_model *device);

/* Sets *addr to the address for a new segment (kind SEGMENT_ALLOC), or for the first mapped range
 * of a new reservation of `va_bytes` (kind SEGMENT_MAP). */
void mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                    uint64_t va_bytes, uint32_t stream, uint64_t *addr);

/* Appends to the operation log; counters are those right after the operation. Freeing a segment
 * frees its address. */
void mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr, uint64_t size_bytes,
                   uint32_t stream, const struct mt_counters *after);

/* Offers the address of a recorded segment event of the current group, for a segment of this
 * pool. */
void mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event,
                          uint16_t pool);
void mt_device_clear(struct mt_device_model *device); /* ops and bases */

/* Checks that the addresses are sound, and that the log has segment operations in the order of
 * their counters. */
bool mt_device_is_sound(const struct mt_device_model *device, const char **why);

#endif
