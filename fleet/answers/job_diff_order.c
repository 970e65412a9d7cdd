/* Sorts by the size of the change, in an order that does not depend on which job is A. */
#include <stdlib.h>
#include <string.h>

#include "job_diff_work.h"

/* Among two lines of one size, the first in the order of paths and roles, so that the choice does
 * not depend on which job is A. */
static int compare_lines(const struct mt_job_diff *diff, uint32_t x, uint32_t y)
{
    const struct mt_job_diff_line *one = &diff->lines[x], *other = &diff->lines[y];
    uint32_t p, q;
    int order;

    if (one->role != other->role)
        return one->role < other->role ? -1 : 1;
    if (one->a_path == other->a_path)
        return 0;
    if (one->a_path == MT_NO_PATH || other->a_path == MT_NO_PATH)
        return one->a_path == MT_NO_PATH ? 1 : -1;
    /* The earlier of the two paths of a line that moved. */
    p = mt_job_diff_compare_paths(&diff->paths, one->a_path, one->b_path) <= 0 ? one->a_path
                                                                               : one->b_path;
    q = mt_job_diff_compare_paths(&diff->paths, other->a_path, other->b_path) <= 0 ? other->a_path
                                                                                   : other->b_path;
    order = mt_job_diff_compare_paths(&diff->paths, p, q);
    return order ? order : (x > y) - (x < y);
}

void mt_job_choose_line(const struct mt_job_diff *diff, uint32_t line, int64_t bytes,
                        uint32_t *chosen, int64_t *chosen_bytes)
{
    uint64_t size = mt_job_size_of(bytes), best = mt_job_size_of(*chosen_bytes);

    if (!size || size < best ||
        (size == best && *chosen != MT_NO_LINE && compare_lines(diff, line, *chosen) > 0))
        return;
    *chosen = line;
    *chosen_bytes = bytes;
}

/* A line's place among those that are sorted. */
struct sorted_line {
    const struct mt_job_diff *diff;
    uint32_t line;
};

static int by_change(const void *a, const void *b)
{
    const struct sorted_line *x = a, *y = b;
    const struct mt_job_change *one = &x->diff->lines[x->line].change;
    const struct mt_job_change *other = &x->diff->lines[y->line].change;
    uint64_t mean = mt_job_size_of(one->mean_bytes), second = mt_job_size_of(other->mean_bytes);

    if (mean != second)
        return mean > second ? -1 : 1;
    mean = mt_max_u64(mt_job_size_of(one->max_bytes), mt_job_size_of(one->min_bytes));
    second = mt_max_u64(mt_job_size_of(other->max_bytes), mt_job_size_of(other->min_bytes));
    if (mean != second)
        return mean > second ? -1 : 1;
    return compare_lines(x->diff, x->line, y->line);
}

/* Drops lines merged with their partner, and renumbers those of classes and groups. */
static void sort_lines(struct mt_job_diff *diff)
{
    size_t room = (size_t)diff->line_count + 1;
    struct sorted_line *order = mt_arena_array(&diff->arena, room, sizeof *order);
    struct mt_job_diff_line *lines = mt_arena_array(&diff->arena, room, sizeof *lines);
    uint32_t *places = mt_arena_array(&diff->arena, room, sizeof *places), count = 0;

    for (uint32_t i = 0; i < diff->line_count; i++)
        if (diff->lines[i].is_in_a || diff->lines[i].is_in_b)
            order[count++] = (struct sorted_line){diff, i};
    if (count)
        qsort(order, count, sizeof *order, by_change);
    for (uint32_t i = 0; i < count; i++) {
        lines[i] = diff->lines[order[i].line];
        places[order[i].line] = i;
    }
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].line != MT_NO_LINE)
            diff->classes[i].line = places[diff->classes[i].line];
    for (uint32_t a = 0; a < diff->axis_count; a++)
        for (uint32_t g = 0; g < diff->axes[a].group_count; g++)
            if (diff->axes[a].groups[g].line != MT_NO_LINE)
                diff->axes[a].groups[g].line = places[diff->axes[a].groups[g].line];
    diff->lines = lines;
    diff->line_count = count;
}

static int by_library(const void *a, const void *b)
{
    const struct mt_job_diff_library *x = a, *y = b;
    uint64_t one = mt_job_size_of(x->change.mean_bytes);
    uint64_t other = mt_job_size_of(y->change.mean_bytes);

    if (one != other)
        return one > other ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Drops names without a row in a compared class. */
static void sort_libraries(struct mt_job_diff *diff)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < diff->library_count; i++)
        if (diff->libraries[i].change.a_sum_bytes || diff->libraries[i].change.b_sum_bytes)
            diff->libraries[kept++] = diff->libraries[i];
    diff->library_count = kept;
    if (kept)
        qsort(diff->libraries, kept, sizeof *diff->libraries, by_library);
}

/* Classes of one diff are in one array, so pointers order equal ones. */
static int by_reserved(const void *a, const void *b)
{
    const struct mt_job_class *const *x = a, *const *y = b;
    uint64_t one = mt_job_size_of(mt_job_class_change(*x, MT_JOB_RESERVED));
    uint64_t other = mt_job_size_of(mt_job_class_change(*y, MT_JOB_RESERVED));

    if (one != other)
        return one > other ? -1 : 1;
    one = mt_job_size_of(mt_job_class_change(*x, MT_JOB_ALLOCATED));
    other = mt_job_size_of(mt_job_class_change(*y, MT_JOB_ALLOCATED));
    if (one != other)
        return one > other ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static void order_classes(struct mt_job_diff *diff)
{
    size_t room = (size_t)diff->class_count + 1;
    const struct mt_job_class **sorted = mt_arena_array(&diff->arena, room, sizeof *sorted);
    uint32_t count = 0;

    diff->order = mt_arena_array(&diff->arena, room, sizeof *diff->order);
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].is_compared)
            sorted[count++] = &diff->classes[i];
    if (count)
        qsort(sorted, count, sizeof *sorted, by_reserved);
    for (uint32_t i = 0; i < count; i++)
        diff->order[i] = (uint32_t)(sorted[i] - diff->classes);
}

void mt_job_diff_order(struct mt_job_diff *diff)
{
    sort_lines(diff);
    sort_libraries(diff);
    order_classes(diff);
}
