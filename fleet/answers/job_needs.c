/* Memory that a device must have for each rank as it ran. */
#include "job_values.h"
#include "job_work.h"

static struct mt_job_spread spread_of(struct mt_job_work *work, enum mt_job_metric metric)
{
    const struct mt_job_report *report = work->report;

    for (uint32_t i = 0; i < report->row_count; i++)
        work->values[i] =
            (struct mt_job_value){mt_job_metric_of(report->rows[i].record, metric), i};
    return mt_job_spread_of(work->values, report->row_count);
}

/* The smallest limit that serves every rank is the largest of their limits. */
static void find_limit(struct mt_job_report *report)
{
    report->limit_is_known = report->row_count > 0;
    report->needed_is_exact =
        report->row_count > 0 && !report->missing_count && !report->unreadable_count;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        report->needed_is_exact &= record->needed_is_known && record->is_complete;
        report->limit_is_known &= record->allocator_need_is_known;
        if (record->allocator_need_is_known)
            report->limit_bytes = mt_max_u64(report->limit_bytes, record->allocator_need_bytes);
    }
}

uint64_t mt_job_least_difference(const struct mt_job_options *options, uint64_t median)
{
    uint32_t ppm = options->outlier_ppm ? options->outlier_ppm : MT_JOB_DEFAULT_OUTLIER_PPM;
    uint64_t bytes = options->outlier_bytes ? options->outlier_bytes : MT_JOB_DEFAULT_OUTLIER_BYTES;
    unsigned __int128 share = (unsigned __int128)median * ppm / 1000000;

    return share > bytes ? (uint64_t)(share < UINT64_MAX ? share : UINT64_MAX) : bytes;
}

enum mt_status mt_job_find_needs(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;

    (void)error;
    report->reserved = spread_of(work, MT_JOB_RESERVED);
    report->allocated = spread_of(work, MT_JOB_ALLOCATED);
    report->needed = spread_of(work, MT_JOB_NEEDED);
    find_limit(report);
    if (report->reserved.mean)
        report->imbalance_ppm =
            mt_job_ppm(report->reserved.max - report->reserved.mean, report->reserved.mean);
    work->outlier_bytes = mt_job_least_difference(work->options, report->reserved.median);
    return MT_OK;
}
