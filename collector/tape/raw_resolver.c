/* See raw_resolver.h. */
#include "raw_resolver.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

void mt_raw_resolver_release(struct mt_raw_resolver *self)
{
    free(self->devices);
    *self = (struct mt_raw_resolver){0};
}

static uint64_t time_of(struct mt_raw_resolver *self, uint64_t ticks)
{
    uint64_t t_ns = mt_ticks_unix_ns(self->first, self->last, ticks);

    /* numbers and ticks are taken at slightly different times, so they may disagree; the numbers
     * determine the order */
    if (t_ns < self->last_t_ns)
        t_ns = self->last_t_ns;
    self->last_t_ns = t_ns;
    return t_ns;
}

static uint16_t device_of(struct mt_raw_resolver *self, uint32_t thread, uint8_t device)
{
    if (thread >= self->device_capacity) {
        size_t old = self->device_capacity;
        if (thread > UINT16_MAX ||
            mt_grow(&self->devices, &self->device_capacity, (size_t)thread + 1, 1))
            return device == UINT8_MAX ? 0 : device;
        memset(self->devices + old, 0, self->device_capacity - old);
    }
    if (device != UINT8_MAX)
        self->devices[thread] = device;
    return self->devices[thread];
}

/* A communicator may use another device than the current one of its thread. */
static bool tells_device(const struct mt_raw_event *raw)
{
    return raw->kind != MT_EVENT_COMMUNICATOR;
}

static bool has_name(const struct mt_raw_event *raw)
{
    switch (raw->kind) {
    case MT_EVENT_PHASE_PUSH:
    case MT_EVENT_PHASE_POP:
    case MT_EVENT_MARK:
    case MT_EVENT_CONTEXT:
    case MT_EVENT_COMMUNICATOR:
    case MT_EVENT_BUFFER_REGISTERED:
    case MT_EVENT_BUFFER_DEREGISTERED:
    case MT_EVENT_DROPPED: return true;
    default: return false;
    }
}

enum mt_status mt_raw_resolve(struct mt_raw_resolver *self, const struct mt_raw_event *raw,
                              uint32_t thread, struct mt_event *event)
{
    uint32_t owner =
        raw->kind == MT_EVENT_PHASE_POP && raw->aux_bytes && raw->aux_bytes <= UINT16_MAX
            ? (uint32_t)raw->aux_bytes
            : thread;
    enum mt_status status;

    *event = (struct mt_event){
        .t_ns = time_of(self, raw->ticks),
        .addr = raw->addr,
        .size_bytes = raw->size_bytes,
        .aux_bytes = raw->kind == MT_EVENT_PHASE_POP ? 0 : raw->aux_bytes,
        .stack = MT_NO_ID,
        .name = MT_NO_ID,
        .device = device_of(self, thread, tells_device(raw) ? raw->device : UINT8_MAX),
        .kind = raw->kind,
        .flags = raw->flags};
    if (!tells_device(raw) && raw->device != UINT8_MAX)
        event->device = raw->device;
    status =
        mt_tape_symbols_stack(self->symbols, raw->python_stack, raw->native_stack, &event->stack);
    if (status == MT_OK && has_name(raw))
        status = mt_tape_symbols_name(self->symbols, raw->id, &event->name);
    else if (status == MT_OK)
        status = mt_tape_symbols_pool(self->symbols, raw->id, &event->pool);
    if (status == MT_OK)
        status = mt_symbols_stream(self->trace_symbols, raw->stream, &event->stream);
    if (status == MT_OK)
        status = mt_tape_symbols_thread(self->symbols, owner, &event->thread);
    if (status == MT_OK)
        status = mt_tape_symbols_heap(self->symbols, raw->heap, &event->heap);
    if (status == MT_OK && event->device)
        status = mt_symbols_device(self->trace_symbols, event->device, MT_NO_ID, 0);
    return status;
}
