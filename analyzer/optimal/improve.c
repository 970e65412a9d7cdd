#include "improve.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "process_memory.h"
#include "util.h"

enum { RESTART_INTERVAL = 64 };
#define SEED UINT64_C(0x9e3779b97f4a7c15)

void mt_improver_init(struct mt_improver *improver, const struct mt_instance *instance)
{
    size_t n = (size_t)instance->count + 1;

    memset(improver, 0, sizeof *improver);
    improver->instance = instance;
    improver->order = mt_memory_zeroed(n, sizeof *improver->order);
    improver->best_order = mt_memory_zeroed(n, sizeof *improver->best_order);
    improver->trial = mt_memory_zeroed(n, sizeof *improver->trial);
    improver->addresses = mt_memory_zeroed(n, sizeof *improver->addresses);
    improver->height = UINT64_MAX;
    improver->random = SEED;
    mt_occupancy_init(&improver->occupancy, instance->section_count);
}

void mt_improver_release(struct mt_improver *improver)
{
    mt_occupancy_release(&improver->occupancy);
    free(improver->order);
    free(improver->best_order);
    free(improver->trial);
    free(improver->addresses);
    memset(improver, 0, sizeof *improver);
}

/* Places improver->order below `limit`; a complete plan becomes the best. */
static void try_order(struct mt_improver *improver, enum mt_fit fit, uint64_t limit,
                      uint64_t deadline_ns, uint32_t *placed)
{
    uint32_t count = improver->instance->count;
    uint64_t height;

    mt_place(improver->instance, improver->order, fit, limit, &improver->occupancy, deadline_ns,
             improver->trial, placed, &height);
    improver->placements += *placed;
    if (*placed < count)
        return;
    improver->height = height;
    improver->fit = fit;
    improver->since_progress = 0;
    memcpy(improver->addresses, improver->trial, count * sizeof *improver->trial);
    memcpy(improver->best_order, improver->order, count * sizeof *improver->order);
}

void mt_improver_construct(struct mt_improver *improver, uint64_t goal, uint64_t deadline_ns)
{
    static const char *const orders[] = {"WZ",  "AZ", "ZW", "TAW", "WTA",
                                         "TWA", "UW", "LW", "ZUW", "TU"};
    uint32_t placed;
    size_t i;
    int fit;

    for (i = 0; i < MT_ARRAY_LEN(orders); i++)
        for (fit = MT_FIT_FIRST; fit <= MT_FIT_BEST; fit++) {
            bool first = improver->height == UINT64_MAX;
            if (improver->height <= goal || (!first && mt_deadline_passed(deadline_ns)))
                return;
            mt_order_by(improver->instance, orders[i], improver->order);
            try_order(improver, (enum mt_fit)fit, improver->height - 1,
                      first ? MT_NO_DEADLINE : deadline_ns, &placed);
        }
}

uint64_t mt_improver_random(struct mt_improver *improver)
{
    improver->random ^= improver->random << 13;
    improver->random ^= improver->random >> 7;
    improver->random ^= improver->random << 17;
    return improver->random;
}

/* Moves the item at `from` to an earlier position, near ones more often. */
static void move_forward(struct mt_improver *improver, uint32_t from)
{
    uint64_t a = mt_improver_random(improver) % from, b = mt_improver_random(improver) % from;
    uint32_t to = (uint32_t)(a > b ? a : b), item = improver->order[from];

    memmove(improver->order + to + 1, improver->order + to, (from - to) * sizeof *improver->order);
    improver->order[to] = item;
}

void mt_improver_run(struct mt_improver *improver, uint64_t target, uint32_t steps,
                     uint64_t deadline_ns)
{
    uint32_t count = improver->instance->count, placed;

    memcpy(improver->order, improver->best_order, count * sizeof *improver->order);
    for (; steps > 0 && improver->height > target; steps--) {
        if (mt_deadline_passed(deadline_ns))
            return;
        try_order(improver, improver->fit, target, deadline_ns, &placed);
        if (placed > 0 && placed < count)
            move_forward(improver, placed);
        if (++improver->since_progress % RESTART_INTERVAL == 0)
            memcpy(improver->order, improver->best_order, count * sizeof *improver->order);
    }
}
