/* Devices that several processes used at the same time: a trainer and an inference server, workers
 * under MPS, helpers. Records of all jobs of the set count.
 *
 * Sums are exact if all records list their levels (job_device_sums.c). Otherwise a record has the
 * largest level of each of its columns of time. In a column of the device, it counts with the
 * largest of its own columns that touch it, so sums are upper bounds. A device that was idle in
 * between is listed once for each period of use, so that columns stay short and processes that
 * never met are not added up. */
#include <stdlib.h>
#include <string.h>

#include "job_values.h"
#include "job_work.h"

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

static int compare(const void *a, const void *b)
{
    const struct mt_rank_record *const *one = a, *const *other = b;
    int order = compare_devices(*one, *other);

    if (!order)
        order = ((*one)->begin_t_ns > (*other)->begin_t_ns) -
                ((*one)->begin_t_ns < (*other)->begin_t_ns);
    if (!order)
        order = ((*one)->identity.process_id > (*other)->identity.process_id) -
                ((*one)->identity.process_id < (*other)->identity.process_id);
    if (!order)
        order = strcmp((*one)->identity.host, (*other)->identity.host);
    return order ? order : (*one > *other) - (*one < *other);
}

/* An upper bound of what a record holds between two times. */
static uint64_t held(const struct mt_rank_record *record, uint64_t begin_t_ns, uint64_t end_t_ns)
{
    uint64_t span = record->end_t_ns - record->begin_t_ns, bytes = 0, first, last;
    uint32_t count = record->column_count;

    if (end_t_ns <= record->begin_t_ns || begin_t_ns > record->end_t_ns)
        return 0;
    first = mt_sub_or_0_u64(begin_t_ns, record->begin_t_ns);
    last = mt_min_u64(end_t_ns - record->begin_t_ns, span);
    first = (uint64_t)((unsigned __int128)first * count / span);
    last = (uint64_t)((unsigned __int128)last * count / span);
    for (uint64_t i = first; i <= last && i < count; i++)
        bytes = mt_max_u64(bytes, record->columns[i].reserved_bytes);
    if (first >= count)
        bytes = record->columns[count - 1].reserved_bytes;
    return bytes;
}

uint64_t mt_job_column_t_ns(const struct mt_job_device *device, uint32_t column)
{
    uint64_t span = device->end_t_ns - device->begin_t_ns;

    return device->begin_t_ns + (uint64_t)((unsigned __int128)span * column / MT_JOB_COLUMNS);
}

uint64_t mt_job_tenant_bytes(const struct mt_job_device *device, uint32_t tenant, uint32_t column)
{
    if (device->tenant_columns)
        return device->tenant_columns[(size_t)tenant * MT_JOB_COLUMNS + column];
    return held(device->tenants[tenant].record, mt_job_column_t_ns(device, column),
                mt_job_column_t_ns(device, column + 1));
}

static void fill_columns(struct mt_job_device *device)
{
    uint32_t peak = 0;

    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
        for (uint32_t i = 0; i < device->tenant_count; i++)
            device->columns[c] = mt_add_most_u64(
                device->columns[c], held(device->tenants[i].record, mt_job_column_t_ns(device, c),
                                         mt_job_column_t_ns(device, c + 1)));
        if (device->columns[c] > device->columns[peak])
            peak = c;
    }
    device->peak_bytes = device->columns[peak];
    device->peak_begin_t_ns = mt_job_column_t_ns(device, peak);
    device->peak_end_t_ns = mt_job_column_t_ns(device, peak + 1);
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
                                          mt_job_column_t_ns(device, column),
                                          mt_job_column_t_ns(device, column + 1));
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

static enum mt_status add_device(struct mt_job_work *work,
                                 const struct mt_rank_record *const *records, uint32_t count)
{
    struct mt_job_device *device = &work->report->devices[work->report->device_count++];
    const struct mt_rank_record *first = records[0];
    enum mt_status status;

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
    status = mt_job_device_sum(work, device);
    device->is_exact = status == MT_OK;
    if (status != MT_END)
        return status;
    fill_columns(device);
    fill_tenants(device);
    return MT_OK;
}

/* Records of one device, by their begin. Those that follow each other without a gap form one period
 * of use. */
static enum mt_status add_times(struct mt_job_work *work,
                                const struct mt_rank_record *const *records, uint32_t count)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0, end; i < count && status == MT_OK; i = end) {
        uint64_t end_t_ns = records[i]->end_t_ns;

        for (end = i + 1; end < count && records[end]->begin_t_ns < end_t_ns; end++)
            end_t_ns = mt_max_u64(end_t_ns, records[end]->end_t_ns);
        if (is_shared(records + i, end - i))
            status = add_device(work, records + i, end - i);
    }
    return status;
}

enum mt_status mt_job_find_devices(struct mt_job_work *work, struct mt_error *error)
{
    const struct mt_rank_set *set = work->set;
    const struct mt_rank_record **records =
        MT_JOB_ARRAY(work, set->record_count, const struct mt_rank_record *);
    enum mt_status status = MT_OK;
    uint32_t count = 0;

    (void)error;
    work->report->devices = MT_JOB_ARRAY(work, set->record_count / 2, struct mt_job_device);
    for (uint32_t i = 0; i < set->record_count; i++)
        if (is_known(&set->records[i]) && !set->records[i].is_dry_run)
            records[count++] = &set->records[i];
    if (count)
        qsort(records, count, sizeof *records, compare);
    for (uint32_t i = 0, end; i < count && status == MT_OK; i = end) {
        for (end = i + 1; end < count && !compare_devices(records[i], records[end]);)
            end++;
        status = add_times(work, records + i, drop_repeats(records + i, end - i));
    }
    return status;
}
