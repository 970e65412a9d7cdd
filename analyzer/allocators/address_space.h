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
#ifndef MT_ANALYZER_ADDRESS_SPACE_H
#define MT_ANALYZER_ADDRESS_SPACE_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mt_address_rule {
    MT_ADDRESSES_DRIVER,    /* as described above */
    MT_ADDRESSES_UPWARDS,   /* above all earlier ones; nothing is reused until the end is reached */
    MT_ADDRESSES_DOWNWARDS, /* below all earlier ones; reuse as with UPWARDS */
    MT_ADDRESSES_RANDOM     /* anywhere; the same for the same seed and requests */
};
enum { MT_ADDRESS_RULES = MT_ADDRESSES_RANDOM + 1 };

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

#endif
