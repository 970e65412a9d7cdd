/* The parameters by which a row is compared with others. A process that ran out of memory, or whose
 * trace is cut, may have reached its peak with other roles than a whole run. Its parameters count
 * as unknown, so that a broken rank never looks like a stage of its own. */
#include "job_work.h"

bool mt_job_is_whole(const struct mt_rank_record *record)
{
    return record->is_complete && !record->has_death && record->outcome != MT_OUTCOME_CUT;
}

enum mt_status mt_job_find_parameters(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;

    (void)error;
    for (uint32_t i = 0; i < report->row_count; i++)
        if (mt_job_is_whole(report->rows[i].record))
            report->rows[i].parameter_hash = report->rows[i].record->parameter_hash;
    return MT_OK;
}
