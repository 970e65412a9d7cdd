#include "ledger_instants.h"

#include "util.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static void add_sample(struct mt_ledger_samples *samples, const struct mt_event *event,
                       uint64_t tracked, uint64_t wanted_t_ns)
{
    uint64_t used = mt_min_u64(event->size_bytes, MT_LEDGER_MAX_BYTES);
    int64_t residual = (int64_t)used - (int64_t)tracked;
    const struct mt_ledger_sample sample = {event->t_ns, event->seq, used, tracked};

    if (!used) {
        samples->unknown++;
        return;
    }
    if (!samples->count || residual < samples->least_residual)
        samples->least_residual = residual;
    if (!samples->count || residual > samples->most_residual)
        samples->most_residual = residual;
    if (used > samples->largest.used_bytes)
        samples->largest = sample;
    if (residual >= 0 &&
        (!samples->nearest.used_bytes ||
         distance(event->t_ns, wanted_t_ns) < distance(samples->nearest.t_ns, wanted_t_ns)))
        samples->nearest = sample;
    samples->count++;
}

void mt_ledger_sample(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    struct mt_ledger_device *device;
    uint32_t index;

    mt_ledger_device_at(ledger, event->device, &index);
    device = &ledger->devices[index];
    add_sample(&device->samples[MT_TRACKED_DRIVER], event, device->bytes, device->wanted_t_ns);
    add_sample(&device->samples[MT_TRACKED_SEGMENTS], event, device->segment_bytes,
               device->wanted_t_ns);
}

void mt_driver_ledger_want(struct mt_driver_ledger *ledger, uint16_t device, uint64_t event,
                           uint64_t t_ns)
{
    uint32_t index;

    mt_ledger_device_at(ledger, device, &index);
    ledger->devices[index].wants_copy = true;
    ledger->devices[index].wanted_event = event;
    ledger->devices[index].wanted_t_ns = t_ns;
}

static bool is_outside(const struct mt_driver_ledger *ledger, const struct mt_ledger_block *block,
                       uint32_t device)
{
    return block->is_live && block->device == device && !block->is_framework &&
           ledger->heaps[block->heap].is.is_device_memory;
}

static void copy(struct mt_driver_ledger *ledger, uint32_t index)
{
    struct mt_ledger_device *device = &ledger->devices[index];
    uint32_t count = 0;

    for (size_t i = 0; i < ledger->block_count; i++)
        count += is_outside(ledger, &ledger->blocks[i], index);
    device->copies = mt_arena_array(ledger->arena, (size_t)count + 1, sizeof *device->copies);
    for (size_t i = 0; i < ledger->block_count; i++) {
        struct mt_ledger_block *block = &ledger->blocks[i];

        if (!is_outside(ledger, block, index))
            continue;
        device->copies[device->copy_count++] =
            (struct mt_holding){.stack = block->stack,
                                .tied = MT_NO_ID,
                                .phase = block->phase,
                                .role = MT_ROLE_OTHER,
                                .block_bytes = block->bytes,
                                .blocks = 1,
                                .bytes = block->bytes,
                                .requested_bytes = block->bytes,
                                .first_birth_t_ns = block->birth_t_ns,
                                .first_birth_event = block->birth_event};
        block->copy = device->copy_count;
    }
}

void mt_ledger_copy_due(struct mt_driver_ledger *ledger, uint64_t seq)
{
    ledger->next_wanted = UINT64_MAX;
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        struct mt_ledger_device *device = &ledger->devices[i];

        if (!device->wants_copy || device->has_copy)
            continue;
        if (seq <= device->wanted_event) {
            ledger->next_wanted = mt_min_u64(ledger->next_wanted, device->wanted_event);
            continue;
        }
        device->has_copy = true;
        device->then.bytes = device->bytes;
        device->then.framework_bytes = device->framework_bytes;
        device->then.pool_bytes = device->pool_segment_bytes;
        copy(ledger, i);
    }
}
