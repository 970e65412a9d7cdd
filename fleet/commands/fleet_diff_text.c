/* The text of the comparison of two jobs: the most important change, how ranks were matched, and
 * where memory changed. */
#include <stdio.h>

#include "fleet_diff_output.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

enum { DIFF_ROWS = 12 }; /* maximum number of rows of a table without --all */

struct diff_text {
    struct mt_buf *out;
    const struct mt_fleet_diff_answer *answer;
    const struct mt_job_diff *diff;
    const struct mt_style *style;
};

/* Returns how many of `count` rows a table shows; diff_add_rest appends a note about the
 * others. */
static uint32_t diff_shown(const struct diff_text *text, uint32_t count)
{
    return text->answer->all || count < DIFF_ROWS ? count : DIFF_ROWS;
}

/* Returned texts are in the arena of the answer. */
static const char *diff_class_name(const struct diff_text *text, uint32_t class)
{
    return class == MT_NO_CLASS ? "others"
                                : mt_job_class_name(text->answer->arena, text->diff, class);
}

static const char *diff_site_of(const struct diff_text *text, uint32_t line)
{
    uint32_t path = line == MT_NO_LINE ? MT_NO_PATH : text->diff->lines[line].b_path;

    if (line != MT_NO_LINE && path == MT_NO_PATH)
        return "too small to be kept";
    return mt_job_diff_site(text->answer->arena, text->diff, path);
}

static void diff_add_heading(const struct diff_text *text, const char *heading)
{
    mt_buf_printf(text->out, "\n%s%s%s\n", text->style->bold, heading, text->style->reset);
}

static void diff_add_rest(const struct diff_text *text, uint32_t count, size_t indent)
{
    if (count > diff_shown(text, count))
        mt_text_table_add_note(text->out, indent, "and %u more",
                               (unsigned)(count - diff_shown(text, count)));
}

static bool diff_changes(const struct mt_job_change *change)
{
    return change->min_bytes || change->max_bytes;
}

/* Returns the noun for what is compared: "rank", "groups", ... */
static const char *diff_kind_of(const struct diff_text *text, uint32_t count)
{
    static const char *const one[] = {"rank", "group", "set of parameters", "job"};
    static const char *const several[] = {"ranks", "groups", "sets of parameters", "jobs"};

    return (count == 1 ? one : several)[text->diff->match];
}

/* Returns true if a compared class of groups has a different number of ranks in A and in B. */
static bool diff_sizes_differ(const struct mt_job_diff *diff)
{
    if (diff->match != MT_MATCH_GROUPS && diff->match != MT_MATCH_PARAMETERS)
        return false;
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].is_compared && diff->classes[i].a_count != diff->classes[i].b_count)
            return true;
    return false;
}

/* Tables of `fleet diff`: differences between two jobs. */

static uint64_t mean_of(unsigned __int128 sum, uint32_t rows)
{
    return rows ? (uint64_t)(sum / rows) : 0;
}

/* Begins a table of changes. With only one match, the mean, the minimum and the maximum are the
 * same number, so the table has one column. */
static void begin_amounts(const struct diff_text *text, struct mt_table *table)
{
    mt_table_begin(table, text->diff->compared_count == 1
                              ? "#change|#A|#B|~"
                              : "#mean change|#min|#max|#mean of A|#of B|~");
}

static void add_amounts(const struct diff_text *text, struct mt_table *table,
                        const struct mt_job_change *change, const char *label)
{
    MT_CELLS(table, MT_CHANGE(change->mean_bytes));
    if (text->diff->compared_count != 1)
        MT_CELLS(table, MT_CHANGE(change->min_bytes), MT_CHANGE(change->max_bytes));
    MT_CELLS(table, MT_BYTES(mean_of(change->a_sum_bytes, change->a_rows)),
             MT_BYTES(mean_of(change->b_sum_bytes, change->b_rows)), MT_TEXT(label));
}

static void add_metrics(const struct diff_text *text)
{
    static const enum mt_job_metric order[] = {MT_JOB_RESERVED, MT_JOB_ALLOCATED, MT_JOB_OUTSIDE,
                                               MT_JOB_NEEDED, MT_JOB_GROWTH};
    struct mt_table table;

    diff_add_heading(text, "per rank");
    begin_amounts(text, &table);
    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++) {
        const struct mt_job_change *change = &text->diff->metrics[order[i]];

        if (!change->class_count || (order[i] == MT_JOB_GROWTH && !diff_changes(change)))
            continue;
        add_amounts(text, &table, change,
                    order[i] == MT_JOB_GROWTH ? "growth per step" : mt_job_metric_name(order[i]));
    }
    mt_text_table_add(text->out, &table, 2, text->style);
    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++) {
        uint32_t known = text->diff->metrics[order[i]].class_count;

        if (known && known < text->diff->compared_count && order[i] != MT_JOB_GROWTH)
            mt_text_table_add_note(text->out, 2, "%s: known on both sides for %u of %u %s",
                                   mt_job_metric_name(order[i]), (unsigned)known,
                                   (unsigned)text->diff->compared_count,
                                   diff_kind_of(text, text->diff->compared_count));
    }
}

/* Returns true if the axis gets a table. Along other axes, ranks are replicas, and the table of
 * ranks shows them. */
static bool axis_changes(const struct mt_job_diff *diff, const struct mt_job_diff_axis *axis)
{
    if (!axis->separates || axis->group_count < 2 ||
        (axis->group_count == diff->compared_count && diff->axis_count > 1))
        return false;
    for (uint32_t i = 0; i < axis->group_count; i++)
        if (diff_changes(&axis->groups[i].reserved) || diff_changes(&axis->groups[i].allocated))
            return true;
    return false;
}

static void add_axis(const struct diff_text *text, const struct mt_job_diff_axis *axis)
{
    struct mt_buf heading = {0};
    struct mt_table table;

    mt_buf_printf(&heading, "by %s: mean change of each group", axis->name);
    mt_buf_add_char(text->out, '\n');
    mt_buf_add_text(text->out, text->style->bold);
    mt_text_table_add_note(text->out, 0, "%s", heading.data);
    mt_buf_add_text(text->out, text->style->reset);
    mt_buf_release(&heading);
    mt_table_begin(&table, "#at|#ranks of A|#of B|#reserved|#allocated|#of that|~from");
    for (uint32_t i = 0; i < diff_shown(text, axis->group_count); i++) {
        const struct mt_job_diff_group *group = &axis->groups[i];

        MT_CELLS(&table,
                 group->coordinate == MT_NO_ROW ? MT_TEXT("?") : MT_INTEGER(group->coordinate),
                 MT_COUNT(group->reserved.a_rows), MT_COUNT(group->reserved.b_rows),
                 MT_CHANGE(group->reserved.mean_bytes), MT_CHANGE(group->allocated.mean_bytes),
                 group->line == MT_NO_LINE ? MT_TEXT("") : MT_CHANGE(group->line_bytes),
                 MT_SITE(diff_site_of(text, group->line)));
    }
    mt_text_table_add(text->out, &table, 2, text->style);
    diff_add_rest(text, axis->group_count, 2);
}

static void add_roles(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    struct mt_table table;
    uint32_t changed = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        changed += diff_changes(&diff->roles[i]);
    if (!changed)
        return;
    diff_add_heading(text, "by role, at the allocated peaks");
    begin_amounts(text, &table);
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        if (!diff->roles[i].a_sum_bytes && !diff->roles[i].b_sum_bytes)
            continue;
        add_amounts(text, &table, &diff->roles[i], mt_role_name((enum mt_role)i));
    }
    mt_text_table_add(text->out, &table, 2, text->style);
}

static const char *mark_of(const struct mt_job_diff_line *line)
{
    return !line->is_in_a                 ? "new"
           : !line->is_in_b               ? "gone"
           : line->a_path != line->b_path ? "moved"
                                          : "";
}

static uint32_t changed_lines(const struct mt_job_diff *diff)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < diff->line_count; i++)
        count += diff_changes(&diff->lines[i].change);
    return count;
}

/* Adds the smallest and the largest change, and the position of the one with the larger absolute
 * value. */
static void add_extremes(const struct diff_text *text, struct mt_table *table,
                         const struct mt_job_change *change)
{
    bool is_max = -(change->min_bytes + 1) < change->max_bytes;

    MT_CELLS(table, MT_CHANGE(change->min_bytes), MT_CHANGE(change->max_bytes),
             MT_TEXT(change->min_bytes == change->max_bytes
                         ? "all"
                         : diff_class_name(text, is_max ? change->max_class : change->min_class)));
}

static void add_lines(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t changed = changed_lines(diff), told = 0;
    struct mt_table table;

    if (!changed)
        return;
    diff_add_heading(text, "by site, at the allocated peaks");
    mt_table_begin(&table, diff->compared_count == 1 ? "#change|role||~site"
                                                     : "#mean change|#min|#max|on|role||~site");
    for (uint32_t i = 0; i < diff->line_count && told < diff_shown(text, changed); i++) {
        const struct mt_job_diff_line *line = &diff->lines[i];
        const struct mt_job_change *change = &line->change;

        if (!diff_changes(change))
            continue;
        told++;
        MT_CELLS(&table, MT_CHANGE(change->mean_bytes));
        if (diff->compared_count != 1)
            add_extremes(text, &table, change);
        MT_CELLS(&table, MT_TEXT(mt_role_name(line->role)), MT_TEXT(mark_of(line)),
                 MT_SITE(diff_site_of(text, i)));
    }
    mt_text_table_add(text->out, &table, 2, text->style);
    diff_add_rest(text, changed, 2);
    if (changed < diff->line_count)
        mt_text_table_add_note(text->out, 2, "%u other%s the same size in both",
                               (unsigned)(diff->line_count - changed),
                               diff->line_count - changed == 1 ? " is" : "s are");
}

static void add_libraries(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t changed = 0;
    struct mt_table table;

    for (uint32_t i = 0; i < diff->library_count; i++)
        changed += diff_changes(&diff->libraries[i].change);
    if (!changed)
        return;
    diff_add_heading(text, "outside the allocator, by library");
    begin_amounts(text, &table);
    for (uint32_t i = 0; i < diff_shown(text, diff->library_count); i++) {
        add_amounts(text, &table, &diff->libraries[i].change,
                    *diff->libraries[i].name ? diff->libraries[i].name : "not known");
    }
    mt_text_table_add(text->out, &table, 2, text->style);
    diff_add_rest(text, diff->library_count, 2);
}

static bool class_changes(const struct mt_job_class *class)
{
    return mt_job_class_change(class, MT_JOB_RESERVED) ||
           mt_job_class_change(class, MT_JOB_ALLOCATED) ||
           mt_job_class_change(class, MT_JOB_OUTSIDE);
}

static void add_class(const struct diff_text *text, struct mt_table *table, uint32_t number)
{
    const struct mt_job_class *class = &text->diff->classes[number];

    MT_CELLS(table, MT_TEXT(diff_class_name(text, number)));
    if (diff_sizes_differ(text->diff))
        MT_CELLS(table, MT_COUNT(class->a_count), MT_COUNT(class->b_count));
    MT_CELLS(table, MT_CHANGE(mt_job_class_change(class, MT_JOB_RESERVED)),
             MT_CHANGE(mt_job_class_change(class, MT_JOB_ALLOCATED)),
             class->metrics[MT_JOB_OUTSIDE].is_known
                 ? MT_CHANGE(mt_job_class_change(class, MT_JOB_OUTSIDE))
                 : MT_TEXT("?"),
             class->line == MT_NO_LINE ? MT_TEXT("") : MT_CHANGE(class->line_bytes),
             MT_SITE(diff_site_of(text, class->line)));
}

/* Adds the matches with the largest changes. Groups along a single axis are in the table of that
 * axis. */
static void add_classes(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t changed = 0, told = 0;
    struct mt_table table;

    if (diff->compared_count < 2 || (diff->match == MT_MATCH_GROUPS && diff->axis_count < 2))
        return;
    for (uint32_t i = 0; i < diff->compared_count; i++)
        changed += class_changes(&diff->classes[diff->order[i]]);
    if (!changed)
        return;
    diff_add_heading(text, diff->match == MT_MATCH_RANKS ? "by rank" : "by group");
    mt_table_begin(&table, "!");
    if (diff_sizes_differ(diff))
        mt_table_columns(&table, "#ranks of A|#of B");
    mt_table_columns(&table, "#reserved|#allocated|#outside|#of that|~from");
    for (uint32_t i = 0; i < diff->compared_count && told < diff_shown(text, changed); i++)
        if (class_changes(&diff->classes[diff->order[i]])) {
            add_class(text, &table, diff->order[i]);
            told++;
        }
    mt_text_table_add(text->out, &table, 2, text->style);
    diff_add_rest(text, changed, 2);
}

/* Appends the tables of the change. */
static void diff_add_tables(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;

    add_metrics(text);
    for (uint32_t i = 0; i < diff->axis_count; i++)
        if (axis_changes(diff, &diff->axes[i]))
            add_axis(text, &diff->axes[i]);
    add_roles(text);
    add_lines(text);
    add_libraries(text);
    add_classes(text);
}

static void diff_add_outcomes(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t count = 0, told = 0;
    struct mt_table table;

    if (diff->match != MT_MATCH_RANKS)
        return;
    mt_table_begin(&table, "!rank|in A|in B");
    for (uint32_t i = 0; i < diff->class_count; i++) {
        const struct mt_job_class *class = &diff->classes[i];

        if (!class->is_compared)
            continue;
        enum mt_outcome a = diff->a->rows[class->a_rows[0]].record->outcome;
        enum mt_outcome b = diff->b->rows[class->b_rows[0]].record->outcome;
        if (a == b || (count++ >= DIFF_ROWS && !text->answer->all))
            continue;
        told++;
        MT_CELLS(&table, MT_TEXT(diff_class_name(text, i)), MT_TEXT(mt_outcome_name(a)),
                 MT_TEXT(mt_outcome_name(b)));
    }
    if (count)
        diff_add_heading(text, "ranks whose outcome differs");
    mt_text_table_add(text->out, &table, 2, text->style);
    if (count > told)
        mt_text_table_add_note(text->out, 2, "and %u more", (unsigned)(count - told));
}

enum { RANGES = 8 }; /* maximum number of ranges in a list of ranks without --all */

/* Returns the first metric in the list that changed, or the reserved peak. */
static enum mt_job_metric leading_metric(const struct mt_job_diff *diff)
{
    static const enum mt_job_metric order[] = {MT_JOB_RESERVED, MT_JOB_ALLOCATED, MT_JOB_OUTSIDE,
                                               MT_JOB_NEEDED, MT_JOB_GROWTH};

    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++)
        if (diff_changes(&diff->metrics[order[i]]))
            return order[i];
    return MT_JOB_RESERVED;
}

static void add_largest(const struct diff_text *text, enum mt_job_metric metric)
{
    const struct mt_job_change *change = &text->diff->metrics[metric];
    bool is_max = -(change->min_bytes + 1) < change->max_bytes;
    char largest[MT_UNITS_TEXT], mean[MT_UNITS_TEXT];

    mt_format_change(largest, is_max ? change->max_bytes : change->min_bytes);
    mt_format_change(mean, change->mean_bytes);
    if (change->class_count == 1)
        mt_text_table_add_note(text->out, 0, "%s (%s) on %s", largest, mt_job_metric_name(metric),
                               diff_class_name(text, change->max_class));
    else if (change->min_bytes == change->max_bytes)
        mt_text_table_add_note(text->out, 0, "%s (%s) on each of %u %s", largest,
                               mt_job_metric_name(metric), (unsigned)change->class_count,
                               diff_kind_of(text, change->class_count));
    else
        mt_text_table_add_note(
            text->out, 0, "%s (%s) on %s is the largest change of %u %s; the mean change is %s",
            largest, mt_job_metric_name(metric),
            diff_class_name(text, is_max ? change->max_class : change->min_class),
            (unsigned)change->class_count, diff_kind_of(text, change->class_count), mean);
}

static void add_headline(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;

    mt_buf_add_text(text->out, text->style->bold);
    if (!diff->compared_count)
        mt_text_table_add_note(text->out, 0, "0 ranks can be compared");
    else if (mt_job_diff_has_changes(diff))
        add_largest(text, leading_metric(diff));
    else
        mt_text_table_add_note(text->out, 0, "±0 on each of %u %s: nothing differs",
                               (unsigned)diff->compared_count,
                               diff_kind_of(text, diff->compared_count));
    mt_buf_add_text(text->out, text->style->reset);
}

/* "31 killed, 1 out of memory" */
static const char *outcomes_text(const struct diff_text *text, const struct mt_job_report *report)
{
    static const char *const words[] = {
        "with an unknown end", "finished", "out of memory", "failed", "killed", "cut"};
    const char *list = "";

    _Static_assert(MT_ARRAY_LEN(words) == MT_OUTCOME_COUNT, "each outcome has words");
    for (int i = 0; i < MT_OUTCOME_COUNT; i++)
        if (report->outcome_counts[i])
            list = mt_arena_printf(text->answer->arena, "%s%s%u %s", list, *list ? ", " : "",
                                   (unsigned)report->outcome_counts[i], words[i]);
    return list;
}

/* "A: monday (slurm:77): 31 of 32 ranks; 31 finished" */
static void add_job(const struct diff_text *text, const char *name, const char *path,
                    const struct mt_job_report *report)
{
    char ranks[2 * MT_UNITS_TEXT + 32], seen[MT_UNITS_TEXT], world[MT_UNITS_TEXT];

    mt_format_count(seen, report->world ? report->seen_count : report->row_count);
    mt_format_count(world, report->world);
    if (report->world)
        snprintf(ranks, sizeof ranks, "%s of %s%s rank%s", seen,
                 report->world_is_known ? "" : "at least ", world, mt_plural_s(report->world));
    else
        snprintf(ranks, sizeof ranks, "%s process%s without a rank", seen,
                 report->row_count == 1 ? "" : "es");
    mt_text_table_add_note(text->out, 2, "%s: %s%s%s%s: %s; %s", name, path,
                           *report->job ? " (" : "", report->job, *report->job ? ")" : "", ranks,
                           outcomes_text(text, report));
    if (report->planned_count)
        mt_text_table_add_note(text->out, 5, "%u of %u planned: dry runs, not runs on a device",
                               (unsigned)report->planned_count, (unsigned)report->row_count);
    if (report->incomplete_count)
        mt_text_table_add_note(
            text->out, 5, "%u trace%s incomplete: the peaks are at least what is shown",
            (unsigned)report->incomplete_count, report->incomplete_count == 1 ? " is" : "s are");
    if (report->unreadable_count)
        mt_text_table_add_note(text->out, 5, "%u file%s could not be read",
                               (unsigned)report->unreadable_count,
                               mt_plural_s(report->unreadable_count));
}

static void add_match(const struct diff_text *text)
{
    static const char *const reasons[] = {
        "the jobs have the same size, and their axes do not differ",
        ("ranks with the same place on the axes along which memory differs; the mean of each "
         "group is compared"),
        "ranks whose parameters have the same sizes; the mean of each set is compared",
        "no rank of A matches one of B; the mean of A is compared with the mean of B"};
    const struct mt_job_diff *diff = text->diff;

    if (diff->match == MT_MATCH_NONE)
        mt_text_table_add_note(text->out, 2, "%s", reasons[diff->match]);
    else if (diff->match == MT_MATCH_RANKS && !diff->a->world && !diff->b->world)
        mt_text_table_add_note(text->out, 2,
                               "%u device%s matched: each job is one process without a rank",
                               (unsigned)diff->compared_count, mt_plural_s(diff->compared_count));
    else
        mt_text_table_add_note(text->out, 2, "%u %s matched: %s", (unsigned)diff->compared_count,
                               diff_kind_of(text, diff->compared_count), reasons[diff->match]);
}

/* Number of ranks per compared class in one job. */
struct sizes {
    uint32_t min, max;
};

static struct sizes sizes_of(const struct mt_job_diff *diff, bool is_of_b)
{
    struct sizes sizes = {.min = UINT32_MAX};

    for (uint32_t i = 0; i < diff->class_count; i++) {
        uint32_t count = is_of_b ? diff->classes[i].b_count : diff->classes[i].a_count;

        if (!diff->classes[i].is_compared)
            continue;
        sizes.min = count < sizes.min ? count : sizes.min;
        sizes.max = count > sizes.max ? count : sizes.max;
    }
    return sizes;
}

/* "4 ranks", "3 to 4 ranks" */
static const char *sizes_text(const struct diff_text *text, struct sizes sizes)
{
    return sizes.min == sizes.max ? mt_arena_printf(text->answer->arena, "%u rank%s",
                                                    (unsigned)sizes.max, mt_plural_s(sizes.max))
                                  : mt_arena_printf(text->answer->arena, "%u to %u ranks",
                                                    (unsigned)sizes.min, (unsigned)sizes.max);
}

/* Prints the numbers of ranks, because means of groups hide them. */
static void add_sizes(const struct diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;

    if (!diff_sizes_differ(diff))
        return;
    struct sizes a = sizes_of(diff, false);
    struct sizes b = sizes_of(diff, true);
    mt_text_table_add_note(text->out, 2,
                           "a %s has %s in A and %s in B: changes are those of a mean rank",
                           diff_kind_of(text, 1), sizes_text(text, a), sizes_text(text, b));
    if (a.min != a.max || b.min != b.max)
        mt_text_table_add_note(
            text->out, 2,
            "a mean change counts each %s once, and the mean of A or of B each rank once, "
            "so that the means may differ by another amount",
            diff_kind_of(text, 1));
}

/* Adds the ranks that are in only one job, as ranges. Their numbers ascend if ranks are matched by
 * number. Otherwise classes with equal places or parameters are adjacent. */
static void add_alone(const struct diff_text *text, const char *name, bool is_of_b)
{
    const struct mt_job_diff *diff = text->diff;
    const struct mt_job_report *report = is_of_b ? diff->b : diff->a;
    struct mt_buf list = {0};
    int32_t first = -2, last = -2;
    uint32_t count = 0, ranges = 0;

    for (uint32_t i = 0; i <= diff->class_count; i++) {
        const struct mt_job_class *class = i < diff->class_count ? &diff->classes[i] : NULL;
        uint32_t rows = !class || class->is_compared ? !class
                        : is_of_b                    ? class->b_count
                                                     : class->a_count;

        for (uint32_t r = 0; r < rows; r++) {
            int32_t rank = class ? report->rows[(is_of_b ? class->b_rows : class->a_rows)[r]]
                                       .record->identity.rank
                                 : -3; /* end marker */

            count += class != NULL;
            if (class && rank < 0)
                continue; /* -1 is not a number of a rank, so it must not join rank 0 in a range */
            if (rank == last || rank == last + 1) {
                last = rank;
                continue;
            }
            if (first >= 0 && (ranges++ < RANGES || text->answer->all)) {
                mt_buf_printf(&list, "%s%d", list.length ? ", " : "", (int)first);
                if (last > first)
                    mt_buf_printf(&list, "-%d", (int)last);
            }
            first = last = rank;
        }
    }
    if (count)
        mt_text_table_add_note(text->out, 2, "%u only in %s, not in the changes%s%s%s",
                               (unsigned)count, name, list.length ? ": rank " : "",
                               list.length ? list.data : "",
                               ranges > RANGES && !text->answer->all ? " and others" : "");
    mt_buf_release(&list);
}

static void add_need(const struct diff_text *text)
{
    const struct mt_job_report *a = text->diff->a, *b = text->diff->b;
    char of_a[MT_UNITS_TEXT], of_b[MT_UNITS_TEXT], change[MT_UNITS_TEXT];

    if (!a->needed.max || !b->needed.max)
        return;
    mt_format_bytes_distinct(of_a, a->needed.max, of_b, b->needed.max);
    mt_text_table_add_note(text->out, 2, "card: %s%s in A, %s%s in B (%s)",
                           a->needed_is_exact ? "about " : "at least ", of_a,
                           b->needed_is_exact ? "about " : "at least ", of_b,
                           mt_format_change(change, (int64_t)(b->needed.max - a->needed.max)));
}

void mt_fleet_diff_text(struct mt_buf *out, const struct mt_fleet_diff_answer *answer,
                        const struct mt_style *style)
{
    const struct mt_job_diff *diff = answer->diff;
    const struct diff_text text = {out, answer, diff, style};

    add_headline(&text);
    add_job(&text, "A", answer->a, diff->a);
    add_job(&text, "B", answer->b, diff->b);
    add_match(&text);
    add_sizes(&text);
    add_alone(&text, "A", false);
    add_alone(&text, "B", true);
    add_need(&text);
    if (diff->compared_count && mt_job_diff_has_changes(diff))
        diff_add_tables(&text);
    diff_add_outcomes(&text);
}
