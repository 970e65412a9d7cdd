#include "job_report.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

const char *mt_job_metric_name(enum mt_job_metric metric)
{
    static const char *const names[] = {"allocated peak", "reserved peak",
                                        "memory outside the allocator", "needed memory", "growth"};

    _Static_assert(MT_ARRAY_LEN(names) == MT_JOB_METRIC_COUNT, "each metric has a name");
    MT_ASSERT((unsigned)metric < MT_JOB_METRIC_COUNT);
    return names[metric];
}

uint64_t mt_job_metric_of(const struct mt_rank_record *record, enum mt_job_metric metric)
{
    switch (metric) {
    case MT_JOB_ALLOCATED: return record->allocated_peak.bytes;
    case MT_JOB_RESERVED: return record->reserved_peak.bytes;
    case MT_JOB_OUTSIDE: return record->outside_bytes;
    case MT_JOB_NEEDED: return record->needed_bytes;
    case MT_JOB_GROWTH: break;
    }
    return record->growth_bytes_per_step;
}

const char *mt_axes_source_name(enum mt_axes_source source)
{
    static const char *const names[] = {"none",           "option",        "recorded",
                                        "process groups", "communicators", "found"};

    MT_ASSERT((unsigned)source < MT_ARRAY_LEN(names));
    return names[source];
}

const char *mt_outlier_cause_name(enum mt_outlier_cause cause)
{
    static const char *const names[] = {"site", "growth", "library", "unused"};

    MT_ASSERT((unsigned)cause < MT_ARRAY_LEN(names));
    return names[cause];
}

const char *mt_job_site(const struct mt_job_report *report, uint32_t path)
{
    return path == MT_NO_PATH ? "" : mt_rank_set_frame(report->set, path);
}

/* "forward linear.py:134 < step train.py:47": the caller distinguishes uses of common library
 * code. */
const char *mt_job_site_text(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t path)
{
    uint32_t caller = path == MT_NO_PATH ? MT_NO_PATH : report->set->paths[path].parent;

    if (caller == MT_NO_PATH)
        return mt_job_site(report, path);
    return mt_arena_printf(arena, "%s < %s", mt_job_site(report, path),
                           mt_job_site(report, caller));
}

static bool is_of_rank(const struct mt_job_report *report, uint32_t row, int32_t rank)
{
    return row < report->row_count && report->rows[row].record->identity.rank == rank;
}

const char *mt_job_row_name(struct mt_arena *arena, const struct mt_job_report *report,
                            uint32_t row)
{
    const struct mt_rank_record *record = report->rows[row].record;
    int32_t rank = record->identity.rank;

    MT_ASSERT(row < report->row_count);
    if (rank < 0 && report->unranked_row_count == report->unranked_count)
        return record->trace_name;
    if (rank < 0)
        return mt_arena_printf(arena, "%s, device %u", record->trace_name,
                               (unsigned)record->device);
    if (is_of_rank(report, row + 1, rank) || (row && is_of_rank(report, row - 1, rank)))
        return mt_arena_printf(arena, "rank %d, device %u", (int)rank, (unsigned)record->device);
    return mt_arena_printf(arena, "rank %d", (int)rank);
}

void mt_job_names(const struct mt_rank_set *set, struct mt_arena *arena, struct mt_job_name **names,
                  uint32_t *count)
{
    uint32_t jobs = 0;

    MT_ASSERT(set->is_sorted);
    for (uint32_t i = 0; i < set->record_count; i++)
        jobs += !i || strcmp(set->records[i].identity.job, set->records[i - 1].identity.job) != 0;
    *names = mt_arena_array(arena, (size_t)jobs + 1, sizeof **names);
    *count = 0;
    for (uint32_t i = 0; i < set->record_count; i++) {
        const char *job = set->records[i].identity.job;

        if (!i || strcmp(job, (*names)[*count - 1].name) != 0)
            (*names)[(*count)++] = (struct mt_job_name){job, 0};
        (*names)[*count - 1].record_count++;
    }
}

/* September 2001. A smaller time is not Unix time: the importer found no clock in the file. */
#define FIRST_CLOCK_NS UINT64_C(1000000000000000000)

bool mt_job_has_clock(uint64_t t_ns)
{
    return t_ns >= FIRST_CLOCK_NS;
}

void mt_job_report_free(struct mt_job_report *report)
{
    if (!report)
        return;
    mt_arena_release(&report->arena);
    free(report);
}
