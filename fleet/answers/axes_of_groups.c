/* Axes from the framework's process groups. An axis of `size` ranks at a distance of `stride` is a
 * group of that shape in which every rank has the position given by its number. Axes fill the job
 * without a gap: the fastest has stride 1, the next one the stride that the axes before it span,
 * and so on. If groups of several sizes have that stride, such as tp, and tp with dp, the smallest
 * is the axis and the others are products. */
#include <string.h>

#include "job_axis.h"

enum { MAX_SHAPES = 64 };

struct shape {
    const char *name;
    uint32_t size, stride, rank_count;
};

struct shapes {
    struct shape list[MAX_SHAPES];
    uint32_t count;
};

bool mt_job_group_is_in_place(const struct mt_record_group *group, int32_t rank)
{
    uint64_t position;

    if (rank < 0 || !group->stride || group->size < 2)
        return false;
    position = (uint64_t)(uint32_t)rank / group->stride % group->size;
    return (uint64_t)group->first + position * group->stride == (uint32_t)rank;
}

/* `is_first`: the rank has no other group of that shape that was added. */
static void add_shape(struct shapes *shapes, const struct mt_record_group *group, bool is_first)
{
    for (uint32_t i = 0; i < shapes->count; i++) {
        struct shape *shape = &shapes->list[i];

        if (shape->size != group->size || shape->stride != group->stride)
            continue;
        shape->rank_count += is_first;
        if (!mt_job_axis_word(shape->name) && mt_job_axis_word(group->name))
            shape->name = group->name;
        return;
    }
    if (shapes->count < MAX_SHAPES)
        shapes->list[shapes->count++] = (struct shape){group->name, group->size, group->stride, 1};
}

/* Several groups of a rank may have the same shape, which counts once. */
static bool is_repeated(const struct mt_job_groups *of_row, int32_t rank, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (of_row->list[i].size == of_row->list[index].size &&
            of_row->list[i].stride == of_row->list[index].stride &&
            mt_job_group_is_in_place(&of_row->list[i], rank))
            return true;
    return false;
}

/* Returns how many rows have any group. */
static uint32_t find_shapes(const struct mt_job_report *report, const struct mt_job_groups *of_rows,
                            struct shapes *shapes)
{
    uint32_t ranks = 0;

    for (uint32_t r = 0; r < report->row_count; r++) {
        int32_t rank = report->rows[r].record->identity.rank;

        ranks += of_rows[r].count > 0;
        for (uint32_t i = 0; i < of_rows[r].count; i++)
            if (of_rows[r].list[i].size < report->world &&
                mt_job_group_is_in_place(&of_rows[r].list[i], rank))
                add_shape(shapes, &of_rows[r].list[i], !is_repeated(&of_rows[r], rank, i));
    }
    return ranks;
}

/* The smallest shape with that stride that all these rows have. */
static const struct shape *next_axis(const struct shapes *shapes, uint64_t stride, uint32_t ranks,
                                     uint32_t world)
{
    const struct shape *best = NULL;

    for (uint32_t i = 0; i < shapes->count; i++) {
        const struct shape *shape = &shapes->list[i];

        if (shape->stride == stride && shape->rank_count >= ranks &&
            world % (stride * shape->size) == 0 && (!best || shape->size < best->size))
            best = shape;
    }
    return best;
}

static void add_axis(struct mt_job_work *work, const char *word, uint32_t size, uint64_t stride)
{
    struct mt_arena *arena = &work->report->arena;
    const char *name =
        word ? word : mt_arena_printf(arena, "every_%llu", (unsigned long long)stride);

    for (uint32_t i = 0; i < work->report->axis_count; i++)
        if (!strcmp(work->report->axes[i].name, name))
            name = mt_arena_printf(arena, "every_%llu", (unsigned long long)stride);
    mt_job_axis_add(work->report, name, size, (uint32_t)stride);
}

/* Slowest axis first, as in a mesh. */
static void turn(struct mt_job_report *report)
{
    for (uint32_t i = 0, j = report->axis_count; i + 1 < j; i++) {
        struct mt_job_axis axis = report->axes[i];

        report->axes[i] = report->axes[--j];
        report->axes[j] = axis;
    }
}

/* If no group has the stride, an unnamed axis fills the gap up to the next stride of a group. */
static uint64_t next_stride(const struct shapes *shapes, uint64_t stride, uint32_t world)
{
    uint64_t next = world;

    for (uint32_t i = 0; i < shapes->count; i++)
        if (shapes->list[i].stride > stride && shapes->list[i].stride < next &&
            shapes->list[i].stride % stride == 0 && world % shapes->list[i].stride == 0)
            next = shapes->list[i].stride;
    return next;
}

void mt_job_axes_from(struct mt_job_work *work, const struct mt_job_groups *of_rows)
{
    struct mt_job_report *report = work->report;
    struct shapes shapes = {.count = 0};
    uint32_t ranks = find_shapes(report, of_rows, &shapes), known = 0;

    for (uint64_t stride = 1; shapes.count && stride < report->world;) {
        const struct shape *shape = next_axis(&shapes, stride, ranks, report->world);
        uint64_t size = shape ? shape->size : next_stride(&shapes, stride, report->world) / stride;

        add_axis(work, shape ? mt_job_axis_word(shape->name) : NULL, (uint32_t)size, stride);
        known += shape != NULL;
        stride *= size;
    }
    if (!known)
        report->axis_count = 0;
    turn(report);
}

enum mt_status mt_job_axes_of_groups(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    struct mt_job_groups *of_rows = MT_JOB_ARRAY(work, report->row_count, struct mt_job_groups);

    (void)error;
    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_record_identity *identity = &report->rows[r].record->identity;

        of_rows[r] = (struct mt_job_groups){identity->groups, identity->group_count};
    }
    mt_job_axes_from(work, of_rows);
    return MT_OK;
}
