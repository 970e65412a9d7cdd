#include "lives.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "roles.h"

struct reading {
    struct mt_analysis *analysis;
    struct mt_lives *lives;
    struct mt_map slots;  /* address -> live block */
    struct mt_life *live; /* those born in a step, in no order */
    uint32_t live_count;
    size_t live_capacity, life_capacity;
    uint32_t step; /* index + 1 of the step that the event is in, 0 = before the first */
    uint16_t device;
};

uint64_t mt_step_begin(const struct mt_analysis *analysis, const struct mt_step_use *step)
{
    return mt_phase_eve(&analysis->report->phases[step->phase]) + 1;
}

uint32_t mt_first_step(const struct mt_analysis *analysis, const struct mt_device_report *device)
{
    uint32_t first = device->step_count;

    while (first > 0 &&
           mt_report_covers(analysis->report, device,
                            mt_step_begin(analysis, &device->steps[first - 1])) &&
           (first == device->step_count || mt_step_begin(analysis, &device->steps[first - 1]) <
                                               mt_step_begin(analysis, &device->steps[first])))
        first--;
    return first;
}

/* ---- blocks ---------------------------------------------------------------------- */

static enum mt_status keep(struct reading *reading, struct mt_life life)
{
    struct mt_lives *lives = reading->lives;
    enum mt_status status;

    if (life.end_step == life.birth_step || lives->too_many)
        return MT_OK;
    lives->too_many = lives->count == MT_LIVES_MAX;
    if (lives->too_many)
        return MT_OK;
    status =
        mt_grow(&lives->lives, &reading->life_capacity, lives->count + 1u, sizeof *lives->lives);
    if (status == MT_OK)
        lives->lives[lives->count++] = life;
    return status;
}

static enum mt_status end_life(struct reading *reading, uint64_t addr, uint64_t event)
{
    uint32_t slot = mt_map_take(&reading->slots, addr), last;
    struct mt_life life;

    if (slot == MT_MAP_NONE)
        return MT_OK;
    life = reading->live[slot];
    life.end_event = event;
    life.end_step = reading->step - 1;
    last = --reading->live_count;
    if (slot != last) {
        reading->live[slot] = reading->live[last];
        if (mt_map_set(&reading->slots, reading->live[slot].addr, slot) != MT_OK)
            return MT_ERR_MEMORY;
    }
    return keep(reading, life);
}

static enum mt_status on_alloc(struct reading *reading, const struct mt_event *event)
{
    struct mt_survey *survey = &reading->analysis->survey;
    enum mt_status status = MT_OK;
    uint64_t bytes;
    uint8_t code;

    if (!mt_alloc_log_next(&survey->log, &bytes, &code) || !bytes ||
        event->device != reading->device)
        return MT_OK;
    if (reading->step)
        status = end_life(reading, event->addr, event->seq); /* its free was lost */
    if (status != MT_OK || !reading->step)
        return status;
    status = mt_grow(&reading->live, &reading->live_capacity, reading->live_count + 1u,
                     sizeof *reading->live);
    if (status != MT_OK)
        return status;
    reading->live[reading->live_count] = (struct mt_life){
        .addr = event->addr,
        .birth_event = event->seq,
        .bytes = bytes,
        .stack = event->stack,
        .heap = event->heap,
        .birth_step = reading->step - 1,
        .role = (uint8_t)mt_role_resolve(&survey->roles, code, event->stack, event->size_bytes)};
    return mt_map_set(&reading->slots, event->addr, reading->live_count++);
}

static enum mt_status on_event(struct reading *reading, const struct mt_event *event)
{
    const struct mt_lives *lives = reading->lives;

    while (reading->step < lives->step_count && event->seq >= lives->begins[reading->step])
        reading->step++;
    if (event->kind == MT_EVENT_ALLOC)
        return on_alloc(reading, event); /* of every device: the log has them all */
    if (event->device != reading->device ||
        (event->kind != MT_EVENT_FREE_REQUESTED && event->kind != MT_EVENT_FREE_COMPLETED))
        return MT_OK;
    return end_life(reading, event->addr, event->seq);
}

/* ---- the reading ------------------------------------------------------------------ */

static enum mt_status read_events(struct reading *reading)
{
    struct mt_analysis *analysis = reading->analysis;
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);
    struct mt_event_batch batch;
    size_t i;

    mt_alloc_log_rewind(&analysis->survey.log);
    while (status == MT_OK &&
           (status = mt_source_next(analysis->source, &batch, analysis->error)) == MT_OK) {
        for (i = 0; status == MT_OK && i < batch.count; i++)
            status = on_event(reading, &batch.events[i]);
    }
    return status == MT_END ? MT_OK : status;
}

/* What is left at the end stays. */
static enum mt_status keep_the_rest(struct reading *reading)
{
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; status == MT_OK && i < reading->live_count; i++) {
        reading->live[i].end_event = UINT64_MAX;
        reading->live[i].end_step = reading->lives->step_count;
        status = keep(reading, reading->live[i]);
    }
    return status;
}

static enum mt_status note_steps(struct reading *reading, const struct mt_device_report *device,
                                 uint32_t first_step)
{
    struct mt_lives *lives = reading->lives;
    uint32_t i;

    lives->begins = calloc((size_t)device->step_count - first_step + 1, sizeof *lives->begins);
    if (!lives->begins)
        return MT_ERR_MEMORY;
    for (i = first_step; i < device->step_count; i++)
        lives->begins[lives->step_count++] = mt_step_begin(reading->analysis, &device->steps[i]);
    return MT_OK;
}

enum mt_status mt_lives_read(struct mt_analysis *analysis, const struct mt_device_report *device,
                             uint32_t first_step, struct mt_lives *lives)
{
    struct reading reading = {.analysis = analysis, .lives = lives, .device = device->device};
    enum mt_status status;

    memset(lives, 0, sizeof *lives);
    status = note_steps(&reading, device, first_step);
    if (status == MT_OK)
        status = read_events(&reading);
    if (status == MT_OK)
        status = keep_the_rest(&reading);
    mt_map_release(&reading.slots);
    free(reading.live);
    return status;
}

void mt_lives_release(struct mt_lives *lives)
{
    free(lives->lives);
    free(lives->begins);
    memset(lives, 0, sizeof *lives);
}
