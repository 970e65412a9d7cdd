/* The process's memory outside of its allocator, and the need of the device. */
#include "report_query.h"
#include "summarize_parts.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

static int by_library(const void *a, const void *b)
{
    const struct mt_record_owner *x = a, *y = b;

    return strcmp(x->library, y->library);
}

static int by_bytes(const void *a, const void *b)
{
    const struct mt_record_owner *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return by_library(a, b);
}

/* Adds up the bytes of one library. */
static uint32_t merge_owners(struct mt_record_owner *owners, uint32_t count)
{
    uint32_t kept = 0;

    qsort(owners, count, sizeof *owners, by_library);
    for (uint32_t i = 0; i < count; i++) {
        if (kept && by_library(&owners[kept - 1], &owners[i]) == 0)
            owners[kept - 1].bytes += owners[i].bytes;
        else
            owners[kept++] = owners[i];
    }
    return kept;
}

/* One per library; if there are too many, the small ones are merged into one without a name. */
static void fill_owners(const struct mt_summarizing *work, const struct mt_driver_report *driver)
{
    uint32_t count = driver->owner_count;
    struct mt_record_owner *owners = mt_arena_array(work->arena, count + 1, sizeof *owners);

    for (uint32_t i = 0; i < count; i++)
        owners[i] = (struct mt_record_owner){
            driver->owners[i].library ? driver->owners[i].library : "", driver->owners[i].bytes};
    count = merge_owners(owners, count);
    if (count > MT_RECORD_OWNERS) {
        qsort(owners, count, sizeof *owners, by_bytes);
        for (uint32_t i = MT_RECORD_OWNERS - 1; i < count; i++)
            owners[i].library = "";
        count = merge_owners(owners, count);
    }
    work->record->owners = owners;
    work->record->owner_count = count;
}

static int by_id(const void *a, const void *b)
{
    const struct mt_record_communicator *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static uint64_t bytes_of_communicator(const struct mt_driver_report *driver, int32_t communicator)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < driver->owner_count && communicator != MT_NO_COMMUNICATOR; i++)
        if (driver->owners[i].communicator == communicator)
            bytes = mt_add_most_u64(bytes, driver->owners[i].bytes);
    return bytes;
}

/* Communicators that NCCL fully described: id, size, and the rank's number in it. */
static void fill_communicators(const struct mt_summarizing *work,
                               const struct mt_driver_report *driver)
{
    struct mt_rank_record *record = work->record;

    record->communicators =
        mt_arena_array(work->arena, MT_RECORD_COMMUNICATORS, sizeof *record->communicators);
    for (uint32_t i = 0; i < driver->told_communicator_count; i++) {
        const struct mt_communicator_use *use = &driver->communicators[i];

        if (use->id && use->ranks <= UINT32_MAX && use->rank < use->ranks &&
            record->communicator_count < MT_RECORD_COMMUNICATORS)
            record->communicators[record->communicator_count++] =
                (struct mt_record_communicator){use->id, (uint32_t)use->ranks, (uint32_t)use->rank,
                                                bytes_of_communicator(driver, use->communicator)};
    }
    if (record->communicator_count)
        qsort(record->communicators, record->communicator_count, sizeof *record->communicators,
              by_id);
}

/* A lower bound: for a run with unknown need, the memory at one time; for one that ended out of
 * memory, also its last request, and the limit that replays found to get past that request. */
static uint64_t least_need(const struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);
    const struct mt_oom_answer *answer = device->oom_answer;
    uint64_t least = device->allocated_peak.bytes;

    if (oom)
        least = mt_max_u64(least, mt_add_most_u64(oom->then.allocated, oom->request_bytes));
    if (answer && answer->way_count && answer->ways[0].fits)
        least = mt_max_u64(least, answer->ways[0].low_bytes);
    return least;
}

enum mt_status mt_summarize_needs(const struct mt_summarizing *work)
{
    const struct mt_device_report *device = work->device;
    const struct mt_driver_report *driver = mt_driver_of(work->report, device->device);
    struct mt_rank_record *record = work->record;
    struct mt_card_need card;

    record->needed_is_known = mt_card_need(work->report, device, &card);
    record->needed_bytes = card.bytes;
    if (!device->need)
        record->needed_bytes = mt_add_most_u64(card.bytes, least_need(device));
    record->has_context = card.has_context;
    record->context_bytes = card.context_bytes;
    record->outside_bytes = card.outside_bytes;
    record->allocator_need_is_known = device->need;
    if (device->need) {
        record->allocator_need_bytes = device->need->bytes;
        record->allocator_need_low_bytes = device->need->low_bytes;
    }
    if (!driver)
        return MT_OK;
    record->has_driver = driver->has_calls;
    record->driver_peak_bytes = driver->peak.bytes;
    fill_owners(work, driver);
    fill_communicators(work, driver);
    return MT_OK;
}
