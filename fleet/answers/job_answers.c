/* The answers to a job, in order. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "job_answers.h"
#include "job_report.h"
#include "job_values.h"
#include "job_work.h"
#include "process_memory.h"
#include "sorted.h"

/* Peaks by the number of the step, over all ranks. A record of a long run has merged neighboring
 * steps, so buckets are as wide as the widest merged step, and one that lies in two buckets counts
 * in both. */

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
            const struct mt_record_step step = mt_step_at(record, i);

            span.first = step.first < span.first ? step.first : span.first;
            span.last = step.last > span.last ? step.last : span.last;
            span.width =
                mt_max_u64(span.width, mt_add_most_u64(distance(step.first, step.last), 1));
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
static void add_row_to_steps(struct mt_job_report *report, const struct span *span, uint32_t row,
                             uint64_t *peaks, bool *has)
{
    const struct mt_rank_record *record = report->rows[row].record;

    for (uint32_t b = 0; b < report->step_count; b++)
        has[b] = false;
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step step = mt_step_at(record, i);
        uint64_t last = distance(span->first, step.last) / report->step_width;

        for (uint64_t b = distance(span->first, step.first) / report->step_width; b <= last; b++) {
            peaks[b] =
                has[b] ? mt_max_u64(peaks[b], step.reserved_peak_bytes) : step.reserved_peak_bytes;
            has[b] = true;
            add_step(&report->steps[b], &step, row);
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

static void job_find_steps(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    struct span span = find_span(report);
    uint64_t peaks[MT_JOB_STEPS];
    bool has[MT_JOB_STEPS];

    if (!span.width)
        return;
    uint64_t length = distance(span.first, span.last); /* less 1 */
    report->step_width = mt_max_u64(span.width, length / MT_JOB_STEPS + 1);
    report->step_count = (uint32_t)(length / report->step_width + 1);
    report->steps = MT_JOB_ARRAY(work, report->step_count, struct mt_job_step);
    for (uint32_t i = 0; i < report->row_count; i++)
        add_row_to_steps(report, &span, i, peaks, has);
    close_gaps(report, &span);
}

/* Memory that each step leaves behind on each rank. */

static void job_find_growth(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (!record->growth_is_judged)
            continue;
        report->growing_count += record->growth_bytes_per_step > 0;
        work->values[count++] = (struct mt_job_value){record->growth_bytes_per_step, i};
    }
    report->growth = mt_job_spread_of(work->values, count);
}

/* The groups of each axis, and how much of the variance is between them.
 *
 * With d = x - min, shifted so that d < 2^40, and n <= 2^22 rows, all sums fit into 128 bits:
 *     between = sum over groups (D_g^2 / n_g) - D^2 / n,   total = sum d^2 - D^2 / n. */

struct variance {
    uint64_t min;
    unsigned shift;
    unsigned __int128 sum, squares, between;
    uint32_t count;
};

/* Rows with a known coordinate, by coordinate. */
static uint32_t sort_rows(struct mt_job_work *work, uint32_t axis, struct mt_job_value *order)
{
    const struct mt_job_report *report = work->report;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count; i++)
        if (report->rows[i].coordinates[axis] != MT_NO_ROW)
            order[count++] = (struct mt_job_value){report->rows[i].coordinates[axis], i};
    mt_job_values_sort(order, count);
    return count;
}

static void add_group(struct variance *variance, const struct mt_job_value *values, uint32_t count)
{
    unsigned __int128 sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t distance = (values[i].value - variance->min) >> variance->shift;

        sum += distance;
        variance->squares += (unsigned __int128)distance * distance;
    }
    variance->sum += sum;
    variance->between += sum * sum / count;
    variance->count += count;
}

static uint32_t explained(const struct variance *variance)
{
    unsigned __int128 mean = variance->sum * variance->sum / variance->count;
    unsigned __int128 between = variance->between > mean ? variance->between - mean : 0;
    unsigned __int128 total = variance->squares > mean ? variance->squares - mean : 0;

    return mt_job_ppm(between < total ? between : total, total);
}

static void fill_roles(const struct mt_job_report *report, const struct mt_job_value *order,
                       uint32_t count, struct mt_job_group *group)
{
    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        unsigned __int128 sum = 0;

        for (uint32_t i = 0; i < count; i++)
            sum += report->rows[order[i].row].record->role_bytes[role];
        group->role_bytes[role] = (uint64_t)(sum / count);
    }
}

static struct mt_job_spread spread_of(struct mt_job_work *work, const struct mt_job_value *order,
                                      uint32_t count, enum mt_job_metric metric)
{
    for (uint32_t i = 0; i < count; i++)
        work->values[i] = (struct mt_job_value){
            mt_job_metric_of(work->report->rows[order[i].row].record, metric), order[i].row};
    return mt_job_spread_of(work->values, count);
}

/* Finds the group with the largest mean, and the role in which it exceeds the mean of the groups by
 * most. */
static void find_heavy(struct mt_job_axis *axis)
{
    unsigned __int128 sum = 0, roles[MT_ROLE_COUNT] = {0};

    for (uint32_t i = 0; i < axis->group_count; i++) {
        const struct mt_job_group *group = &axis->groups[i];

        sum += group->reserved.mean;
        for (int role = 0; role < MT_ROLE_COUNT; role++)
            roles[role] += group->role_bytes[role];
        if (group->reserved.mean > axis->groups[axis->heavy].reserved.mean)
            axis->heavy = i;
    }
    axis->mean_bytes = (uint64_t)(sum / axis->group_count);
    axis->imbalance_ppm =
        mt_job_ppm(axis->groups[axis->heavy].reserved.mean - axis->mean_bytes, axis->mean_bytes);
    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        uint64_t more = mt_sub_or_0_u64(axis->groups[axis->heavy].role_bytes[role],
                                        (uint64_t)(roles[role] / axis->group_count));

        if (more > axis->heavy_role_bytes) {
            axis->heavy_role = (enum mt_role)role;
            axis->heavy_role_bytes = more;
        }
    }
}

static void fill_axis(struct mt_job_work *work, uint32_t index, struct mt_job_value *order)
{
    struct mt_job_report *report = work->report;
    struct mt_job_axis *axis = &report->axes[index];
    struct variance variance = {.min = report->reserved.min};
    uint32_t count = sort_rows(work, index, order);

    while ((report->reserved.max - report->reserved.min) >> variance.shift >> 40)
        variance.shift++;
    axis->groups = MT_JOB_ARRAY(work, count, struct mt_job_group);
    for (uint32_t i = 0, end; i < count; i = end) {
        struct mt_job_group *group = &axis->groups[axis->group_count++];

        for (end = i; end < count && order[end].value == order[i].value;)
            end++;
        group->coordinate = (uint32_t)order[i].value;
        group->allocated = spread_of(work, order + i, end - i, MT_JOB_ALLOCATED);
        group->reserved = spread_of(work, order + i, end - i, MT_JOB_RESERVED);
        add_group(&variance, work->values, end - i);
        fill_roles(report, order + i, end - i, group);
    }
    if (count) {
        axis->explained_ppm = explained(&variance);
        find_heavy(axis);
    }
}

/* Has the axis a share of the variance of its own? One with a row at each coordinate has all. */
static bool has_share(const struct mt_job_report *report, const struct mt_job_axis *axis)
{
    return axis->group_count >= 2 && axis->group_count < report->row_count;
}

static uint32_t rows_at(const struct mt_job_axis *axis, uint32_t coordinate)
{
    uint32_t low = 0;

    MT_BISECT(low, axis->group_count, middle, axis->groups[middle].coordinate < coordinate);
    return low < axis->group_count ? axis->groups[low].reserved.count : 0;
}

/* Do two axes split the rows independently: has each pair of coordinates its n_a * n_b / n rows?
 * Products fit: there are at most 2^22 rows. */
static bool are_independent(const struct mt_job_report *report, uint32_t a, uint32_t b,
                            struct mt_job_value *order)
{
    const uint64_t rows = report->row_count;

    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t *coordinates = report->rows[i].coordinates;

        if (coordinates[a] == MT_NO_ROW || coordinates[b] == MT_NO_ROW)
            return false;
        order[i] = (struct mt_job_value){(uint64_t)coordinates[a] << 32 | coordinates[b], i};
    }
    mt_job_values_sort(order, (uint32_t)rows);
    for (uint32_t i = 0, end; i < rows; i = end) {
        const uint64_t pair = order[i].value;

        for (end = i; end < rows && order[end].value == pair;)
            end++;
        if ((end - i) * rows != (uint64_t)rows_at(&report->axes[a], (uint32_t)(pair >> 32)) *
                                    rows_at(&report->axes[b], (uint32_t)pair))
            return false;
    }
    return true;
}

/* Shares of the variance add up only if all axes are independent of each other. */
static bool axes_overlap(const struct mt_job_report *report, struct mt_job_value *order)
{
    for (uint32_t a = 0; a < report->axis_count; a++)
        for (uint32_t b = a + 1; b < report->axis_count; b++)
            if (has_share(report, &report->axes[a]) && has_share(report, &report->axes[b]) &&
                !are_independent(report, a, b, order))
                return true;
    return false;
}

static void job_find_groups(struct mt_job_work *work)
{
    struct mt_job_value *order = MT_JOB_ARRAY(work, work->report->row_count, struct mt_job_value);

    for (uint32_t i = 0; i < work->report->axis_count; i++)
        fill_axis(work, i, order);
    work->report->axes_overlap = axes_overlap(work->report, order);
}

/* The bytes of each site at the allocated peaks, over all rows. A row without a site counts with 0
 * bytes. */

/* By site and role; the last site is MT_NO_PATH. */
static size_t cell_of(const struct mt_job_work *work, const struct mt_record_leaf *leaf)
{
    size_t site = leaf->site == MT_NO_PATH ? work->set->path_count : leaf->site;

    return site * MT_ROLE_COUNT + (size_t)leaf->role;
}

/* The first row without a site has the minimum, 0 bytes. To find it in one pass over the rows, each
 * site records the row after the last one that had it. */
struct seen {
    uint32_t next_row;   /* the row after the last one that has it */
    uint32_t absent_row; /* the first that lacks it; MT_NO_ROW */
    uint64_t row_bytes;  /* of the row that is added: call paths of one site are one */
};

static void see(struct seen *seen, uint32_t row)
{
    if (seen->next_row < row && seen->absent_row == MT_NO_ROW)
        seen->absent_row = seen->next_row;
    seen->next_row = row + 1;
}

/* Rows ascend, so the first among equals stays. */
static void add_row_to_path(struct mt_job_path *path, struct seen *seen, uint32_t row)
{
    uint64_t bytes = seen->row_bytes;

    if (!bytes)
        return; /* another leaf of the row has added it */
    see(seen, row);
    if (!path->row_count || bytes < path->min_bytes) {
        path->min_bytes = bytes;
        path->min_row = row;
    }
    if (!path->row_count || bytes > path->max_bytes) {
        path->max_bytes = bytes;
        path->max_row = row;
    }
    path->sum_bytes += bytes;
    path->row_count++;
    seen->row_bytes = 0;
}

MT_DEFINE_ORDER(compare_paths, struct mt_job_path,
                MT_DESCENDING(sum_bytes) || MT_ASCENDING(path) || MT_ASCENDING(role))

static void finish(const struct mt_job_report *report, const struct seen *seen,
                   struct mt_job_path *path)
{
    uint32_t absent = seen->absent_row;

    if (absent == MT_NO_ROW && seen->next_row < report->row_count)
        absent = seen->next_row;
    if (absent != MT_NO_ROW && path->min_bytes) {
        path->min_bytes = 0;
        path->min_row = absent;
    }
    path->mean_bytes = (uint64_t)(path->sum_bytes / report->row_count);
}

/* The cells that are in use, by number of the cell. */
struct cells {
    uint32_t *index; /* of a cell: 1 + its path in the report, 0 = none yet */
    struct seen *seen;
};

static uint32_t index_of(struct mt_job_work *work, struct cells *cells,
                         const struct mt_record_leaf *leaf)
{
    uint32_t *index = &cells->index[cell_of(work, leaf)];

    if (!*index) {
        struct mt_job_path *path = &work->report->paths[work->report->path_count];

        path->path = leaf->site;
        path->role = leaf->role;
        cells->seen[work->report->path_count] = (struct seen){0, MT_NO_ROW, 0};
        *index = ++work->report->path_count;
    }
    return *index - 1;
}

static void add_rows(struct mt_job_work *work, struct cells *cells)
{
    struct mt_job_report *report = work->report;
    uint32_t indexes[MT_RECORD_LEAVES];

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_rank_record *record = report->rows[r].record;

        for (uint32_t i = 0; i < record->leaf_count; i++) {
            const struct mt_record_leaf leaf = mt_leaf_at(record, i);

            indexes[i] = index_of(work, cells, &leaf);
            cells->seen[indexes[i]].row_bytes += leaf.bytes;
        }
        for (uint32_t i = 0; i < record->leaf_count; i++)
            add_row_to_path(&report->paths[indexes[i]], &cells->seen[indexes[i]], r);
    }
}

/* An upper bound of the number of cells in use. */
static uint64_t most_paths(const struct mt_job_work *work)
{
    uint64_t leaves = 0, cells = ((uint64_t)work->set->path_count + 1) * MT_ROLE_COUNT;

    for (uint32_t r = 0; r < work->report->row_count; r++)
        leaves += work->report->rows[r].record->leaf_count;
    return mt_min_u64(leaves, cells);
}

static void job_find_paths(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint64_t most = most_paths(work);
    struct cells cells;

    if (most >= UINT32_MAX)
        mt_memory_end();
    report->paths = MT_JOB_ARRAY(work, most, struct mt_job_path);
    cells.index =
        mt_memory_zeroed((size_t)work->set->path_count + 1, MT_ROLE_COUNT * sizeof *cells.index);
    cells.seen = mt_memory_zeroed((size_t)most + 1, sizeof *cells.seen);
    add_rows(work, &cells);
    for (uint32_t i = 0; i < report->path_count; i++)
        finish(report, &cells.seen[i], &report->paths[i]);
    if (report->path_count)
        qsort(report->paths, report->path_count, sizeof *report->paths, compare_paths);
    free(cells.index);
    free(cells.seen);
}

/* An answer may read what those before it have filled. These follow the axes. */
static mt_job_answer *const answers[] = {
    mt_job_find_missing, mt_job_find_needs,    mt_job_find_clusters, job_find_groups,
    mt_job_find_death,   mt_job_find_outliers, job_find_paths,       job_find_growth,
    job_find_steps,      mt_job_find_devices,
};

/* The set is sorted by job, so the records of a job are adjacent. */
static enum mt_status choose_job(struct mt_job_work *work, struct mt_error *error)
{
    const char *wanted = work->options->job;
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
    const char *other = *names[0].name ? names[0].name : names[count - 1].name; /* names differ */
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
    if (status != MT_OK)
        return status;
    work->values = MT_JOB_ARRAY(work, work->record_count, struct mt_job_value);
    mt_job_find_rows(work);
    mt_job_find_parameters(work);
    status = mt_job_find_axes(work, error);
    for (size_t i = 0; i < MT_ARRAY_LEN(answers) && status == MT_OK; i++)
        answers[i](work);
    return status;
}

enum mt_status mt_job_report_make(const struct mt_rank_set *set,
                                  const struct mt_job_options *options,
                                  struct mt_job_report **report, struct mt_error *error)
{
    struct mt_job_work work = {.set = set, .options = options};

    *report = NULL;
    MT_CHECK(error, set->is_sorted);
    work.report = mt_memory_zeroed(1, sizeof *work.report);
    work.report->set = set;
    enum mt_status status = fill(&work, error);
    if (status == MT_OK)
        *report = work.report;
    else
        mt_job_report_free(work.report);
    return status;
}
