/* The first death: when one rank runs out of memory, the others wait for it until they time out. */
#include <string.h>

#include "job_values.h"
#include "job_work.h"

#define CLOCK_DOUBT_NS UINT64_C(1000000000) /* clocks of hosts may differ by that */

/* The earliest; deaths of hosts whose clocks differ have no order within a second. */
static uint32_t first_death(const struct mt_job_report *report)
{
    uint32_t first = MT_NO_ROW;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (record->has_death &&
            (first == MT_NO_ROW || record->death_t_ns < report->rows[first].record->death_t_ns))
            first = i;
    }
    return first;
}

static void find_others(const struct mt_job_report *report, struct mt_job_death *death)
{
    const struct mt_rank_record *first = report->rows[death->row].record;
    uint64_t next_t_ns = UINT64_MAX;

    death->contested_row = MT_NO_ROW;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        death->count += record->has_death;
        if (i == death->row || !record->has_death || record->death_t_ns >= next_t_ns ||
            !strcmp(record->identity.host, first->identity.host) ||
            record->death_t_ns - death->t_ns >= CLOCK_DOUBT_NS)
            continue;
        next_t_ns = record->death_t_ns;
        death->contested_row = i;
    }
}

/* Ended later, and not of memory nor in good order. */
static bool followed(const struct mt_rank_record *record, uint64_t death_t_ns)
{
    const struct mt_record_identity *identity = &record->identity;
    uint64_t ended_t_ns = identity->ended_t_ns ? identity->ended_t_ns : record->end_t_ns;

    return !record->has_death && identity->rank >= 0 && ended_t_ns >= death_t_ns &&
           (record->outcome == MT_OUTCOME_FAILED || record->outcome == MT_OUTCOME_KILLED);
}

/* Recorded, and gone without an exit that the recorder saw. */
static bool vanished(const struct mt_rank_record *record, uint64_t death_t_ns)
{
    (void)death_t_ns;
    return !record->has_death && record->identity.rank >= 0 && *record->identity.boot_id &&
           record->identity.ended == MT_ENDED_UNKNOWN && record->outcome == MT_OUTCOME_UNKNOWN;
}

/* Ranks other than the dead one of which `is_one` holds, each once. */
static enum mt_status find_ranks(struct mt_job_work *work, const struct mt_job_death *death,
                                 bool (*is_one)(const struct mt_rank_record *, uint64_t),
                                 struct mt_job_range **ranges, uint32_t *range_count,
                                 uint32_t *count)
{
    const struct mt_job_report *report = work->report;
    int32_t before = report->rows[death->row].record->identity.rank, dead = before;

    *ranges = MT_JOB_ARRAY(work, report->row_count, struct mt_job_range);
    if (!*ranges)
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;
        int32_t rank = record->identity.rank;

        if (!is_one(record, death->t_ns) || rank == dead || rank == before)
            continue;
        ++*count;
        before = rank;
        mt_job_range_add(*ranges, range_count, rank);
    }
    return MT_OK;
}

/* Would the memory of the others have fitted where this one died? Their peaks are those of their
 * own runs, and may have been cut short by this death. */
static void find_fitting(struct mt_job_work *work, struct mt_job_death *death)
{
    const struct mt_job_report *report = work->report;
    const struct mt_rank_record *first = report->rows[death->row].record;
    uint32_t count = 0;

    death->limit_is_device = !first->identity.memory_limit_bytes;
    death->limit_bytes =
        death->limit_is_device ? first->device_bytes : first->identity.memory_limit_bytes;
    for (uint32_t i = 0; i < report->row_count; i++) {
        uint64_t bytes = mt_job_metric_of(report->rows[i].record,
                                          death->limit_is_device ? MT_JOB_NEEDED : MT_JOB_RESERVED);

        if (i == death->row)
            continue;
        work->values[count++] = (struct mt_job_value){bytes, i};
        death->fitting_count += bytes <= death->limit_bytes;
    }
    death->other_count = count;
    death->median_bytes = mt_job_spread_of(work->values, count).median;
}

enum mt_status mt_job_find_death(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    uint32_t row = first_death(report);
    struct mt_job_death *death;
    const struct mt_rank_record *record;
    enum mt_status status;

    (void)error;
    if (row == MT_NO_ROW)
        return MT_OK;
    death = MT_JOB_ARRAY(work, 1, struct mt_job_death);
    if (!death)
        return MT_ERR_MEMORY;
    record = report->rows[row].record;
    *death = (struct mt_job_death){.row = row,
                                   .t_ns = record->death_t_ns,
                                   .wanted_bytes = record->death_wanted_bytes,
                                   .free_bytes = record->death_free_bytes,
                                   .path = record->death_site};
    report->death = death;
    find_others(report, death);
    find_fitting(work, death);
    status = find_ranks(work, death, followed, &death->followed, &death->followed_ranges,
                        &death->followed_count);
    return status == MT_OK ? find_ranks(work, death, vanished, &death->vanished,
                                        &death->vanished_ranges, &death->vanished_count)
                           : status;
}
