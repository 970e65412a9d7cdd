/* The arrangement of the ranks: the first source that has it. */
#include "job_axis.h"

/* Coordinates of axes whose stride is known follow from the number of the rank. */
static void fill_coordinates(struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;

        for (uint32_t a = 0; a < report->axis_count && rank >= 0; a++)
            if (report->axes[a].stride)
                report->rows[i].coordinates[a] =
                    (uint32_t)rank / report->axes[a].stride % report->axes[a].size;
    }
}

enum mt_status mt_job_find_axes(struct mt_job_work *work, struct mt_error *error)
{
    static const struct {
        enum mt_axes_source source;
        mt_job_answer *find;
    } sources[] = {
        {MT_AXES_OPTION, mt_job_axes_of_option},
        {MT_AXES_RECORDED, mt_job_axes_recorded},
        {MT_AXES_GROUPS, mt_job_axes_of_groups},
        {MT_AXES_COMMUNICATORS, mt_job_axes_of_communicators},
        {MT_AXES_FOUND, mt_job_axes_found},
    };
    struct mt_job_report *report = work->report;

    report->axes = MT_JOB_ARRAY(work, MT_JOB_AXES, struct mt_job_axis);
    for (size_t i = 0; i < MT_ARRAY_LEN(sources); i++) {
        enum mt_status status = sources[i].find(work, error);

        if (status != MT_OK)
            return status;
        if (report->axis_count) {
            report->axes_source = sources[i].source;
            fill_coordinates(report);
            break;
        }
    }
    return MT_OK;
}
