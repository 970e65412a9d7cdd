/* The memory of a shared device over time, exactly: the reserved levels of its processes, added up
 * change by change. Changes at one time count as if all rises came before all falls. */
#include <stdlib.h>
#include <string.h>

#include "job_values.h"
#include "job_work.h"
#include "process_memory.h"

/* A process's level since a time; 0 since its last event. */
struct change {
    uint64_t t_ns, bytes, before;
    uint32_t tenant;
};

static bool has_levels(const struct mt_job_device *device)
{
    for (uint32_t i = 0; i < device->tenant_count; i++)
        if (!device->tenants[i].record->level_count)
            return false;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return (x->bytes < x->before) - (y->bytes < y->before);
}

/* The level of a process at one time after all its changes then, and its maximum before. */
static void add_change(struct change *changes, size_t *count, struct change last, uint64_t most)
{
    if (most > last.before && most > last.bytes) {
        changes[(*count)++] = (struct change){last.t_ns, most, last.before, last.tenant};
        last.before = most;
    }
    changes[(*count)++] = last;
}

/* For one process: at each time at most a rise and a fall, so sorting cannot swap its levels.
 * Changes after the end of the file's time count at the end. */
static void add_changes(struct change *changes, size_t *count, const struct mt_rank_record *record,
                        uint32_t tenant)
{
    struct change last = {0, 0, 0, tenant};
    uint64_t most = 0;

    for (uint32_t k = 0; k < record->level_count; k++) {
        uint64_t t_ns = mt_min_u64(record->levels[k].t_ns, record->end_t_ns);

        if (k && t_ns != last.t_ns) {
            add_change(changes, count, last, most);
            last.before = last.bytes;
            most = 0;
        }
        last.t_ns = t_ns;
        last.bytes = record->levels[k].reserved_bytes;
        most = mt_max_u64(most, last.bytes);
    }
    if (last.t_ns != record->end_t_ns) {
        add_change(changes, count, last, most);
        last.before = last.bytes;
        most = 0;
    }
    last.t_ns = record->end_t_ns;
    last.bytes = 0;
    add_change(changes, count, last, most);
}

/* For all tenants, by time. */
static struct change *changes_of(const struct mt_job_device *device, size_t *count)
{
    struct change *changes;
    size_t room = 0;

    for (uint32_t i = 0; i < device->tenant_count; i++)
        room += (size_t)device->tenants[i].record->level_count + 1;
    changes = mt_memory_zeroed(room, sizeof *changes);
    *count = 0;
    for (uint32_t i = 0; i < device->tenant_count; i++)
        add_changes(changes, count, device->tenants[i].record, i);
    qsort(changes, *count, sizeof *changes, by_time);
    return changes;
}

static uint32_t column_of(const struct mt_job_device *device, uint64_t t_ns)
{
    uint64_t span = device->end_t_ns - device->begin_t_ns;
    uint64_t from_begin = mt_sub_or_0_u64(t_ns, device->begin_t_ns);

    return (uint32_t)mt_min_u64((uint64_t)((unsigned __int128)from_begin * MT_JOB_COLUMNS / span),
                                MT_JOB_COLUMNS - 1);
}

/* Levels that last from one time to another. The first column is the one of the start. */
static void fill_columns(struct mt_job_device *device, uint64_t begin_t_ns, uint64_t end_t_ns,
                         const uint64_t *levels, uint64_t sum)
{
    uint32_t last = column_of(device, mt_max_u64(end_t_ns, begin_t_ns + 1) - 1);

    for (uint32_t c = column_of(device, begin_t_ns); c <= last; c++) {
        if (sum <= device->columns[c])
            continue;
        device->columns[c] = sum;
        for (uint32_t i = 0; i < device->tenant_count; i++)
            device->tenant_columns[(size_t)i * MT_JOB_COLUMNS + c] = levels[i];
    }
}

/* A tenant may have its peak several times: the one with the largest sum of the others counts. */
static void look_at_peaks(struct mt_job_device *device, const uint64_t *levels, uint64_t sum)
{
    for (uint32_t i = 0; i < device->tenant_count; i++)
        if (levels[i] && levels[i] == device->tenants[i].record->reserved_peak.bytes)
            device->tenants[i].others_bytes =
                mt_max_u64(device->tenants[i].others_bytes, sum - levels[i]);
}

static void add_up(struct mt_job_device *device, const struct change *changes, size_t count,
                   uint64_t *levels)
{
    unsigned __int128 exact = 0; /* levels in a hostile file may overflow 64 bits */

    for (size_t i = 0; i < count; i++) {
        uint32_t tenant = changes[i].tenant;
        uint64_t sum;

        exact = exact - levels[tenant] + changes[i].bytes;
        sum = exact < UINT64_MAX ? (uint64_t)exact : UINT64_MAX;
        levels[tenant] = changes[i].bytes;
        fill_columns(device, changes[i].t_ns, i + 1 < count ? changes[i + 1].t_ns : changes[i].t_ns,
                     levels, sum);
        look_at_peaks(device, levels, sum);
        if (sum <= device->peak_bytes)
            continue;
        device->peak_bytes = sum;
        device->peak_begin_t_ns = device->peak_end_t_ns = changes[i].t_ns;
        for (uint32_t k = 0; k < device->tenant_count; k++)
            device->tenants[k].held_bytes = levels[k];
    }
}

enum mt_status mt_job_device_sum(struct mt_job_work *work, struct mt_job_device *device)
{
    struct change *changes;
    uint64_t *levels;
    size_t count;

    if (device->tenant_count > MT_JOB_DEVICE_TENANTS || !has_levels(device))
        return MT_END;
    device->tenant_columns =
        MT_JOB_ARRAY(work, (size_t)device->tenant_count * MT_JOB_COLUMNS, uint64_t);
    changes = changes_of(device, &count);
    levels = mt_memory_zeroed(device->tenant_count, sizeof *levels);
    memset(device->columns, 0, MT_JOB_COLUMNS * sizeof *device->columns);
    for (uint32_t i = 0; i < device->tenant_count; i++)
        device->tenants[i].peak_t_ns = device->tenants[i].record->reserved_peak.t_ns;
    add_up(device, changes, count, levels);
    free(changes);
    free(levels);
    return MT_OK;
}
