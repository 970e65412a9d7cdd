/* Devices that several processes used at the same time: a trainer and an inference server, workers
 * under MPS, helpers. Records of all jobs of the set count.
 *
 * Sums are exact if all records list their levels. Otherwise a record has the
 * largest level of each of its columns of time. In a column of the device, it counts with the
 * largest of its own columns that touch it, so sums are upper bounds. A device that was idle in
 * between is listed once for each period of use, so that columns stay short and processes that
 * never met are not added up. */
#include <stdlib.h>
#include <string.h>

#include "job_work.h"
#include "process_memory.h"
#include "sorted.h"

/* The memory of a shared device over time, exactly: the reserved levels of its processes, added up
 * change by change. Changes at one time count as if all rises came before all falls. */

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
        const struct mt_record_level level = mt_level_at(record, k);
        uint64_t t_ns = mt_min_u64(level.t_ns, record->end_t_ns);

        if (k && t_ns != last.t_ns) {
            add_change(changes, count, last, most);
            last.before = last.bytes;
            most = 0;
        }
        last.t_ns = t_ns;
        last.bytes = level.reserved_bytes;
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
static void fill_sum_columns(struct mt_job_device *device, uint64_t begin_t_ns, uint64_t end_t_ns,
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

        exact = exact - levels[tenant] + changes[i].bytes;
        uint64_t sum = exact < UINT64_MAX ? (uint64_t)exact : UINT64_MAX;
        levels[tenant] = changes[i].bytes;
        fill_sum_columns(device, changes[i].t_ns,
                         i + 1 < count ? changes[i + 1].t_ns : changes[i].t_ns, levels, sum);
        look_at_peaks(device, levels, sum);
        if (sum <= device->peak_bytes)
            continue;
        device->peak_bytes = sum;
        device->peak_begin_t_ns = device->peak_end_t_ns = changes[i].t_ns;
        for (uint32_t k = 0; k < device->tenant_count; k++)
            device->tenants[k].held_bytes = levels[k];
    }
}

/* Computes the exact sums of a device's processes, and sets all fields about sums in struct
 * mt_job_device. Returns false and sets nothing if a process has no list of its levels, or if
 * there are too many processes. O(changes * processes). */
static bool job_device_sum(struct mt_job_work *work, struct mt_job_device *device)
{
    uint64_t *levels;
    size_t count;

    if (device->tenant_count > MT_JOB_DEVICE_TENANTS || !has_levels(device))
        return false;
    device->tenant_columns =
        MT_JOB_ARRAY(work, (size_t)device->tenant_count * MT_JOB_COLUMNS, uint64_t);
    struct change *changes = changes_of(device, &count);
    levels = mt_memory_zeroed(device->tenant_count, sizeof *levels);
    memset(device->columns, 0, MT_JOB_COLUMNS * sizeof *device->columns);
    for (uint32_t i = 0; i < device->tenant_count; i++)
        device->tenants[i].peak_t_ns = device->tenants[i].record->reserved_peak.t_ns;
    add_up(device, changes, count, levels);
    free(changes);
    free(levels);
    return true;
}

/* The reserved level of a record that has levels. */
static uint64_t level_at(const struct mt_rank_record *record, uint64_t t_ns)
{
    uint32_t low = 0; /* the first one after t_ns */

    if (t_ns > record->end_t_ns)
        return 0;
    MT_BISECT(low, record->level_count, middle, mt_level_at(record, middle).t_ns <= t_ns);
    return low ? mt_level_at(record, low - 1).reserved_bytes : 0;
}

/* At most this is allocated then: the largest level of the column of time. */
static uint64_t allocated_bound(const struct mt_rank_record *record, uint64_t t_ns)
{
    const uint64_t span = record->end_t_ns - record->begin_t_ns;
    const uint64_t at = mt_min_u64(mt_sub_or_0_u64(t_ns, record->begin_t_ns), span);
    const uint64_t column = (uint64_t)((unsigned __int128)at * record->column_count / span);

    return mt_column_at(record, (uint32_t)mt_min_u64(column, record->column_count - 1))
        .allocated_bytes;
}

static void find_refused(struct mt_job_device *device)
{
    const struct mt_job_tenant *first = NULL;

    for (uint32_t i = 0; i < device->tenant_count; i++) {
        const struct mt_rank_record *record = device->tenants[i].record;

        if (record->has_death && (!first || record->death_t_ns < first->record->death_t_ns))
            first = &device->tenants[i];
    }
    device->refused = first;
    for (uint32_t i = 0; first && i < device->tenant_count; i++) {
        struct mt_job_tenant *tenant = &device->tenants[i];
        const uint64_t t_ns = first->record->death_t_ns;

        tenant->refusal_bytes = level_at(tenant->record, t_ns);
        tenant->refusal_unused_bytes =
            mt_sub_or_0_u64(tenant->refusal_bytes, allocated_bound(tenant->record, t_ns));
    }
}

/* Sums over pairs of processes take O(n^2). */
enum { MOST_SUMMED = 1024 };

static bool is_known(const struct mt_rank_record *record)
{
    return record->column_count && record->end_t_ns > record->begin_t_ns &&
           (*record->device_uuid || (*record->device_pci && *record->identity.host));
}

/* By the UUID of the device. Without one, by host, boot and PCI address. */
static int compare_devices(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    int order = strcmp(a->device_uuid, b->device_uuid);

    if (order || *a->device_uuid)
        return order;
    order = strcmp(a->identity.host, b->identity.host);
    if (!order)
        order = strcmp(a->identity.boot_id, b->identity.boot_id);
    return order ? order : strcmp(a->device_pci, b->device_pci);
}

MT_DEFINE_POINTER_ORDER(compare, struct mt_rank_record,
                        MT_THEN(compare_devices) || MT_ASCENDING(begin_t_ns) ||
                            MT_ASCENDING(identity.process_id) || MT_BY_TEXT(identity.host) ||
                            MT_BY_PLACE)

/* An upper bound of what a record holds between two times. */
static uint64_t held(const struct mt_rank_record *record, uint64_t begin_t_ns, uint64_t end_t_ns)
{
    uint64_t span = record->end_t_ns - record->begin_t_ns, bytes = 0;
    uint32_t count = record->column_count;

    if (end_t_ns <= record->begin_t_ns || begin_t_ns > record->end_t_ns)
        return 0;
    uint64_t first = mt_sub_or_0_u64(begin_t_ns, record->begin_t_ns);
    uint64_t last = mt_min_u64(end_t_ns - record->begin_t_ns, span);
    first = (uint64_t)((unsigned __int128)first * count / span);
    last = (uint64_t)((unsigned __int128)last * count / span);
    for (uint64_t i = first; i <= last && i < count; i++)
        bytes = mt_max_u64(bytes, mt_column_at(record, (uint32_t)i).reserved_bytes);
    if (first >= count)
        bytes = mt_column_at(record, count - 1).reserved_bytes;
    return bytes;
}

/* Returns the start of a column of a shared device. Columns are 0 to MT_JOB_COLUMNS; the last is
 * the end. */
static uint64_t job_column_t_ns(const struct mt_job_device *device, uint32_t column)
{
    uint64_t span = device->end_t_ns - device->begin_t_ns;

    return device->begin_t_ns + (uint64_t)((unsigned __int128)span * column / MT_JOB_COLUMNS);
}

uint64_t mt_job_tenant_bytes(const struct mt_job_device *device, uint32_t tenant, uint32_t column)
{
    if (device->tenant_columns)
        return device->tenant_columns[(size_t)tenant * MT_JOB_COLUMNS + column];
    return held(device->tenants[tenant].record, job_column_t_ns(device, column),
                job_column_t_ns(device, column + 1));
}

static void fill_columns(struct mt_job_device *device)
{
    uint32_t peak = 0;

    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
        for (uint32_t i = 0; i < device->tenant_count; i++)
            device->columns[c] = mt_add_most_u64(
                device->columns[c], held(device->tenants[i].record, job_column_t_ns(device, c),
                                         job_column_t_ns(device, c + 1)));
        if (device->columns[c] > device->columns[peak])
            peak = c;
    }
    device->peak_bytes = device->columns[peak];
    device->peak_begin_t_ns = job_column_t_ns(device, peak);
    device->peak_end_t_ns = job_column_t_ns(device, peak + 1);
}

/* What all tenants except one held at a time. */
static uint64_t sum_of_others(const struct mt_job_device *device, uint32_t index, uint64_t t_ns)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < device->tenant_count; i++)
        if (i != index)
            bytes = mt_add_most_u64(
                bytes, held(device->tenants[i].record, t_ns, mt_add_most_u64(t_ns, 1)));
    return bytes;
}

/* An upper bound of the same, from the column of the device. O(columns of one record). */
static uint64_t bound_of_others(const struct mt_job_device *device, uint32_t index, uint64_t t_ns)
{
    uint64_t span = device->end_t_ns - device->begin_t_ns;
    uint64_t from_begin = mt_min_u64(mt_sub_or_0_u64(t_ns, device->begin_t_ns), span - 1);
    uint32_t column = (uint32_t)((unsigned __int128)from_begin * MT_JOB_COLUMNS / span);

    if (device->columns[column] == UINT64_MAX)
        return UINT64_MAX;
    return device->columns[column] - held(device->tenants[index].record,
                                          job_column_t_ns(device, column),
                                          job_column_t_ns(device, column + 1));
}

static void fill_tenants(struct mt_job_device *device)
{
    for (uint32_t i = 0; i < device->tenant_count; i++) {
        struct mt_job_tenant *tenant = &device->tenants[i];

        tenant->peak_t_ns = tenant->record->reserved_peak.t_ns;
        tenant->held_bytes = held(tenant->record, device->peak_begin_t_ns, device->peak_end_t_ns);
        tenant->others_bytes = device->tenant_count <= MOST_SUMMED
                                   ? sum_of_others(device, i, tenant->peak_t_ns)
                                   : bound_of_others(device, i, tenant->peak_t_ns);
    }
}

/* Process ids are unique only within a host: containers number theirs from 1. */
static bool is_one_process(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return a->identity.process_id == b->identity.process_id &&
           !strcmp(a->identity.host, b->identity.host);
}

/* Among records of the same process with the same start time, keeps the one with the largest
 * reserved peak. Such records are adjacent. */
static uint32_t drop_repeats(const struct mt_rank_record **records, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct mt_rank_record *last = kept ? records[kept - 1] : NULL;

        if (!last || !last->identity.process_id || !is_one_process(last, records[i]) ||
            last->begin_t_ns != records[i]->begin_t_ns)
            records[kept++] = records[i];
        else if (records[i]->reserved_peak.bytes > last->reserved_peak.bytes)
            records[kept - 1] = records[i];
    }
    return kept;
}

/* Records of a device, by start. Whether two of different processes overlap. */
static bool is_shared(const struct mt_rank_record *const *records, uint32_t count)
{
    const struct mt_rank_record *latest = records[0];

    for (uint32_t i = 1; i < count; i++) {
        if (records[i]->begin_t_ns < latest->end_t_ns && !is_one_process(records[i], latest))
            return true;
        if (records[i]->end_t_ns > latest->end_t_ns)
            latest = records[i];
    }
    return false;
}

static void add_device(struct mt_job_work *work, const struct mt_rank_record *const *records,
                       uint32_t count)
{
    struct mt_job_device *device = &work->report->devices[work->report->device_count++];
    const struct mt_rank_record *first = records[0];

    *device = (struct mt_job_device){.uuid = first->device_uuid,
                                     .pci = first->device_pci,
                                     .host = first->identity.host,
                                     .begin_t_ns = first->begin_t_ns};
    device->tenants = MT_JOB_ARRAY(work, count, struct mt_job_tenant);
    device->columns = MT_JOB_ARRAY(work, MT_JOB_COLUMNS, uint64_t);
    for (uint32_t i = 0; i < count; i++) {
        device->tenants[device->tenant_count++].record = records[i];
        device->end_t_ns = mt_max_u64(device->end_t_ns, records[i]->end_t_ns);
        device->total_bytes = mt_max_u64(device->total_bytes, records[i]->device_bytes);
    }
    device->is_exact = job_device_sum(work, device);
    if (device->is_exact) {
        find_refused(device);
        return;
    }
    fill_columns(device);
    fill_tenants(device);
}

/* Records of one device, by their begin. Those that follow each other without a gap form one period
 * of use. */
static void add_times(struct mt_job_work *work, const struct mt_rank_record *const *records,
                      uint32_t count)
{
    for (uint32_t i = 0, end; i < count; i = end) {
        uint64_t end_t_ns = records[i]->end_t_ns;

        for (end = i + 1; end < count && records[end]->begin_t_ns < end_t_ns; end++)
            end_t_ns = mt_max_u64(end_t_ns, records[end]->end_t_ns);
        if (is_shared(records + i, end - i))
            add_device(work, records + i, end - i);
    }
}

void mt_job_find_devices(struct mt_job_work *work)
{
    const struct mt_rank_set *set = work->set;
    const struct mt_rank_record **records =
        MT_JOB_ARRAY(work, set->record_count, const struct mt_rank_record *);
    uint32_t count = 0;

    work->report->devices = MT_JOB_ARRAY(work, set->record_count / 2, struct mt_job_device);
    for (uint32_t i = 0; i < set->record_count; i++)
        if (is_known(&set->records[i]) && !set->records[i].is_dry_run)
            records[count++] = &set->records[i];
    if (count)
        qsort(records, count, sizeof *records, compare);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !compare_devices(records[i], records[end]);)
            end++;
        add_times(work, records + i, drop_repeats(records + i, end - i));
    }
}
