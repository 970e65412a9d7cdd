/* Tables of `fleet diff`: differences between two jobs. */
#include "fleet_diff_words.h"
#include "text_table.h"
#include "util.h"
#include "wrapped_text.h"

static uint64_t mean_of(unsigned __int128 sum, uint32_t rows)
{
    return rows ? (uint64_t)(sum / rows) : 0;
}

/* Begins a table of changes. With only one match, the mean, the minimum and the maximum are the
 * same number, so the table has one column. */
static void begin_amounts(const struct mt_diff_text *text, struct mt_table *table)
{
    mt_table_begin(table, text->diff->compared_count == 1
                              ? "#change|#A|#B|~"
                              : "#mean change|#min|#max|#mean of A|#of B|~");
}

static void add_amounts(const struct mt_diff_text *text, struct mt_table *table,
                        const struct mt_job_change *change, const char *label)
{
    MT_CELLS(table, MT_CHANGE(change->mean_bytes));
    if (text->diff->compared_count != 1)
        MT_CELLS(table, MT_CHANGE(change->min_bytes), MT_CHANGE(change->max_bytes));
    MT_CELLS(table, MT_BYTES(mean_of(change->a_sum_bytes, change->a_rows)),
             MT_BYTES(mean_of(change->b_sum_bytes, change->b_rows)), MT_TEXT(label));
}

static void add_metrics(const struct mt_diff_text *text)
{
    static const enum mt_job_metric order[] = {MT_JOB_RESERVED, MT_JOB_ALLOCATED, MT_JOB_OUTSIDE,
                                               MT_JOB_NEEDED, MT_JOB_GROWTH};
    struct mt_table table;

    mt_diff_add_heading(text, "per rank");
    begin_amounts(text, &table);
    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++) {
        const struct mt_job_change *change = &text->diff->metrics[order[i]];

        if (!change->class_count || (order[i] == MT_JOB_GROWTH && !mt_diff_changes(change)))
            continue;
        add_amounts(text, &table, change,
                    order[i] == MT_JOB_GROWTH ? "growth per step" : mt_job_metric_name(order[i]));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++) {
        uint32_t known = text->diff->metrics[order[i]].class_count;

        if (known && known < text->diff->compared_count && order[i] != MT_JOB_GROWTH)
            mt_add_note(text->out, 2, "%s: known on both sides for %u of %u %s",
                        mt_job_metric_name(order[i]), (unsigned)known,
                        (unsigned)text->diff->compared_count,
                        mt_diff_kind_of(text, text->diff->compared_count));
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
        if (mt_diff_changes(&axis->groups[i].reserved) ||
            mt_diff_changes(&axis->groups[i].allocated))
            return true;
    return false;
}

static void add_axis(const struct mt_diff_text *text, const struct mt_job_diff_axis *axis)
{
    struct mt_buf heading = {0};
    struct mt_table table;

    mt_buf_printf(&heading, "by %s: mean change of each group", axis->name);
    mt_buf_add_char(text->out, '\n');
    mt_buf_add_text(text->out, text->style->bold);
    mt_add_note(text->out, 0, "%s", heading.data);
    mt_buf_add_text(text->out, text->style->reset);
    mt_buf_release(&heading);
    mt_table_begin(&table, "#at|#ranks of A|#of B|#reserved|#allocated|#of that|~from");
    for (uint32_t i = 0; i < mt_diff_shown(text, axis->group_count); i++) {
        const struct mt_job_diff_group *group = &axis->groups[i];

        MT_CELLS(&table,
                 group->coordinate == MT_NO_ROW ? MT_TEXT("?") : MT_INTEGER(group->coordinate),
                 MT_COUNT(group->reserved.a_rows), MT_COUNT(group->reserved.b_rows),
                 MT_CHANGE(group->reserved.mean_bytes), MT_CHANGE(group->allocated.mean_bytes),
                 group->line == MT_NO_LINE ? MT_TEXT("") : MT_CHANGE(group->line_bytes),
                 MT_SITE(mt_diff_site_of(text, group->line)));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    mt_diff_add_rest(text, axis->group_count, 2);
}

static void add_roles(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    struct mt_table table;
    uint32_t changed = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        changed += mt_diff_changes(&diff->roles[i]);
    if (!changed)
        return;
    mt_diff_add_heading(text, "by role, at the allocated peaks");
    begin_amounts(text, &table);
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        if (!diff->roles[i].a_sum_bytes && !diff->roles[i].b_sum_bytes)
            continue;
        add_amounts(text, &table, &diff->roles[i], mt_role_name((enum mt_role)i));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
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
        count += mt_diff_changes(&diff->lines[i].change);
    return count;
}

/* Adds the smallest and the largest change, and the position of the one with the larger absolute
 * value. */
static void add_extremes(const struct mt_diff_text *text, struct mt_table *table,
                         const struct mt_job_change *change)
{
    bool is_max = -(change->min_bytes + 1) < change->max_bytes;

    MT_CELLS(
        table, MT_CHANGE(change->min_bytes), MT_CHANGE(change->max_bytes),
        MT_TEXT(change->min_bytes == change->max_bytes
                    ? "all"
                    : mt_diff_class_name(text, is_max ? change->max_class : change->min_class)));
}

static void add_lines(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t changed = changed_lines(diff), told = 0;
    struct mt_table table;

    if (!changed)
        return;
    mt_diff_add_heading(text, "by site, at the allocated peaks");
    mt_table_begin(&table, diff->compared_count == 1 ? "#change|role||~site"
                                                     : "#mean change|#min|#max|on|role||~site");
    for (uint32_t i = 0; i < diff->line_count && told < mt_diff_shown(text, changed); i++) {
        const struct mt_job_diff_line *line = &diff->lines[i];
        const struct mt_job_change *change = &line->change;

        if (!mt_diff_changes(change))
            continue;
        told++;
        MT_CELLS(&table, MT_CHANGE(change->mean_bytes));
        if (diff->compared_count != 1)
            add_extremes(text, &table, change);
        MT_CELLS(&table, MT_TEXT(mt_role_name(line->role)), MT_TEXT(mark_of(line)),
                 MT_SITE(mt_diff_site_of(text, i)));
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    mt_diff_add_rest(text, changed, 2);
    if (changed < diff->line_count)
        mt_add_note(text->out, 2, "%u other%s the same size in both",
                    (unsigned)(diff->line_count - changed),
                    diff->line_count - changed == 1 ? " is" : "s are");
}

static void add_libraries(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t changed = 0;
    struct mt_table table;

    for (uint32_t i = 0; i < diff->library_count; i++)
        changed += mt_diff_changes(&diff->libraries[i].change);
    if (!changed)
        return;
    mt_diff_add_heading(text, "outside the allocator, by library");
    begin_amounts(text, &table);
    for (uint32_t i = 0; i < mt_diff_shown(text, diff->library_count); i++) {
        add_amounts(text, &table, &diff->libraries[i].change,
                    *diff->libraries[i].name ? diff->libraries[i].name : "not known");
    }
    mt_add_text_table(text->out, &table, 2, text->style);
    mt_diff_add_rest(text, diff->library_count, 2);
}

static bool class_changes(const struct mt_job_class *class)
{
    return mt_job_class_change(class, MT_JOB_RESERVED) ||
           mt_job_class_change(class, MT_JOB_ALLOCATED) ||
           mt_job_class_change(class, MT_JOB_OUTSIDE);
}

static void add_class(const struct mt_diff_text *text, struct mt_table *table, uint32_t number)
{
    const struct mt_job_class *class = &text->diff->classes[number];

    MT_CELLS(table, MT_TEXT(mt_diff_class_name(text, number)));
    if (mt_diff_sizes_differ(text->diff))
        MT_CELLS(table, MT_COUNT(class->a_count), MT_COUNT(class->b_count));
    MT_CELLS(table, MT_CHANGE(mt_job_class_change(class, MT_JOB_RESERVED)),
             MT_CHANGE(mt_job_class_change(class, MT_JOB_ALLOCATED)),
             class->metrics[MT_JOB_OUTSIDE].is_known
                 ? MT_CHANGE(mt_job_class_change(class, MT_JOB_OUTSIDE))
                 : MT_TEXT("?"),
             class->line == MT_NO_LINE ? MT_TEXT("") : MT_CHANGE(class->line_bytes),
             MT_SITE(mt_diff_site_of(text, class->line)));
}

/* Adds the matches with the largest changes. Groups along a single axis are in the table of that
 * axis. */
static void add_classes(const struct mt_diff_text *text)
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
    mt_diff_add_heading(text, diff->match == MT_MATCH_RANKS ? "by rank" : "by group");
    mt_table_begin(&table, "!");
    if (mt_diff_sizes_differ(diff))
        mt_table_columns(&table, "#ranks of A|#of B");
    mt_table_columns(&table, "#reserved|#allocated|#outside|#of that|~from");
    for (uint32_t i = 0; i < diff->compared_count && told < mt_diff_shown(text, changed); i++)
        if (class_changes(&diff->classes[diff->order[i]])) {
            add_class(text, &table, diff->order[i]);
            told++;
        }
    mt_add_text_table(text->out, &table, 2, text->style);
    mt_diff_add_rest(text, changed, 2);
}

void mt_diff_add_tables(const struct mt_diff_text *text)
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

void mt_diff_add_outcomes(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    uint32_t count = 0, told = 0;
    struct mt_table table;

    if (diff->match != MT_MATCH_RANKS)
        return;
    mt_table_begin(&table, "!rank|in A|in B");
    for (uint32_t i = 0; i < diff->class_count; i++) {
        const struct mt_job_class *class = &diff->classes[i];
        enum mt_outcome a, b;

        if (!class->is_compared)
            continue;
        a = diff->a->rows[class->a_rows[0]].record->outcome;
        b = diff->b->rows[class->b_rows[0]].record->outcome;
        if (a == b || (count++ >= MT_DIFF_ROWS && !text->answer->all))
            continue;
        told++;
        MT_CELLS(&table, MT_TEXT(mt_diff_class_name(text, i)), MT_TEXT(mt_outcome_name(a)),
                 MT_TEXT(mt_outcome_name(b)));
    }
    if (count)
        mt_diff_add_heading(text, "ranks whose outcome differs");
    mt_add_text_table(text->out, &table, 2, text->style);
    if (count > told)
        mt_add_note(text->out, 2, "and %u more", (unsigned)(count - told));
}
