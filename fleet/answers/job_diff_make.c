#include "job_diff_make.h"

#include <stdlib.h>

#include "job_diff_work.h"
#include "process_memory.h"

/* Roles and leaves are parts of the allocated peak. */
static enum mt_status check_sizes(const struct mt_job_report *report, struct mt_error *error)
{
    for (uint32_t i = 0; i < report->row_count; i++)
        for (int m = 0; m < MT_JOB_METRIC_COUNT; m++) {
            const struct mt_rank_record *record = report->rows[i].record;
            uint64_t bytes = mt_job_metric_of(record, (enum mt_job_metric)m);

            if (bytes > MT_JOB_DIFF_MAX_BYTES)
                return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                               "%.80s has a record of %llu bytes (%s), which no device has",
                               record->trace_name, (unsigned long long)bytes,
                               mt_job_metric_name((enum mt_job_metric)m));
        }
    return MT_OK;
}

static enum mt_status fill(struct mt_job_diff *diff)
{
    struct mt_job_line_index index = {0};
    enum mt_status status = mt_job_diff_find_classes(diff);

    if (status == MT_OK)
        status = mt_job_diff_find_lines(diff, &index);
    if (status == MT_OK)
        mt_job_diff_count(diff, &index);
    if (status == MT_OK)
        mt_job_diff_count_axes(diff, &index);
    if (status == MT_OK)
        mt_job_diff_order(diff);
    mt_job_line_index_release(&index);
    return status;
}

enum mt_status mt_job_diff_make(const struct mt_job_report *a, const struct mt_job_report *b,
                                struct mt_job_diff **diff, struct mt_error *error)
{
    struct mt_job_diff *made;
    enum mt_status status = check_sizes(a, error);

    *diff = NULL;
    if (status == MT_OK)
        status = check_sizes(b, error);
    if (status != MT_OK)
        return status;
    made = mt_memory_zeroed(1, sizeof *made);
    made->a = a;
    made->b = b;
    status = fill(made);
    if (status != MT_OK) {
        mt_job_diff_free(made);
        return mt_fail(error, status, MT_NO_OFFSET, "too many call paths for one diff");
    }
    *diff = made;
    return MT_OK;
}
