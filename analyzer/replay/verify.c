#include "verify.h"

#include "check.h"
#include <stdarg.h>
#include <stdio.h>

#include "units.h"

/* Keeps only the first difference. */
static void differs(struct mt_replay_verify *verify, uint64_t event_seq, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void differs(struct mt_replay_verify *verify, uint64_t event_seq, const char *format, ...)
{
    va_list args;

    if (verify->first_difference[0])
        return;
    verify->first_difference_event = event_seq;
    va_start(args, format);
    vsnprintf(verify->first_difference, sizeof verify->first_difference, format, args);
    va_end(args);
}

static void name_op(char text[96], const struct mt_device_op *op)
{
    char size[MT_UNITS_TEXT];

    snprintf(text, 96, "%s of %s at 0x%llx", mt_event_kind_name(op->kind),
             mt_format_bytes(size, op->size_bytes), (unsigned long long)op->addr);
}

/* Bytes that a group released: simulated minus recorded. */
static int64_t excess_release(const struct mt_device_model *device)
{
    int64_t excess = 0;
    size_t i;

    for (i = 0; i < device->op_count; i++) {
        if (device->ops[i].kind == MT_EVENT_SEGMENT_FREE)
            excess += (int64_t)device->ops[i].size_bytes;
    }
    for (i = 0; i < device->base_count; i++) {
        if (device->bases[i].kind == MT_EVENT_SEGMENT_FREE)
            excess -= (int64_t)device->bases[i].size_bytes;
    }
    return excess;
}

void mt_verify_group(struct mt_replay_verify *verify, const struct mt_device_model *device,
                     uint64_t event_seq)
{
    size_t i;

    for (i = 0; i < device->base_count || i < device->op_count; i++) {
        const struct mt_device_base *base = i < device->base_count ? &device->bases[i] : NULL;
        const struct mt_device_op *op = i < device->op_count ? &device->ops[i] : NULL;
        struct mt_device_op wanted = {0};
        char got_text[96] = "nothing", wanted_text[96] = "nothing";
        verify->segment_events += base != NULL;
        if (base && op && base->kind == op->kind && base->addr == op->addr &&
            base->size_bytes == op->size_bytes) {
            verify->segment_events_exact++;
            continue;
        }
        if (base) {
            wanted.kind = base->kind;
            wanted.addr = base->addr;
            wanted.size_bytes = base->size_bytes;
            name_op(wanted_text, &wanted);
        }
        if (op)
            name_op(got_text, op);
        if (!verify->first_difference[0])
            verify->excess_release_bytes = excess_release(device);
        differs(verify, event_seq, "event %llu: recorded %s, replay %s",
                (unsigned long long)event_seq, wanted_text, got_text);
        verify->unexpected_segment_events += !base;
    }
}

void mt_verify_address(struct mt_replay_verify *verify, const struct mt_event *event,
                       enum mt_status got, uint64_t got_addr)
{
    char size[MT_UNITS_TEXT];

    verify->allocations++;
    if (got == MT_OK && got_addr == event->addr) {
        verify->addresses_exact++;
        return;
    }
    mt_format_bytes(size, event->size_bytes);
    verify->first_is_address |= got == MT_OK && !verify->first_difference[0];
    if (got == MT_OK)
        differs(verify, event->seq, "event %llu: alloc of %s recorded at 0x%llx, replay at 0x%llx",
                (unsigned long long)event->seq, size, (unsigned long long)event->addr,
                (unsigned long long)got_addr);
    else
        differs(verify, event->seq,
                "event %llu: alloc of %s recorded at 0x%llx, replay out of memory",
                (unsigned long long)event->seq, size, (unsigned long long)event->addr);
}

void mt_verify_oom(struct mt_replay_verify *verify, const struct mt_event *event,
                   enum mt_status got)
{
    char size[MT_UNITS_TEXT];

    verify->ooms++;
    if (got == MT_ERR_DEVICE_OOM) {
        verify->ooms_exact++;
        return;
    }
    differs(verify, event->seq,
            "event %llu: request of %s recorded out of memory, replay served it",
            (unsigned long long)event->seq, mt_format_bytes(size, event->size_bytes));
}

void mt_verify_finish(struct mt_replay_verify *verify)
{
    MT_ASSERT(verify->addresses_exact <= verify->allocations);
    MT_ASSERT(verify->segment_events_exact <= verify->segment_events);
    MT_ASSERT(verify->ooms_exact <= verify->ooms);
    verify->exact = verify->wanted && verify->allocations == verify->addresses_exact &&
                    verify->segment_events == verify->segment_events_exact &&
                    !verify->unexpected_segment_events && verify->ooms == verify->ooms_exact;
}
