/* The first death: when one rank runs out of memory, the others wait for it until they time out. */
#include <string.h>

#include "job_values.h"
#include "job_work.h"

/* Clocks of two hosts may differ by this much. */
#define CLOCK_DOUBT_NS UINT64_C(1000000000)

static bool has_clock(const struct mt_rank_record *record)
{
    return mt_job_has_clock(record->death_t_ns);
}

static bool is_earlier(const struct mt_rank_record *record, const struct mt_rank_record *other)
{
    if (has_clock(record) != has_clock(other))
        return has_clock(record);
    return record->death_t_ns < other->death_t_ns;
}

/* The earliest death, in the first row among equals. */
static uint32_t first_death(const struct mt_job_report *report)
{
    uint32_t first = MT_NO_ROW;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (record->has_death &&
            (first == MT_NO_ROW || is_earlier(record, report->rows[first].record)))
            first = i;
    }
    return first;
}

static bool is_of_one_trace(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return *a->trace_sha256 && !strcmp(a->trace_sha256, b->trace_sha256);
}

static bool is_of_one_host(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return *a->identity.host && !strcmp(a->identity.host, b->identity.host);
}

/* Whether a death that is not the earliest by its number may have been the first. */
static bool may_be_first(const struct mt_rank_record *record, const struct mt_rank_record *first)
{
    if (is_of_one_trace(record, first))
        return false;
    if (!has_clock(record))
        return true;
    return !is_of_one_host(record, first) &&
           record->death_t_ns - first->death_t_ns < CLOCK_DOUBT_NS;
}

/* Counts a rank once, even if several of its devices ran out. Rows ascend by rank. */
static void find_others(const struct mt_job_report *report, struct mt_job_death *death)
{
    const struct mt_rank_record *first = report->rows[death->row].record, *nearest = NULL;
    int32_t before = -1;

    death->contested_row = MT_NO_ROW;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (!record->has_death)
            continue;
        death->count += record->identity.rank < 0 || record->identity.rank != before;
        before = record->identity.rank;
        if (i == death->row || !may_be_first(record, first) ||
            (nearest && !is_earlier(record, nearest)))
            continue;
        nearest = record;
        death->contested_row = i;
    }
    death->contest_has_clock = nearest && has_clock(nearest);
}

/* From the first begin of a rank. Without a clock, times of different traces do not compare. */
static uint64_t run_time_ns(const struct mt_job_report *report, const struct mt_rank_record *first)
{
    uint64_t begin_t_ns = first->begin_t_ns;

    for (uint32_t i = 0; i < report->row_count && has_clock(first); i++) {
        uint64_t other_t_ns = report->rows[i].record->begin_t_ns;

        if (mt_job_has_clock(other_t_ns))
            begin_t_ns = mt_min_u64(begin_t_ns, other_t_ns);
    }
    return mt_sub_or_0_u64(first->death_t_ns, begin_t_ns);
}

/* Whether the process failed later, for another reason than memory. */
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

/* Ranks for which `is_one` is true, each once, except those that ran out of memory on any device.
 * Rows ascend by rank. */
static void find_ranks(struct mt_job_work *work, const struct mt_job_death *death,
                       bool (*is_one)(const struct mt_rank_record *, uint64_t),
                       struct mt_job_range **ranges, uint32_t *range_count, uint32_t *count)
{
    const struct mt_job_report *report = work->report;

    *ranges = MT_JOB_ARRAY(work, report->row_count, struct mt_job_range);
    if (!has_clock(report->rows[death->row].record))
        return; /* nothing is known to be later */
    for (uint32_t i = 0, end; i < report->row_count; i = end) {
        int32_t rank = report->rows[i].record->identity.rank;
        bool died = false, found = false;

        for (end = i; end < report->row_count; end++) {
            const struct mt_rank_record *record = report->rows[end].record;

            if (record->identity.rank != rank)
                break;
            died |= record->has_death;
            found |= is_one(record, death->t_ns);
        }
        if (died || !found)
            continue;
        ++*count;
        mt_job_range_add(*ranges, range_count, rank);
    }
}

/* Whether the others would have fitted where this one ran out of memory. Their peaks are from their
 * own runs, which this death may have cut short. */
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

void mt_job_find_death(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t row = first_death(report);
    struct mt_job_death *death;
    const struct mt_rank_record *record;

    if (row == MT_NO_ROW)
        return;
    death = MT_JOB_ARRAY(work, 1, struct mt_job_death);
    record = report->rows[row].record;
    *death = (struct mt_job_death){.row = row,
                                   .t_ns = record->death_t_ns,
                                   .after_ns = run_time_ns(report, record),
                                   .wanted_bytes = record->death_wanted_bytes,
                                   .free_bytes = record->death_free_bytes,
                                   .path = record->death_site};
    report->death = death;
    find_others(report, death);
    find_fitting(work, death);
    find_ranks(work, death, followed, &death->followed, &death->followed_ranges,
               &death->followed_count);
    find_ranks(work, death, vanished, &death->vanished, &death->vanished_ranges,
               &death->vanished_count);
}
