#include "lives.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "process_memory.h"
#include "report_query.h"
#include "sorted.h"

struct mt_life mt_life_of_event(const struct mt_event *event, uint64_t bytes)
{
    return (struct mt_life){.addr = event->addr,
                            .birth_event = event->seq,
                            .bytes = bytes,
                            .requested_bytes = event->size_bytes,
                            .stack = event->stack,
                            .stream = event->stream,
                            .heap = event->heap,
                            .pool = event->pool};
}

void mt_lives_begin(struct mt_lives *lives, const struct mt_report *report,
                    const struct mt_device_report *device, uint32_t first_step, uint32_t most)
{
    uint32_t i;

    memset(lives, 0, sizeof *lives);
    lives->most = most;
    lives->begins =
        mt_memory_zeroed((size_t)device->step_count - first_step + 1, sizeof *lives->begins);
    for (i = first_step; i < device->step_count; i++)
        lives->begins[lives->step_count++] = mt_step_begin(report, &device->steps[i]);
}

/* Number of steps that have begun at the event. */
static uint32_t steps_until(const struct mt_lives *lives, uint64_t event)
{
    return (uint32_t)mt_sorted_count_to(lives->begins, lives->now, sizeof *lives->begins, event);
}

void mt_lives_add(struct mt_lives *lives, const struct mt_life *life)
{
    uint32_t begun = steps_until(lives, life->birth_event);
    struct mt_life *kept;

    if (!begun || lives->too_many)
        return;
    lives->too_many = lives->count == lives->most;
    if (lives->too_many)
        return;
    mt_grow_to(&lives->lives, &lives->capacity, (size_t)lives->count + 1, sizeof *lives->lives);
    kept = &lives->lives[lives->count++];
    *kept = *life;
    kept->birth_step = begun - 1;
    kept->end_step = life->end_event == UINT64_MAX ? lives->step_count : lives->now - 1;
}

void mt_lives_release(struct mt_lives *lives)
{
    free(lives->lives);
    free(lives->begins);
    memset(lives, 0, sizeof *lives);
}
