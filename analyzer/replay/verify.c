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

    for (size_t i = 0; i < device->op_count; i++)
        if (device->ops[i].kind == MT_EVENT_SEGMENT_FREE)
            excess += (int64_t)device->ops[i].size_bytes;
    for (size_t i = 0; i < device->base_count; i++)
        if (device->bases[i].kind == MT_EVENT_SEGMENT_FREE)
            excess -= (int64_t)device->bases[i].size_bytes;
    return excess;
}

void mt_verify_group(struct mt_replay_verify *verify, const struct mt_device_model *device,
                     uint64_t event_seq)
{
    for (size_t i = 0; i < device->base_count || i < device->op_count; i++) {
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

void mt_verify_free(struct mt_replay_verify *verify, const struct mt_event *event,
                    const struct mt_live *live, bool needs_request)
{
    bool is_served = live && live->handle != MT_LIVE_NO_HANDLE;

    verify->frees++;
    if (is_served && (live->free_requested || !needs_request)) {
        verify->frees_exact++;
        return;
    }
    differs(verify, event->seq, "event %llu: %s of 0x%llx recorded, but in the replay %s",
            (unsigned long long)event->seq, mt_event_kind_name(event->kind),
            (unsigned long long)event->addr,
            is_served ? "its free was not requested" : "there is no such block");
}

void mt_verify_lost_free(struct mt_replay_verify *verify, const struct mt_event *event)
{
    verify->frees++;
    differs(verify, event->seq, "event %llu: alloc recorded at 0x%llx, where a block is live",
            (unsigned long long)event->seq, (unsigned long long)event->addr);
}

void mt_verify_level(struct mt_replay_verify *verify, const struct mt_end_level *level,
                     uint64_t recorded, uint64_t replayed)
{
    uint64_t off = recorded > replayed ? recorded - replayed : replayed - recorded;
    char place[48] = "", n[2][MT_UNITS_TEXT];

    if (recorded == MT_NOT_COUNTED)
        return;
    verify->end_levels++;
    if (!off) {
        verify->end_levels_exact++;
        return;
    }
    if (level->segment_addr)
        snprintf(place, sizeof place, " in the segment at 0x%llx",
                 (unsigned long long)level->segment_addr);
    differs(verify, MT_MAX_SEQ, "at the end, %s%s: recorded %s B, replay %s B %s", level->name,
            place, mt_format_count(n[0], recorded), mt_format_count(n[1], off),
            replayed > recorded ? "more" : "less");
}

/* Without segments, the sizes of blocks are not known, nor what was live before the first event.
 * Without completed frees, a block of PyTorch that waits counts as free, and only levels that do
 * not depend on it are covered. */
static uint8_t covered_by(const struct mt_replay_verify *verify,
                          const struct mt_trace_header *header)
{
    uint8_t requested = header->sizes_rounded ? 0 : MT_COVERS_REQUESTED;

    if (!header->has_segments)
        return header->starts_in_middle ? 0 : requested;
    if (mt_header_is_snapshot(header) && !header->has_free_completed && verify->frees)
        return MT_COVERS_ALLOCATED | MT_COVERS_RESERVED;
    return requested | MT_COVERS_ALLOCATED | MT_COVERS_ACTIVE | MT_COVERS_RESERVED;
}

void mt_verify_finish(struct mt_replay_verify *verify, const struct mt_trace_header *header)
{
    MT_ASSERT(verify->addresses_exact <= verify->allocations);
    MT_ASSERT(verify->segment_events_exact <= verify->segment_events);
    MT_ASSERT(verify->ooms_exact <= verify->ooms && verify->frees_exact <= verify->frees);
    MT_ASSERT(verify->end_levels_exact <= verify->end_levels);
    verify->actions_exact = verify->wanted && verify->allocations == verify->addresses_exact &&
                            verify->segment_events == verify->segment_events_exact &&
                            !verify->unexpected_segment_events &&
                            verify->ooms == verify->ooms_exact &&
                            verify->frees == verify->frees_exact;
    verify->exact = verify->actions_exact && verify->end_levels == verify->end_levels_exact;
    verify->covered = mt_replay_matches_recording(verify) ? covered_by(verify, header) : 0;
}
