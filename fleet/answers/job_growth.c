/* Memory that each step leaves behind on each rank. */
#include "job_values.h"
#include "job_work.h"

enum mt_status mt_job_find_growth(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    uint32_t count = 0;

    (void)error;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (!record->growth_is_judged)
            continue;
        report->growing_count += record->growth_bytes_per_step > 0;
        work->values[count++] = (struct mt_job_value){record->growth_bytes_per_step, i};
    }
    report->growth = mt_job_spread_of(work->values, count);
    return MT_OK;
}
