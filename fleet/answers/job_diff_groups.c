/* Changes in groups of classes with a common coordinate on an axis. */
#include <stdlib.h>
#include <string.h>

#include "job_diff_work.h"

/* The classes that are compared, by their coordinate on an axis; the unknown one is the largest. */
struct placed {
    uint32_t coordinate, class;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->coordinate != y->coordinate)
        return x->coordinate < y->coordinate ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

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

        mt_job_choose_line(diff, line, (int64_t)(lines->sums[line] / group->allocated.class_count),
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

                mt_job_tally_add(peaks, 0, side, record->reserved_peak.bytes);
                mt_job_tally_add(peaks, 1, side, record->allocated_peak.bytes);
            }
        mt_job_tally_close(peaks, diff, placed[i].class);
        mt_job_tally_lines(&lines->tally, diff, lines->index, placed[i].class);
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
    mt_job_tally_init(&tally, &diff->arena, 2);
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
        mt_job_tally_finish(&tally);
        end_group(lines, diff, group);
    }
}

void mt_job_diff_count_axes(struct mt_job_diff *diff, const struct mt_job_line_index *index)
{
    struct group_lines lines = {.diff = diff, .index = index};
    size_t room = (size_t)diff->line_count + 1;

    if (!diff->axis_count || !diff->compared_count)
        return;
    mt_job_tally_init(&lines.tally, &diff->arena, diff->line_count);
    lines.sums = mt_arena_array(&diff->arena, room, sizeof *lines.sums);
    lines.used = mt_arena_array(&diff->arena, room, sizeof *lines.used);
    lines.is_used = mt_arena_array(&diff->arena, room, sizeof *lines.is_used);
    for (uint32_t i = 0; i < diff->line_count; i++)
        lines.tally.changes[i] = &lines.scratch;
    for (uint32_t i = 0; i < diff->axis_count; i++)
        count_axis(diff, &lines, i);
}
