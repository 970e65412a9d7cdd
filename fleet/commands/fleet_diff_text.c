/* The text of the comparison of two jobs: the most important change, how ranks were matched, and
 * where memory changed. */
#include <stdio.h>
#include <string.h>

#include "fleet_diff_words.h"
#include "units.h"
#include "util.h"
#include "wrapped_text.h"

enum { RANGES = 8 }; /* maximum number of ranges in a list of ranks without --all */

/* Returns the first metric in the list that changed, or the reserved peak. */
static enum mt_job_metric leading_metric(const struct mt_job_diff *diff)
{
    static const enum mt_job_metric order[] = {MT_JOB_RESERVED, MT_JOB_ALLOCATED, MT_JOB_OUTSIDE,
                                               MT_JOB_NEEDED, MT_JOB_GROWTH};

    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++)
        if (mt_diff_changes(&diff->metrics[order[i]]))
            return order[i];
    return MT_JOB_RESERVED;
}

static void add_largest(const struct mt_diff_text *text, enum mt_job_metric metric)
{
    const struct mt_job_change *change = &text->diff->metrics[metric];
    bool is_max = -(change->min_bytes + 1) < change->max_bytes;
    char largest[MT_UNITS_TEXT], mean[MT_UNITS_TEXT];

    mt_format_change(largest, is_max ? change->max_bytes : change->min_bytes);
    mt_format_change(mean, change->mean_bytes);
    if (change->class_count == 1)
        mt_add_note(text->out, 0, "%s (%s) on %s", largest, mt_job_metric_name(metric),
                    mt_diff_class_name(text, change->max_class));
    else if (change->min_bytes == change->max_bytes)
        mt_add_note(text->out, 0, "%s (%s) on each of %u %s", largest, mt_job_metric_name(metric),
                    (unsigned)change->class_count, mt_diff_kind_of(text, change->class_count));
    else
        mt_add_note(
            text->out, 0, "%s (%s) on %s is the largest change of %u %s; the mean change is %s",
            largest, mt_job_metric_name(metric),
            mt_diff_class_name(text, is_max ? change->max_class : change->min_class),
            (unsigned)change->class_count, mt_diff_kind_of(text, change->class_count), mean);
}

static void add_headline(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;

    mt_buf_add_text(text->out, text->style->bold);
    if (!diff->compared_count)
        mt_add_note(text->out, 0, "0 ranks can be compared");
    else if (mt_job_diff_has_changes(diff))
        add_largest(text, leading_metric(diff));
    else
        mt_add_note(text->out, 0, "±0 on each of %u %s: nothing differs",
                    (unsigned)diff->compared_count, mt_diff_kind_of(text, diff->compared_count));
    mt_buf_add_text(text->out, text->style->reset);
}

/* "31 killed, 1 out of memory" */
static const char *outcomes_text(const struct mt_diff_text *text,
                                 const struct mt_job_report *report)
{
    static const char *const words[] = {
        "with an unknown end", "finished", "out of memory", "failed", "killed", "cut"};
    const char *list = "";

    _Static_assert(MT_ARRAY_LEN(words) == MT_OUTCOME_COUNT, "each outcome has words");
    for (int i = 0; i < MT_OUTCOME_COUNT && list; i++)
        if (report->outcome_counts[i])
            list = mt_arena_printf(text->answer->arena, "%s%s%u %s", list, *list ? ", " : "",
                                   (unsigned)report->outcome_counts[i], words[i]);
    return list ? list : "";
}

/* "A: monday (slurm:77): 31 of 32 ranks; 31 finished" */
static void add_job(const struct mt_diff_text *text, const char *name, const char *path,
                    const struct mt_job_report *report)
{
    char ranks[2 * MT_UNITS_TEXT + 32], seen[MT_UNITS_TEXT], world[MT_UNITS_TEXT];

    mt_format_count(seen, report->world ? report->seen_count : report->row_count);
    mt_format_count(world, report->world);
    if (report->world)
        snprintf(ranks, sizeof ranks, "%s of %s%s rank%s", seen,
                 report->world_is_known ? "" : "at least ", world, mt_diff_s(report->world));
    else
        snprintf(ranks, sizeof ranks, "%s process%s without a rank", seen,
                 report->row_count == 1 ? "" : "es");
    mt_add_note(text->out, 2, "%s: %s%s%s%s: %s; %s", name, path, *report->job ? " (" : "",
                report->job, *report->job ? ")" : "", ranks, outcomes_text(text, report));
    if (report->planned_count)
        mt_add_note(text->out, 5, "%u of %u planned: dry runs, not runs on a device",
                    (unsigned)report->planned_count, (unsigned)report->row_count);
    if (report->incomplete_count)
        mt_add_note(text->out, 5, "%u trace%s incomplete: the peaks are at least what is shown",
                    (unsigned)report->incomplete_count,
                    report->incomplete_count == 1 ? " is" : "s are");
    if (report->unreadable_count)
        mt_add_note(text->out, 5, "%u file%s could not be read", (unsigned)report->unreadable_count,
                    mt_diff_s(report->unreadable_count));
}

static void add_match(const struct mt_diff_text *text)
{
    static const char *const reasons[] = {
        "the jobs have the same size, and their axes do not differ",
        ("ranks with the same place on the axes along which memory differs; the mean of each "
         "group is compared"),
        "ranks whose parameters have the same sizes; the mean of each set is compared",
        "no rank of A matches one of B; the mean of A is compared with the mean of B"};
    const struct mt_job_diff *diff = text->diff;

    if (diff->match == MT_MATCH_NONE)
        mt_add_note(text->out, 2, "%s", reasons[diff->match]);
    else if (diff->match == MT_MATCH_RANKS && !diff->a->world && !diff->b->world)
        mt_add_note(text->out, 2, "%u device%s matched: each job is one process without a rank",
                    (unsigned)diff->compared_count, mt_diff_s(diff->compared_count));
    else
        mt_add_note(text->out, 2, "%u %s matched: %s", (unsigned)diff->compared_count,
                    mt_diff_kind_of(text, diff->compared_count), reasons[diff->match]);
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
static const char *sizes_text(const struct mt_diff_text *text, struct sizes sizes)
{
    const char *words = sizes.min == sizes.max
                            ? mt_arena_printf(text->answer->arena, "%u rank%s", (unsigned)sizes.max,
                                              mt_diff_s(sizes.max))
                            : mt_arena_printf(text->answer->arena, "%u to %u ranks",
                                              (unsigned)sizes.min, (unsigned)sizes.max);

    return words;
}

/* Prints the numbers of ranks, because means of groups hide them. */
static void add_sizes(const struct mt_diff_text *text)
{
    const struct mt_job_diff *diff = text->diff;
    struct sizes a, b;

    if (!mt_diff_sizes_differ(diff))
        return;
    a = sizes_of(diff, false);
    b = sizes_of(diff, true);
    mt_add_note(text->out, 2, "a %s has %s in A and %s in B: changes are those of a mean rank",
                mt_diff_kind_of(text, 1), sizes_text(text, a), sizes_text(text, b));
    if (a.min != a.max || b.min != b.max)
        mt_add_note(text->out, 2,
                    "a mean change counts each %s once, and the mean of A or of B each rank once, "
                    "so that the means may differ by another amount",
                    mt_diff_kind_of(text, 1));
}

/* Adds the ranks that are in only one job, as ranges. Their numbers ascend if ranks are matched by
 * number. Otherwise classes with equal places or parameters are adjacent. */
static void add_alone(const struct mt_diff_text *text, const char *name, bool is_of_b)
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
        mt_add_note(text->out, 2, "%u only in %s, not in the changes%s%s%s", (unsigned)count, name,
                    list.length ? ": rank " : "", list.length ? list.data : "",
                    ranges > RANGES && !text->answer->all ? " and others" : "");
    mt_buf_release(&list);
}

static void add_need(const struct mt_diff_text *text)
{
    const struct mt_job_report *a = text->diff->a, *b = text->diff->b;
    char of_a[MT_UNITS_TEXT], of_b[MT_UNITS_TEXT], change[MT_UNITS_TEXT];

    if (!a->needed.max || !b->needed.max)
        return;
    mt_format_bytes_apart(of_a, a->needed.max, of_b, b->needed.max);
    mt_add_note(text->out, 2, "a device must have %s%s in A, %s%s in B (%s)",
                a->needed_is_exact ? "" : "at least ", of_a, b->needed_is_exact ? "" : "at least ",
                of_b, mt_format_change(change, (int64_t)(b->needed.max - a->needed.max)));
}

void mt_fleet_diff_text(struct mt_buf *out, const struct mt_fleet_diff_answer *answer,
                        const struct mt_style *style)
{
    const struct mt_job_diff *diff = answer->diff;
    const struct mt_diff_text text = {out, answer, diff, style};

    add_headline(&text);
    add_job(&text, "A", answer->a, diff->a);
    add_job(&text, "B", answer->b, diff->b);
    add_match(&text);
    add_sizes(&text);
    add_alone(&text, "A", false);
    add_alone(&text, "B", true);
    add_need(&text);
    if (diff->compared_count && mt_job_diff_has_changes(diff))
        mt_diff_add_tables(&text);
    mt_diff_add_outcomes(&text);
}
