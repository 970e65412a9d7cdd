/* Peaks by the number of the step, over all ranks. A record of a long run has merged neighboring
 * steps, so buckets are as wide as the widest merged step, and one that lies in two buckets counts
 * in both. */
#include "job_work.h"
#include "phase.h"

struct span {
    int64_t first, last;
    uint64_t width; /* of the widest step; 0: there is none */
};

static uint64_t distance(int64_t from, int64_t to)
{
    return (uint64_t)to - (uint64_t)from;
}

static struct span find_span(const struct mt_job_report *report)
{
    struct span span = {INT64_MAX, INT64_MIN, 0};

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_rank_record *record = report->rows[r].record;

        for (uint32_t i = 0; i < record->step_count; i++) {
            const struct mt_record_step *step = &record->steps[i];

            span.first = step->first < span.first ? step->first : span.first;
            span.last = step->last > span.last ? step->last : span.last;
            span.width =
                mt_max_u64(span.width, mt_add_most_u64(distance(step->first, step->last), 1));
        }
    }
    return span;
}

static void add_step(struct mt_job_step *bucket, const struct mt_record_step *step, uint32_t row)
{
    if (!bucket->row_count || step->reserved_peak_bytes > bucket->reserved_max_bytes) {
        bucket->reserved_max_bytes = step->reserved_peak_bytes;
        bucket->reserved_max_row = row;
    }
    if (!bucket->row_count || step->allocated_peak_bytes > bucket->allocated_max_bytes) {
        bucket->allocated_max_bytes = step->allocated_peak_bytes;
        bucket->allocated_max_row = row;
    }
}

/* The minimum over rows is the minimum of each row's largest peak in the bucket. */
static void add_row(struct mt_job_report *report, const struct span *span, uint32_t row,
                    uint64_t *peaks, bool *has)
{
    const struct mt_rank_record *record = report->rows[row].record;

    for (uint32_t b = 0; b < report->step_count; b++)
        has[b] = false;
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step *step = &record->steps[i];
        uint64_t last = distance(span->first, step->last) / report->step_width;

        for (uint64_t b = distance(span->first, step->first) / report->step_width; b <= last; b++) {
            peaks[b] = has[b] ? mt_max_u64(peaks[b], step->reserved_peak_bytes)
                              : step->reserved_peak_bytes;
            has[b] = true;
            add_step(&report->steps[b], step, row);
        }
    }
    for (uint32_t b = 0; b < report->step_count; b++) {
        struct mt_job_step *bucket = &report->steps[b];

        if (!has[b])
            continue;
        if (!bucket->row_count || peaks[b] < bucket->reserved_min_bytes)
            bucket->reserved_min_bytes = peaks[b];
        bucket->row_count++;
    }
}

/* Drops buckets without a step. */
static void close_gaps(struct mt_job_report *report, const struct span *span)
{
    uint32_t kept = 0;

    for (uint32_t b = 0; b < report->step_count; b++) {
        uint64_t first = (uint64_t)span->first + b * report->step_width;

        if (!report->steps[b].row_count)
            continue;
        report->steps[b].first = (int64_t)first;
        report->steps[b].last = (int64_t)((uint64_t)span->first +
                                          mt_min_u64(mt_mul_most_u64(b + 1, report->step_width) - 1,
                                                     distance(span->first, span->last)));
        report->steps[kept++] = report->steps[b];
    }
    report->step_count = kept;
}

enum mt_status mt_job_find_steps(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    struct span span = find_span(report);
    uint64_t peaks[MT_JOB_STEPS], length;
    bool has[MT_JOB_STEPS];

    (void)error;
    if (!span.width)
        return MT_OK;
    length = distance(span.first, span.last); /* less 1 */
    report->step_width = mt_max_u64(span.width, length / MT_JOB_STEPS + 1);
    report->step_count = (uint32_t)(length / report->step_width + 1);
    report->steps = MT_JOB_ARRAY(work, report->step_count, struct mt_job_step);
    for (uint32_t i = 0; i < report->row_count; i++)
        add_row(report, &span, i, peaks, has);
    close_gaps(report, &span);
    return MT_OK;
}
