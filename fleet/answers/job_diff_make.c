/* Makes the diff of two jobs: chooses the rows to compare, then computes the changes. */
#include <stdlib.h>
#include <string.h>

#include "job_diff.h"
#include "job_diff_make.h"
#include "job_diff_work.h"
#include "process_memory.h"

/* Chooses the rows of two jobs to compare: the first rule that gives a class with rows of both.
 *
 * 1. Rank and device, if the jobs have the same number of ranks, their known axes agree (inferred
 * axes contradict nothing), and no two processes have one position.
 * 2. The position on the axes along which ranks differ in one of the jobs, if both have them, with
 * the
 *    same sizes.
 * 3. Parameters of the same sizes.
 * 4. Nothing: all rows are one class. */

/* The common key of a class of rows. */
struct keyed {
    uint32_t key[MT_JOB_AXES];
    uint32_t row;
    bool is_of_b, is_unknown; /* unknown: matches nothing */
};

struct matcher {
    struct mt_job_diff *diff;
    struct keyed *rows;
    uint32_t count;
    uint32_t a_axes[MT_JOB_AXES], b_axes[MT_JOB_AXES], axis_count; /* of both, by A's order */
};

static bool worlds_agree(const struct mt_job_report *a, const struct mt_job_report *b)
{
    if (a->world_is_known == b->world_is_known)
        return !a->world_is_known || a->world == b->world;
    return a->world_is_known ? b->world <= a->world : a->world <= b->world;
}

static bool is_told(const struct mt_job_report *report)
{
    return report->axes_source != MT_AXES_NONE && report->axes_source != MT_AXES_FOUND;
}

static bool axes_are_equal(const struct mt_job_report *a, const struct mt_job_report *b)
{
    if (a->axis_count != b->axis_count)
        return false;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (strcmp(a->axes[i].name, b->axes[i].name) != 0 || a->axes[i].size != b->axes[i].size ||
            a->axes[i].stride != b->axes[i].stride)
            return false;
    return true;
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->is_unknown != y->is_unknown)
        return x->is_unknown ? 1 : -1;
    for (int i = 0; i < MT_JOB_AXES; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    if (x->is_of_b != y->is_of_b)
        return x->is_of_b ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static bool is_one_class(const struct keyed *x, const struct keyed *y)
{
    return !x->is_unknown && !y->is_unknown && !memcmp(x->key, y->key, sizeof x->key);
}

static void fill_class(struct mt_job_class *class, uint32_t *numbers, const struct keyed *rows,
                       uint32_t count)
{
    *class = (struct mt_job_class){.a_rows = numbers, .line = MT_NO_LINE};
    memset(class->coordinates, 0xff, sizeof class->coordinates);
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = rows[i].row;
        *(rows[i].is_of_b ? &class->b_count : &class->a_count) += 1;
    }
    class->b_rows = numbers + class->a_count;
    class->is_compared = class->a_count && class->b_count;
}

/* Classes of the keys. */
static void make_classes(struct matcher *matcher)
{
    struct mt_job_diff *diff = matcher->diff;
    uint32_t *numbers = mt_arena_array(&diff->arena, (size_t)matcher->count + 1, sizeof *numbers);

    diff->class_count = diff->compared_count = diff->a_compared_rows = diff->b_compared_rows = 0;
    if (matcher->count)
        qsort(matcher->rows, matcher->count, sizeof *matcher->rows, compare_keyed);
    for (uint32_t i = 0, end; i < matcher->count; i = end) {
        struct mt_job_class *class = &diff->classes[diff->class_count++];

        for (end = i + 1;
             end < matcher->count && is_one_class(&matcher->rows[i], &matcher->rows[end]);)
            end++;
        fill_class(class, numbers + i, matcher->rows + i, end - i);
        if (!class->is_compared)
            continue;
        diff->compared_count++;
        diff->a_compared_rows += class->a_count;
        diff->b_compared_rows += class->b_count;
    }
}

typedef void set_key(const struct matcher *matcher, const struct mt_job_row *row,
                     struct keyed *keyed);

static void match_by(struct matcher *matcher, set_key *set)
{
    const struct mt_job_report *a = matcher->diff->a, *b = matcher->diff->b;

    for (uint32_t i = 0; i < matcher->count; i++) {
        struct keyed *keyed = &matcher->rows[i];
        bool is_of_b = i >= a->row_count;

        *keyed = (struct keyed){.row = is_of_b ? i - a->row_count : i, .is_of_b = is_of_b};
        set(matcher, is_of_b ? &b->rows[keyed->row] : &a->rows[keyed->row], keyed);
    }
    make_classes(matcher);
}

static void set_rank(const struct matcher *matcher, const struct mt_job_row *row,
                     struct keyed *keyed)
{
    (void)matcher;
    keyed->key[0] = (uint32_t)(row->record->identity.rank + 1);
    keyed->key[1] = row->record->device;
}

static bool match_ranks(struct matcher *matcher)
{
    const struct mt_job_diff *diff = matcher->diff;

    if (!worlds_agree(diff->a, diff->b) ||
        (is_told(diff->a) && is_told(diff->b) && !axes_are_equal(diff->a, diff->b)))
        return false;
    match_by(matcher, set_rank);
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].a_count > 1 || diff->classes[i].b_count > 1)
            return false;
    return true;
}

/* The matching axis of the other job, or MT_NO_ROW. */
static uint32_t axis_like(const struct mt_job_report *report, const struct mt_job_axis *axis)
{
    for (uint32_t i = 0; i < report->axis_count; i++)
        if (!strcmp(report->axes[i].name, axis->name) && report->axes[i].size == axis->size)
            return i;
    return MT_NO_ROW;
}

/* The axes that separate ranks in one of the jobs. Returns false if the other has no match for one
 * of them. */
static bool find_separating(struct matcher *matcher)
{
    const struct mt_job_report *a = matcher->diff->a, *b = matcher->diff->b;

    for (uint32_t i = 0; i < a->axis_count; i++) {
        uint32_t other = axis_like(b, &a->axes[i]);

        if (other == MT_NO_ROW ? a->axes[i].separates
                               : a->axes[i].separates || b->axes[other].separates) {
            if (other == MT_NO_ROW)
                return false;
            matcher->a_axes[matcher->axis_count] = i;
            matcher->b_axes[matcher->axis_count++] = other;
        }
    }
    for (uint32_t i = 0; i < b->axis_count; i++)
        if (b->axes[i].separates && axis_like(a, &b->axes[i]) == MT_NO_ROW)
            return false;
    return matcher->axis_count > 0;
}

static void set_place(const struct matcher *matcher, const struct mt_job_row *row,
                      struct keyed *keyed)
{
    const uint32_t *axes = keyed->is_of_b ? matcher->b_axes : matcher->a_axes;

    for (uint32_t i = 0; i < matcher->axis_count; i++) {
        keyed->key[i] = row->coordinates[axes[i]];
        keyed->is_unknown |= keyed->key[i] == MT_NO_ROW;
    }
}

static bool match_groups(struct matcher *matcher)
{
    if (!find_separating(matcher))
        return false;
    match_by(matcher, set_place);
    return true;
}

static void set_parameters(const struct matcher *matcher, const struct mt_job_row *row,
                           struct keyed *keyed)
{
    (void)matcher;
    keyed->key[0] = (uint32_t)(row->parameter_hash >> 32);
    keyed->key[1] = (uint32_t)row->parameter_hash;
    keyed->is_unknown = !row->parameter_hash;
}

static bool match_parameters(struct matcher *matcher)
{
    match_by(matcher, set_parameters);
    return true;
}

static void set_nothing(const struct matcher *matcher, const struct mt_job_row *row,
                        struct keyed *keyed)
{
    (void)matcher;
    (void)row;
    (void)keyed;
}

static bool match_all(struct matcher *matcher)
{
    match_by(matcher, set_nothing);
    return true;
}

static bool separates_in(const struct mt_job_report *report, const struct mt_job_axis *axis)
{
    uint32_t like = axis_like(report, axis);

    return like != MT_NO_ROW && report->axes[like].separates;
}

static void add_axis(struct mt_job_diff *diff, const struct mt_job_axis *axis)
{
    diff->axes[diff->axis_count++] = (struct mt_job_diff_axis){
        .name = axis->name,
        .size = axis->size,
        .separates = separates_in(diff->a, axis) || separates_in(diff->b, axis)};
}

/* For ranks, the axes of the job with better knowledge, unless inferred ones differ. */
static const struct mt_job_report *who_knows_axes(const struct mt_job_diff *diff)
{
    const struct mt_job_report *a = diff->a, *b = diff->b;

    if (is_told(a) != is_told(b))
        return is_told(a) ? a : b;
    if (a->axis_count && b->axis_count)
        return axes_are_equal(a, b) ? a : NULL;
    return a->axis_count ? a : b->axis_count ? b : NULL;
}

static void place_ranks(struct mt_job_diff *diff)
{
    const struct mt_job_report *known = who_knows_axes(diff);

    for (uint32_t a = 0; known && a < known->axis_count; a++)
        add_axis(diff, &known->axes[a]);
    for (uint32_t i = 0; i < diff->class_count; i++) {
        struct mt_job_class *class = &diff->classes[i];
        const uint32_t *rows = known == diff->b ? class->b_rows : class->a_rows;

        if (known && class->is_compared)
            memcpy(class->coordinates, known->rows[rows[0]].coordinates, sizeof class->coordinates);
    }
}

static void place_groups(struct matcher *matcher)
{
    struct mt_job_diff *diff = matcher->diff;

    for (uint32_t a = 0; a < matcher->axis_count; a++)
        add_axis(diff, &diff->a->axes[matcher->a_axes[a]]);
    for (uint32_t i = 0; i < diff->class_count; i++) {
        struct mt_job_class *class = &diff->classes[i];

        for (uint32_t a = 0; a < matcher->axis_count; a++)
            class->coordinates[a] =
                class->a_count ? diff->a->rows[class->a_rows[0]].coordinates[matcher->a_axes[a]]
                               : diff->b->rows[class->b_rows[0]].coordinates[matcher->b_axes[a]];
    }
}

/* Fills match, classes and axes, with coordinates. */
static void job_diff_find_classes(struct mt_job_diff *diff)
{
    static bool (*const ways[])(struct matcher *) = {[MT_MATCH_RANKS] = match_ranks,
                                                     [MT_MATCH_GROUPS] = match_groups,
                                                     [MT_MATCH_PARAMETERS] = match_parameters,
                                                     [MT_MATCH_NONE] = match_all};
    struct matcher matcher = {.diff = diff, .count = diff->a->row_count + diff->b->row_count};

    matcher.rows = mt_memory_zeroed((size_t)matcher.count + 1, sizeof *matcher.rows);
    diff->classes = mt_arena_array(&diff->arena, (size_t)matcher.count + 1, sizeof *diff->classes);
    diff->axes = mt_arena_array(&diff->arena, MT_JOB_AXES, sizeof *diff->axes);
    for (int i = 0; i < (int)MT_ARRAY_LEN(ways); i++) {
        diff->match = (enum mt_job_match)i;
        if (ways[i](&matcher) && diff->compared_count)
            break;
    }
    if (diff->match == MT_MATCH_RANKS)
        place_ranks(diff);
    if (diff->match == MT_MATCH_GROUPS)
        place_groups(&matcher);
    free(matcher.rows);
}

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

enum mt_status mt_job_diff_make(const struct mt_job_report *a, const struct mt_job_report *b,
                                struct mt_job_diff **diff, struct mt_error *error)
{
    struct mt_job_line_index index = {0};
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
    job_diff_find_classes(made);
    mt_job_diff_find_lines(made, &index);
    mt_job_diff_count(made, &index);
    mt_job_diff_count_axes(made, &index);
    mt_job_diff_order(made);
    mt_job_line_index_release(&index);
    *diff = made;
    return MT_OK;
}
