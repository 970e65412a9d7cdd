/* The changes between two jobs: of each class, then over all of them. */
#include <stdlib.h>
#include <string.h>

#include "job_diff_work.h"
#include "sorted.h"

/* Sums and changes of many numbers, class by class. */

/* Allocates the arrays in `arena`. The caller sets `changes`. */
static void job_tally_init(struct mt_job_tally *tally, struct mt_arena *arena, uint32_t count)
{
    size_t room = (size_t)count + 1;

    *tally = (struct mt_job_tally){.count = count};
    tally->changes = mt_arena_array(arena, room, sizeof *tally->changes);
    tally->a = mt_arena_array(arena, room, sizeof *tally->a);
    tally->b = mt_arena_array(arena, room, sizeof *tally->b);
    tally->sums = mt_arena_array(arena, room, sizeof *tally->sums);
    tally->now = mt_arena_array(arena, room, sizeof *tally->now);
    tally->touched = mt_arena_array(arena, room, sizeof *tally->touched);
    tally->is_touched = mt_arena_array(arena, room, sizeof *tally->is_touched);
}

static void forget_last(struct mt_job_tally *tally)
{
    for (uint32_t i = 0; i < tally->touched_count; i++) {
        uint32_t number = tally->touched[i];

        if (tally->is_touched[number])
            return; /* a class is open */
        tally->a[number] = tally->b[number] = 0;
    }
    tally->touched_count = 0;
}

static void job_tally_add(struct mt_job_tally *tally, uint32_t number, bool is_of_b, uint64_t bytes)
{
    forget_last(tally);
    if (!tally->is_touched[number]) {
        tally->is_touched[number] = true;
        tally->touched[tally->touched_count++] = number;
    }
    *(is_of_b ? &tally->b[number] : &tally->a[number]) += bytes;
}

static void add_change(struct mt_job_change *change, int64_t bytes, uint32_t class)
{
    if (!change->class_count || bytes < change->min_bytes) {
        change->min_bytes = bytes;
        change->min_class = class;
    }
    if (!change->class_count || bytes > change->max_bytes) {
        change->max_bytes = bytes;
        change->max_class = class;
    }
    change->class_count++;
}

/* Ends a class. `touched` and `now` stay valid until the next number is added. */
static void job_tally_close(struct mt_job_tally *tally, const struct mt_job_diff *diff,
                            uint32_t class)
{
    const struct mt_job_class *closed = &diff->classes[class];

    forget_last(tally); /* nothing may have been added since: then this class has nothing */
    for (uint32_t i = 0; i < tally->touched_count; i++) {
        uint32_t number = tally->touched[i];
        struct mt_job_change *change = tally->changes[number];
        int64_t bytes = (int64_t)(tally->b[number] / closed->b_count) -
                        (int64_t)(tally->a[number] / closed->a_count);

        add_change(change, bytes, class);
        change->a_sum_bytes += tally->a[number];
        change->b_sum_bytes += tally->b[number];
        change->a_rows += closed->a_count;
        change->b_rows += closed->b_count;
        tally->sums[number] += bytes;
        tally->now[number] = bytes;
        tally->is_touched[number] = false;
    }
}

/* Finishes changes of numbers for which a class without a value is unknown, not 0. */
static void job_tally_finish(struct mt_job_tally *tally)
{
    for (uint32_t i = 0; i < tally->count; i++) {
        struct mt_job_change *change = tally->changes[i];

        if (change->class_count)
            change->mean_bytes = (int64_t)(tally->sums[i] / (__int128)change->class_count);
    }
}

/* Finishes changes of numbers for which a class without a value has 0 bytes. Takes the total
 * numbers of classes and rows. */
static void job_tally_finish_zeros(struct mt_job_tally *tally, uint32_t classes, uint32_t a_rows,
                                   uint32_t b_rows)
{
    for (uint32_t i = 0; i < tally->count; i++) {
        struct mt_job_change *change = tally->changes[i];

        if (change->class_count < classes) {
            if (change->min_bytes > 0 || !change->class_count)
                change->min_class = MT_NO_CLASS;
            if (change->max_bytes < 0 || !change->class_count)
                change->max_class = MT_NO_CLASS;
            change->min_bytes = change->min_bytes < 0 ? change->min_bytes : 0;
            change->max_bytes = change->max_bytes > 0 ? change->max_bytes : 0;
        }
        change->class_count = classes;
        change->a_rows = a_rows;
        change->b_rows = b_rows;
    }
    job_tally_finish(tally);
}

/* Sorts by the size of the change, in an order that does not depend on which job is A. */

/* Among two lines of one size, the first in the order of paths and roles, so that the choice does
 * not depend on which job is A. */
static int compare_lines(const struct mt_job_diff *diff, uint32_t x, uint32_t y)
{
    const struct mt_job_diff_line *one = &diff->lines[x], *other = &diff->lines[y];

    if (one->role != other->role)
        return one->role < other->role ? -1 : 1;
    if (one->a_path == other->a_path)
        return 0;
    if (one->a_path == MT_NO_PATH || other->a_path == MT_NO_PATH)
        return one->a_path == MT_NO_PATH ? 1 : -1;
    /* The earlier of the two paths of a line that moved. */
    uint32_t p = mt_job_diff_compare_paths(&diff->paths, one->a_path, one->b_path) <= 0
                     ? one->a_path
                     : one->b_path;
    uint32_t q = mt_job_diff_compare_paths(&diff->paths, other->a_path, other->b_path) <= 0
                     ? other->a_path
                     : other->b_path;
    int order = mt_job_diff_compare_paths(&diff->paths, p, q);
    return order ? order : (x > y) - (x < y);
}

/* Sets *chosen to `line` if `bytes` is a larger change than *chosen_bytes. */
static void job_choose_line(const struct mt_job_diff *diff, uint32_t line, int64_t bytes,
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

struct counter {
    struct mt_job_diff *diff;
    const struct mt_job_line_index *index;
    struct mt_job_tally metrics, roles, lines, libraries;
    struct mt_strings names; /* of libraries; their ids are places in diff->libraries */
};

static bool is_known(const struct mt_rank_record *record, enum mt_job_metric metric)
{
    switch (metric) {
    case MT_JOB_OUTSIDE: return record->has_driver;
    case MT_JOB_NEEDED: return record->needed_is_known;
    case MT_JOB_GROWTH: return record->growth_is_judged;
    case MT_JOB_ALLOCATED:
    case MT_JOB_RESERVED: break;
    }
    return true;
}

static bool class_knows(const struct mt_job_diff *diff, const struct mt_job_class *class,
                        enum mt_job_metric metric)
{
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            if (!is_known(mt_job_class_record(diff, class, side, i), metric))
                return false;
    return true;
}

static void count_metrics(struct counter *counter, uint32_t number)
{
    struct mt_job_class *class = &counter->diff->classes[number];

    for (int m = 0; m < MT_JOB_METRIC_COUNT; m++) {
        enum mt_job_metric metric = (enum mt_job_metric)m;
        struct mt_job_class_change *change = &class->metrics[m];

        change->is_known = class_knows(counter->diff, class, metric);
        if (!change->is_known)
            continue;
        for (int side = 0; side < 2; side++)
            for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
                job_tally_add(
                    &counter->metrics, (uint32_t)m, side,
                    mt_job_metric_of(mt_job_class_record(counter->diff, class, side, i), metric));
        change->a_bytes = (uint64_t)(counter->metrics.a[m] / class->a_count);
        change->b_bytes = (uint64_t)(counter->metrics.b[m] / class->b_count);
    }
    job_tally_close(&counter->metrics, counter->diff, number);
}

static void count_roles(struct counter *counter, uint32_t number)
{
    const struct mt_job_class *class = &counter->diff->classes[number];

    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
                job_tally_add(&counter->roles, role, side,
                              mt_job_class_record(counter->diff, class, side, i)->role_bytes[role]);
    job_tally_close(&counter->roles, counter->diff, number);
}

/* Adds the leaves of a class to the tally, and closes the class. */
static void job_tally_lines(struct mt_job_tally *tally, const struct mt_job_diff *diff,
                            const struct mt_job_line_index *index, uint32_t class)
{
    const struct mt_job_class *counted = &diff->classes[class];

    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(counted, side); i++) {
            const struct mt_rank_record *record = mt_job_class_record(diff, counted, side, i);

            for (uint32_t k = 0; k < mt_job_leaf_count(record); k++) {
                struct mt_record_leaf leaf = mt_job_leaf(record, k);

                if (leaf.bytes)
                    job_tally_add(tally, mt_job_line_of(diff, index, side, &leaf), side,
                                  leaf.bytes);
            }
        }
    job_tally_close(tally, diff, class);
}

static void count_lines(struct counter *counter, uint32_t number)
{
    struct mt_job_class *class = &counter->diff->classes[number];
    const struct mt_job_tally *lines = &counter->lines;

    job_tally_lines(&counter->lines, counter->diff, counter->index, number);
    for (uint32_t i = 0; i < lines->touched_count; i++)
        job_choose_line(counter->diff, lines->touched[i], lines->now[lines->touched[i]],
                        &class->line, &class->line_bytes);
}

static uint32_t library_of(const struct counter *counter, const char *name)
{
    return mt_strings_find(&counter->names, name, strlen(name));
}

/* Memory without an owner belongs to an unknown library. */
static void add_owners(struct counter *counter, const struct mt_rank_record *record, bool is_of_b)
{
    uint64_t left = record->outside_bytes;

    for (uint32_t k = 0; k < record->owner_count; k++) {
        uint64_t bytes = mt_min_u64(record->owners[k].bytes, left);

        left -= bytes;
        job_tally_add(&counter->libraries, library_of(counter, record->owners[k].library), is_of_b,
                      bytes);
    }
    if (left)
        job_tally_add(&counter->libraries, library_of(counter, ""), is_of_b, left);
}

static void count_libraries(struct counter *counter, uint32_t number)
{
    const struct mt_job_class *class = &counter->diff->classes[number];

    if (!class->metrics[MT_JOB_OUTSIDE].is_known)
        return;
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            add_owners(counter, mt_job_class_record(counter->diff, class, side, i), side);
    job_tally_close(&counter->libraries, counter->diff, number);
}

static void find_libraries(struct counter *counter)
{
    const struct mt_job_report *reports[] = {counter->diff->a, counter->diff->b};
    uint32_t id;

    mt_strings_put(&counter->names, "", 0, &id);
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < reports[side]->row_count; i++) {
            const struct mt_rank_record *record = reports[side]->rows[i].record;

            for (uint32_t k = 0; k < record->owner_count; k++)
                mt_strings_put(&counter->names, record->owners[k].library,
                               strlen(record->owners[k].library), &id);
        }
}

static void init_libraries(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;

    find_libraries(counter);
    job_tally_init(&counter->libraries, &diff->arena, counter->names.count);
    diff->libraries = mt_arena_array(&diff->arena, counter->names.count, sizeof *diff->libraries);
    diff->library_count = counter->names.count;
    for (uint32_t i = 0; i < diff->library_count; i++) {
        diff->libraries[i].name =
            mt_arena_text(&diff->arena, counter->names.texts[i], counter->names.lengths[i]);
        counter->libraries.changes[i] = &diff->libraries[i].change;
    }
}

static void init(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;

    job_tally_init(&counter->metrics, &diff->arena, MT_JOB_METRIC_COUNT);
    job_tally_init(&counter->roles, &diff->arena, MT_ROLE_COUNT);
    job_tally_init(&counter->lines, &diff->arena, diff->line_count);
    for (int i = 0; i < MT_JOB_METRIC_COUNT; i++)
        counter->metrics.changes[i] = &diff->metrics[i];
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        counter->roles.changes[i] = &diff->roles[i];
    for (uint32_t i = 0; i < diff->line_count; i++)
        counter->lines.changes[i] = &diff->lines[i].change;
    init_libraries(counter);
}

static void count_classes(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;
    const struct mt_job_change *outside = &diff->metrics[MT_JOB_OUTSIDE];

    for (uint32_t i = 0; i < diff->class_count; i++) {
        if (!diff->classes[i].is_compared)
            continue;
        count_metrics(counter, i);
        count_roles(counter, i);
        count_lines(counter, i);
        count_libraries(counter, i);
    }
    job_tally_finish(&counter->metrics);
    job_tally_finish(&counter->roles);
    job_tally_finish_zeros(&counter->lines, diff->compared_count, diff->a_compared_rows,
                           diff->b_compared_rows);
    job_tally_finish_zeros(&counter->libraries, outside->class_count, outside->a_rows,
                           outside->b_rows);
}

void mt_job_diff_count(struct mt_job_diff *diff, const struct mt_job_line_index *index)
{
    struct counter counter = {.diff = diff, .index = index};

    init(&counter);
    count_classes(&counter);
    mt_strings_release(&counter.names);
}

/* Changes in groups of classes with a common coordinate on an axis. */

/* The classes that are compared, by their coordinate on an axis; the unknown one is the largest. */
struct placed {
    uint32_t coordinate, class;
};

MT_DEFINE_ORDER(compare_placed, struct placed, MT_ASCENDING(coordinate) || MT_ASCENDING(class))

/* Changes of lines, summed over the classes of a group. */
struct group_lines {
    const struct mt_job_diff *diff;
    const struct mt_job_line_index *index;
    struct mt_job_tally tally;
    struct mt_job_change scratch; /* one per line; not used */
    __int128 *sums;
    uint32_t *used, used_count;
    bool *is_used;
};

static void add_class(struct group_lines *lines)
{
    for (uint32_t i = 0; i < lines->tally.touched_count; i++) {
        uint32_t line = lines->tally.touched[i];

        if (!lines->is_used[line])
            lines->used[lines->used_count++] = line;
        lines->is_used[line] = true;
        lines->sums[line] += lines->tally.now[line];
    }
}

static void end_group(struct group_lines *lines, const struct mt_job_diff *diff,
                      struct mt_job_diff_group *group)
{
    for (uint32_t i = 0; i < lines->used_count; i++) {
        uint32_t line = lines->used[i];

        job_choose_line(diff, line, (int64_t)(lines->sums[line] / group->allocated.class_count),
                        &group->line, &group->line_bytes);
        lines->sums[line] = 0;
        lines->is_used[line] = false;
    }
    lines->used_count = 0;
}

/* `peaks`: reserved and allocated. */
static void count_group(struct group_lines *lines, const struct placed *placed, uint32_t count,
                        struct mt_job_tally *peaks)
{
    const struct mt_job_diff *diff = lines->diff;

    for (uint32_t i = 0; i < count; i++) {
        const struct mt_job_class *class = &diff->classes[placed[i].class];

        for (int side = 0; side < 2; side++)
            for (uint32_t r = 0; r < mt_job_class_rows(class, side); r++) {
                const struct mt_rank_record *record = mt_job_class_record(diff, class, side, r);

                job_tally_add(peaks, 0, side, record->reserved_peak.bytes);
                job_tally_add(peaks, 1, side, record->allocated_peak.bytes);
            }
        job_tally_close(peaks, diff, placed[i].class);
        job_tally_lines(&lines->tally, diff, lines->index, placed[i].class);
        add_class(lines);
    }
}

static void count_axis(struct mt_job_diff *diff, struct group_lines *lines, uint32_t axis)
{
    struct mt_job_diff_axis *counted = &diff->axes[axis];
    struct placed *placed =
        mt_arena_array(&diff->arena, (size_t)diff->class_count + 1, sizeof *placed);
    struct mt_job_tally tally;
    uint32_t count = 0;

    counted->groups =
        mt_arena_array(&diff->arena, (size_t)diff->class_count + 1, sizeof *counted->groups);
    job_tally_init(&tally, &diff->arena, 2);
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].is_compared)
            placed[count++] = (struct placed){diff->classes[i].coordinates[axis], i};
    qsort(placed, count, sizeof *placed, compare_placed);
    for (uint32_t i = 0, end; i < count; i = end) {
        struct mt_job_diff_group *group = &counted->groups[counted->group_count++];

        for (end = i + 1; end < count && placed[end].coordinate == placed[i].coordinate;)
            end++;
        group->coordinate = placed[i].coordinate;
        group->line = MT_NO_LINE;
        tally.changes[0] = &group->reserved;
        tally.changes[1] = &group->allocated;
        memset(tally.sums, 0, 2 * sizeof *tally.sums);
        count_group(lines, placed + i, end - i, &tally);
        job_tally_finish(&tally);
        end_group(lines, diff, group);
    }
}

void mt_job_diff_count_axes(struct mt_job_diff *diff, const struct mt_job_line_index *index)
{
    struct group_lines lines = {.diff = diff, .index = index};
    size_t room = (size_t)diff->line_count + 1;

    if (!diff->axis_count || !diff->compared_count)
        return;
    job_tally_init(&lines.tally, &diff->arena, diff->line_count);
    lines.sums = mt_arena_array(&diff->arena, room, sizeof *lines.sums);
    lines.used = mt_arena_array(&diff->arena, room, sizeof *lines.used);
    lines.is_used = mt_arena_array(&diff->arena, room, sizeof *lines.is_used);
    for (uint32_t i = 0; i < diff->line_count; i++)
        lines.tally.changes[i] = &lines.scratch;
    for (uint32_t i = 0; i < diff->axis_count; i++)
        count_axis(diff, &lines, i);
}
