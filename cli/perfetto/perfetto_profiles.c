/* Live blocks at instants as heap profiles, which Perfetto shows as flame graphs.
 *
 * A profile counts allocated and freed bytes of a stack from the start, and Perfetto takes the
 * differences of two profiles (profile_packet_sequence_state.cc). Newer versions show what was
 * allocated after the profile before, older ones what is live. So that both show the live blocks,
 * another profile between two frees all blocks of the first one.
 *
 * Two kinds of profiles never have the same time: Perfetto 58 would sum both in the label of a
 * profile (heap_profile/intervals.sql). */
#include <stdlib.h>

#include "grow.h"
#include "perfetto_parts.h"
#include "protobuf.h"

/* Numbers of fields. */
enum {
    PROFILE_DUMP = 5,
    PROFILE_INDEX = 7,
    DUMP_PID = 1,
    DUMP_SAMPLE = 2,
    DUMP_TIME = 9,
    DUMP_HEAP = 11,
    DUMP_INTERVAL = 12, /* between samples: 1 byte, so nothing is missing */
    DUMP_FIRST_INTERVAL = 13,
    SAMPLE_STACK = 1,
    SAMPLE_ALLOCATED = 2,
    SAMPLE_FREED = 3,
    SAMPLE_ALLOCATIONS = 5,
    SAMPLE_FREES = 6
};

/* In ns after an instant: profiles of allocated and of requested bytes, and the two that free
 * them. */
enum { KINDS = 2, AFTER_FREES = KINDS, MIN_DISTANCE = 2 * KINDS };

static const char *const heaps[KINDS] = {"allocated", "requested"};

struct instant {
    uint64_t time;
    uint32_t rank; /* 0: the most important one */
    const struct mt_holding *blocks;
    uint32_t count;
};

/* What a stack allocated and freed since the start. */
struct total {
    uint64_t allocated_bytes, freed_bytes, allocations, frees;
};

struct profiles {
    struct mt_perfetto_process *process;
    struct mt_packets packets;
    int kind;
    uint64_t index;       /* of the next profile */
    struct total *totals; /* by number of the stack */
    size_t total_count;
};

static struct total *total_of(struct profiles *profiles, uint32_t stack)
{
    if (stack >= profiles->total_count)
        mt_grow_zeroed_to(&profiles->totals, &profiles->total_count, (size_t)stack + 1,
                          sizeof *profiles->totals);
    return &profiles->totals[stack];
}

static void add_sample(struct mt_buf *dump, uint32_t stack, const struct total *total)
{
    struct mt_buf sample = {0};

    mt_protobuf_add_number(&sample, SAMPLE_STACK, stack);
    mt_protobuf_add_number(&sample, SAMPLE_ALLOCATED, total->allocated_bytes);
    mt_protobuf_add_number(&sample, SAMPLE_FREED, total->freed_bytes);
    mt_protobuf_add_number(&sample, SAMPLE_ALLOCATIONS, total->allocations);
    mt_protobuf_add_number(&sample, SAMPLE_FREES, total->frees);
    mt_protobuf_add_message(dump, DUMP_SAMPLE, &sample);
    mt_buf_release(&sample);
}

/* Adds a profile of the stacks that have live blocks. */
static void add_profile(struct profiles *profiles, uint64_t time, const struct mt_buf *samples)
{
    struct mt_buf profile = {0}, dump = {0};

    mt_protobuf_add_number(&dump, DUMP_PID, profiles->process->pid);
    mt_protobuf_add_text(&dump, DUMP_HEAP, heaps[profiles->kind]);
    mt_protobuf_add_number(&dump, DUMP_TIME, time);
    mt_protobuf_add_number(&dump, DUMP_INTERVAL, 1);
    mt_protobuf_add_number(&dump, DUMP_FIRST_INTERVAL, 1);
    mt_buf_add(&dump, samples->data, samples->length);
    mt_protobuf_add_message(&profile, PROFILE_DUMP, &dump);
    mt_protobuf_add_number(&profile, PROFILE_INDEX, profiles->index++);
    mt_packets_add(&profiles->packets, MT_PACKET_PROFILE, &profile, time);
    mt_buf_release(&profile);
    mt_buf_release(&dump);
}

static bool is_live(const struct total *total)
{
    return total->allocations > total->frees;
}

static void add_live(struct profiles *profiles, const struct instant *instant)
{
    struct mt_buf samples = {0};

    for (uint32_t i = 0; i < instant->count; i++) {
        const struct mt_holding *block = &instant->blocks[i];
        struct total *total = total_of(profiles, mt_packets_block_stack(&profiles->packets, block));

        total->allocated_bytes += profiles->kind ? block->requested_bytes : block->bytes;
        total->allocations += block->blocks;
    }
    for (uint32_t i = 0; i < profiles->total_count; i++)
        if (is_live(&profiles->totals[i]))
            add_sample(&samples, i, &profiles->totals[i]);
    add_profile(profiles, instant->time + (uint64_t)profiles->kind, &samples);
    mt_buf_release(&samples);
}

static void add_frees(struct profiles *profiles, uint64_t time)
{
    struct mt_buf samples = {0};

    for (uint32_t i = 0; i < profiles->total_count; i++) {
        struct total *total = &profiles->totals[i];

        if (!is_live(total))
            continue;
        total->freed_bytes = total->allocated_bytes;
        total->frees = total->allocations;
        add_sample(&samples, i, total);
    }
    if (samples.length)
        add_profile(profiles, time + AFTER_FREES + (uint64_t)profiles->kind, &samples);
    mt_buf_release(&samples);
}

/* Choosing the instants. */

static int by_time(const void *a, const void *b)
{
    const struct instant *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Keeps the more important one of two that are too close. Returns how many remain. */
static uint32_t drop_close(struct instant *instants, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct instant *last = kept ? &instants[kept - 1] : NULL;

        if (!last || instants[i].time - last->time >= MIN_DISTANCE)
            instants[kept++] = instants[i];
        else if (instants[i].rank < last->rank)
            *last = instants[i];
    }
    return kept;
}

static uint32_t choose(const struct mt_perfetto_process *process, struct instant *instants)
{
    const struct mt_device_report *device = process->device;
    uint32_t count = device->instant_count;

    for (uint32_t i = 0; i < count; i++) {
        const struct mt_instant *instant = &device->instants[i];

        instants[i] =
            (struct instant){mt_perfetto_time(process, instant->t_ns, instant->event),
                             (uint32_t)instant->kind, instant->holdings, instant->holding_count};
    }
    instants[count++] =
        (struct instant){mt_perfetto_time(process, device->last_t_ns, device->last_event),
                         MT_INSTANT_ASKED, process->levels->live, process->levels->live_count};
    qsort(instants, count, sizeof *instants, by_time);
    return drop_close(instants, count);
}

static void add_kind(struct mt_perfetto_process *process, int kind, const struct instant *instants,
                     uint32_t count)
{
    struct profiles profiles = {.process = process,
                                .packets = {.out = process->packets.out,
                                            .report = process->report,
                                            .first_event = process->device->first_event,
                                            .id = mt_perfetto_writer(process, 1 + (uint32_t)kind)},
                                .kind = kind};

    for (uint32_t i = 0; i < count; i++) {
        if (i)
            add_frees(&profiles, instants[i - 1].time);
        add_live(&profiles, &instants[i]);
    }
    free(profiles.totals);
    mt_packets_release(&profiles.packets);
}

void mt_perfetto_add_profiles(struct mt_perfetto_process *process)
{
    struct instant *instants =
        mt_memory_zeroed((size_t)process->device->instant_count + 1, sizeof *instants);
    uint32_t count = choose(process, instants);

    for (int kind = 0; kind < KINDS; kind++)
        add_kind(process, kind, instants, count);
    free(instants);
}
