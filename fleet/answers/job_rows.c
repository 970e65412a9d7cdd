/* Which processes are the ranks of the job, and which ranks are missing. */
#include <stdlib.h>
#include <string.h>

#include "job_values.h"
#include "job_work.h"
#include "sorted.h"

static int32_t restart_of(const struct mt_rank_record *record)
{
    return record->identity.restart > 0 ? record->identity.restart : 0;
}

static void count_epoch(struct mt_job_epoch *epoch, const struct mt_rank_record *record)
{
    if (!epoch->record_count || record->begin_t_ns < epoch->begin_t_ns)
        epoch->begin_t_ns = record->begin_t_ns;
    epoch->end_t_ns = mt_max_u64(epoch->end_t_ns, record->end_t_ns);
    epoch->restart = restart_of(record);
    epoch->record_count++;
    epoch->death_count += record->has_death;
}

static void find_epochs(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    struct mt_job_value *values = work->values;
    uint32_t count = work->record_count;

    for (uint32_t i = 0; i < count; i++)
        values[i] = (struct mt_job_value){(uint64_t)restart_of(&work->records[i]), i};
    mt_job_values_sort(values, count);
    report->epochs = MT_JOB_ARRAY(work, count, struct mt_job_epoch);
    for (uint32_t i = 0; i < count; i++) {
        report->epoch_count += !i || values[i].value != values[i - 1].value;
        count_epoch(&report->epochs[report->epoch_count - 1], &work->records[values[i].row]);
    }
}

/* Chooses among processes of one rank: the one with the largest reserved peak among the process
 * that ended last and those that overlap it in time. Earlier ones were earlier runs, smaller ones
 * helpers.
 */
static uint32_t choose(const struct mt_rank_record *records, const uint32_t *indexes,
                       uint32_t count)
{
    uint32_t last = indexes[0];

    for (uint32_t i = 1; i < count; i++)
        if (records[indexes[i]].end_t_ns > records[last].end_t_ns)
            last = indexes[i];
    uint32_t chosen = last;
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_rank_record *record = &records[indexes[i]];

        if (record->end_t_ns > records[last].begin_t_ns &&
            record->reserved_peak.bytes > records[chosen].reserved_peak.bytes)
            chosen = indexes[i];
    }
    return chosen;
}

static void add_row(struct mt_job_work *work, const uint32_t *indexes, uint32_t count)
{
    struct mt_job_report *report = work->report;
    uint32_t chosen = choose(work->records, indexes, count), row = report->row_count++;

    report->rows[row].record = &work->records[chosen];
    memset(report->rows[row].coordinates, 0xff, sizeof report->rows[row].coordinates);
    for (uint32_t i = 0; i < count; i++)
        if (indexes[i] != chosen)
            report->duplicates[report->duplicate_count++] =
                (struct mt_job_duplicate){&work->records[indexes[i]], row};
}

static bool is_one_rank(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return a->identity.rank >= 0 && a->identity.rank == b->identity.rank && a->device == b->device;
}

/* Records ascend by rank, then by device. */
static void find_rows(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    int32_t restart = report->epochs[report->epoch_count - 1].restart;
    uint32_t *indexes = MT_JOB_ARRAY(work, work->record_count, uint32_t), count = 0;

    report->rows = MT_JOB_ARRAY(work, work->record_count, struct mt_job_row);
    report->duplicates = MT_JOB_ARRAY(work, work->record_count, struct mt_job_duplicate);
    for (uint32_t i = 0; i < work->record_count; i++) {
        if (restart_of(&work->records[i]) != restart)
            continue;
        if (count && !is_one_rank(&work->records[indexes[0]], &work->records[i])) {
            add_row(work, indexes, count);
            count = 0;
        }
        indexes[count++] = i;
    }
    add_row(work, indexes, count);
}

static void find_world(struct mt_job_report *report)
{
    int32_t largest = -1, before = -1;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_record_identity *identity = &report->rows[i].record->identity;

        report->seen_count += identity->rank >= 0 && identity->rank != before;
        before = identity->rank;
        if (identity->rank > largest)
            largest = identity->rank;
        if (identity->world <= 0)
            continue;
        report->worlds_differ |=
            report->world_is_known && report->world != (uint32_t)identity->world;
        report->world_is_known = true;
        if ((uint32_t)identity->world > report->world)
            report->world = (uint32_t)identity->world;
    }
    if (largest >= 0 && report->world < (uint32_t)largest + 1) {
        report->worlds_differ |= report->world_is_known;
        report->world = (uint32_t)largest + 1;
    }
}

/* The gaps between the ranks that are there. A rank that a file invents may be INT32_MAX. */
void mt_job_find_missing(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    int64_t next = 0;

    report->missing = MT_JOB_ARRAY(work, report->row_count + 1, struct mt_job_range);
    for (uint32_t i = 0; i <= report->row_count; i++) {
        int64_t rank =
            i < report->row_count ? report->rows[i].record->identity.rank : (int64_t)report->world;

        if (rank > next)
            report->missing[report->missing_ranges++] =
                (struct mt_job_range){(int32_t)next, (int32_t)(rank - 1)};
        if (i < report->row_count && rank >= next)
            next = rank + 1;
    }
    report->missing_count = report->world - report->seen_count;
}

static void count_hosts(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    const char **hosts = MT_JOB_ARRAY(work, report->row_count, const char *);

    for (uint32_t i = 0; i < report->row_count; i++)
        hosts[i] = report->rows[i].record->identity.host;
    qsort(hosts, report->row_count, sizeof *hosts, mt_ascending_text);
    for (uint32_t i = 0; i < report->row_count; i++)
        report->host_count += *hosts[i] && (!i || strcmp(hosts[i], hosts[i - 1]) != 0);
}

MT_DEFINE_POINTER_ORDER(compare_processes, struct mt_rank_record,
                        MT_BY_TEXT(trace_name) || MT_BY_TEXT(trace_sha256) ||
                            MT_BY_TEXT(identity.host) || MT_ASCENDING(identity.process_id))

/* A process without a rank has a row for each of its devices. */
static void count_unranked(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    const struct mt_rank_record **records =
        MT_JOB_ARRAY(work, report->row_count, const struct mt_rank_record *);
    uint32_t count = 0;

    while (count < report->row_count && report->rows[count].record->identity.rank < 0) {
        records[count] = report->rows[count].record;
        count++;
    }
    if (count)
        qsort(records, count, sizeof *records, compare_processes);
    for (uint32_t i = 0; i < count; i++)
        report->unranked_count += !i || compare_processes(&records[i], &records[i - 1]) != 0;
    report->unranked_row_count = count;
}

static void count_rows(struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        report->outcome_counts[record->outcome]++;
        report->planned_count += record->is_dry_run;
        report->incomplete_count += !record->is_complete;
        report->lost_events = mt_add_most_u64(report->lost_events, record->lost_events);
    }
}

MT_DEFINE_ORDER(compare_files, struct mt_job_file, MT_BY_TEXT(path) || MT_BY_TEXT(reason))

static void copy_unreadable(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t count = work->options->unreadable_count;

    report->unreadable = MT_JOB_ARRAY(work, count, struct mt_job_file);
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_file *file = &work->options->unreadable[i];
        const char *path = mt_arena_text(&report->arena, file->path, strlen(file->path));
        const char *reason = mt_arena_text(&report->arena, file->reason, strlen(file->reason));

        report->unreadable[report->unreadable_count++] = (struct mt_job_file){path, reason};
    }
    if (count)
        qsort(report->unreadable, count, sizeof *report->unreadable, compare_files);
}

void mt_job_find_rows(struct mt_job_work *work)
{
    find_epochs(work);
    find_rows(work);
    find_world(work->report);
    count_rows(work->report);
    count_hosts(work);
    count_unranked(work);
    copy_unreadable(work);
}
