/* The answers to a job, in order. */
#include "job_answers.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "job_values.h"
#include "job_work.h"
#include "process_memory.h"

/* An answer may read what those before it have filled. */
static mt_job_answer *const answers[] = {
    mt_job_find_rows,     mt_job_find_parameters, mt_job_find_axes,   mt_job_find_missing,
    mt_job_find_needs,    mt_job_find_clusters,   mt_job_find_groups, mt_job_find_death,
    mt_job_find_outliers, mt_job_find_paths,      mt_job_find_growth, mt_job_find_steps,
    mt_job_find_devices,
};

/* The set is sorted by job, so the records of a job are adjacent. */
static enum mt_status choose_job(struct mt_job_work *work, struct mt_error *error)
{
    const char *wanted = work->options->job, *other;
    struct mt_job_name *names;
    uint32_t count, first = 0;

    mt_job_names(work->set, &work->report->arena, &names, &count);
    if (!count)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "there is no record of a rank");
    if (!wanted && count > 1)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "there are %u jobs, '%.60s' and others: choose one", (unsigned)count,
                       names[0].name);
    for (uint32_t i = 0; i < count; first += names[i++].record_count) {
        if (wanted && strcmp(names[i].name, wanted) != 0)
            continue;
        work->records = work->set->records + first;
        work->record_count = names[i].record_count;
        work->report->job = names[i].name;
        return MT_OK;
    }
    other = *names[0].name ? names[0].name : names[count - 1].name; /* names differ */
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "there is no job '%.100s'%s%.60s%s", wanted,
                   *other ? "; there is '" : ": no trace names its job", other, *other ? "'" : "");
}

static enum mt_status fill(struct mt_job_work *work, struct mt_error *error)
{
    enum mt_status status = choose_job(work, error);

    if (status == MT_OK && work->record_count > MT_JOB_MAX_ROWS)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "the job has %u records, and at most %u are supported",
                       (unsigned)work->record_count, MT_JOB_MAX_ROWS);
    if (status == MT_OK)
        work->values = MT_JOB_ARRAY(work, work->record_count, struct mt_job_value);
    for (size_t i = 0; i < MT_ARRAY_LEN(answers) && status == MT_OK; i++)
        status = answers[i](work, error);
    return status;
}

enum mt_status mt_job_report_make(const struct mt_rank_set *set,
                                  const struct mt_job_options *options,
                                  struct mt_job_report **report, struct mt_error *error)
{
    struct mt_job_work work = {.set = set, .options = options};
    enum mt_status status;

    *report = NULL;
    MT_CHECK(error, set->is_sorted);
    work.report = mt_memory_zeroed(1, sizeof *work.report);
    work.report->set = set;
    status = fill(&work, error);
    if (status == MT_OK)
        *report = work.report;
    else
        mt_job_report_free(work.report);
    return status;
}
