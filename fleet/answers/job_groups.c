/* The groups of each axis, and how much of the variance is between them.
 *
 * With d = x - min, shifted so that d < 2^40, and n <= 2^22 rows, all sums fit into 128 bits:
 *     between = sum over groups (D_g^2 / n_g) - D^2 / n,   total = sum d^2 - D^2 / n. */
#include "job_axis.h"
#include "job_values.h"

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
    uint32_t low = 0, high = axis->group_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (axis->groups[middle].coordinate < coordinate)
            low = middle + 1;
        else
            high = middle;
    }
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

enum mt_status mt_job_find_groups(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_value *order = MT_JOB_ARRAY(work, work->report->row_count, struct mt_job_value);

    (void)error;
    for (uint32_t i = 0; i < work->report->axis_count; i++)
        fill_axis(work, i, order);
    work->report->axes_overlap = axes_overlap(work->report, order);
    return MT_OK;
}
