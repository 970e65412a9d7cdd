/* Where the driver puts the memory that an allocator asks it for. The addresses matter: of equal
 * free blocks an allocator takes one by its address.
 *
 * The driver's own order was found by experiment. It holds for each of 18,438 requests in 18 lists
 * that tests/gpu/driver_addresses.cu served (H100, driver 580, 2026-11-23), except the first of
 * each:
 *   - Address space comes in regions of a multiple of 32 MiB.
 *   - A request goes into the newest region that has a hole for it. It takes the lower end of the
 *     smallest such hole, or of the lowest one if several are equal.
 *   - Without such a hole it gets a region of its own: at the upper end of the highest gap between
 *     regions that is larger than the region (not equal to it), else below all regions.
 *   - A region without requests becomes a gap at once; gaps that meet are one.
 * What the process does besides (CUDA's modules, libraries, mapped files) also takes holes and
 * gaps. No trace records that, so that a real run may differ. The other orders show by how much.
 *
 * Addresses are multiples of 2 MiB in [32 MiB, 2^46), below those that Linux gives. Time: linear
 * in the requests that live. Zeroed memory is no space; mt_address_space_init makes one. */
#ifndef MT_ANALYZER_ADDRESS_SPACE_H
#define MT_ANALYZER_ADDRESS_SPACE_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mt_address_rule {
    MT_ADDRESSES_DRIVER,    /* as described above */
    MT_ADDRESSES_UPWARDS,   /* each above all before; nothing is used again until the end is met */
    MT_ADDRESSES_DOWNWARDS, /* each below all before, likewise */
    MT_ADDRESSES_RANDOM     /* anywhere; the same for the same seed and requests */
};
enum { MT_ADDRESS_RULES = MT_ADDRESSES_RANDOM + 1 };

struct mt_base_order {
    enum mt_address_rule rule;
    uint64_t seed; /* for MT_ADDRESSES_RANDOM */
};

enum { MT_BASE_ORDERS = 8 };

/* The orders that answers are tried with: the driver's, upwards, downwards, and random ones with
 * the seeds 1, 2, ...; `index` counts from 0. */
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
    uint64_t top;    /* end of what may be used */
    uint64_t cursor; /* upwards: end of the last request; downwards: its begin */
    uint64_t random; /* state of the generator */
    uint64_t regions;
    uint64_t hole_bound, gap_bound;  /* no hole, no gap is larger: searches that fail are not
                                        repeated */
    struct mt_address_piece *pieces; /* in the order of addresses */
    size_t count, capacity;
};

void mt_address_space_init(struct mt_address_space *space, struct mt_base_order order);
void mt_address_space_release(struct mt_address_space *space);

/* From now on: nothing at or above `top`, a multiple of 2 MiB. Only while nothing is taken. */
void mt_address_space_end_at(struct mt_address_space *space, uint64_t top);

/* *base: for `size_bytes`, which are rounded up to 2 MiB. If 2^46 bytes do not hold it beside
 * what lives, it gets an address that others have. MT_ERR_MEMORY. */
enum mt_status mt_address_space_take(struct mt_address_space *space, uint64_t size_bytes,
                                     uint64_t *base) MT_MUST_USE;

/* What was taken at `base` may be used again. Other addresses are ignored. */
void mt_address_space_give(struct mt_address_space *space, uint64_t base);

/* Pieces are in order and do not overlap; no hole touches another of its region; no region is
 * empty. */
bool mt_address_space_is_sound(const struct mt_address_space *space, const char **why);

#endif
