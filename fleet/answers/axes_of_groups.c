/* Axes from the framework's process groups. An axis of `size` ranks at a distance of `stride` is a
 * group of that shape in which every rank has the position given by its number. Axes fill the job
 * without a gap: the fastest has stride 1, the next one the stride that the axes before it span,
 * and so on. If groups of several sizes have that stride, such as tp, and tp with dp, the smallest
 * is the axis and the others are products. */
#include <stdlib.h>
#include <string.h>

#include "job_axis.h"
#include "sorted.h"

enum { MAX_SHAPES = 64 };

struct shape {
    const char *name;
    uint32_t size, stride, rank_count;
};

struct shapes {
    struct shape list[MAX_SHAPES];
    uint32_t count;
};

/* Returns true if the rank has the position that an axis with the group's size and stride assigns
 * to it: group->first + stride * (rank / stride % size). */
static bool job_group_is_in_place(const struct mt_record_group *group, int32_t rank)
{
    if (rank < 0 || !group->stride || group->size < 2)
        return false;
    uint64_t position = (uint64_t)(uint32_t)rank / group->stride % group->size;
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
            job_group_is_in_place(&of_row->list[i], rank))
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
                job_group_is_in_place(&of_rows[r].list[i], rank))
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

/* Makes axes from the groups of each row. O(groups * shapes of groups). */
static void job_axes_from(struct mt_job_work *work, const struct mt_job_groups *of_rows)
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

void mt_job_axes_of_groups(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    struct mt_job_groups *of_rows = MT_JOB_ARRAY(work, report->row_count, struct mt_job_groups);

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_record_identity *identity = &report->rows[r].record->identity;

        of_rows[r] = (struct mt_job_groups){identity->groups, identity->group_count};
    }
    job_axes_from(work, of_rows);
}

/* Axes from NCCL's communicators: ranks with a common communicator are a process group. A pipeline
 * also makes communicators of neighbors, which overlap. So a shape is not an axis if some rank has
 * another position in it than an axis would give it. */

/* A row's place in a communicator. */
struct member {
    uint64_t id;
    uint32_t position, size, row;
};

struct groups {
    struct mt_record_group *list; /* by row, as many as the row has communicators */
    uint32_t *begin, *count;      /* of each row in it */
};

MT_DEFINE_ORDER(by_communicator, struct member,
                MT_ASCENDING(id) || MT_ASCENDING(position) || MT_ASCENDING(row))

static uint32_t collect(const struct mt_job_report *report, struct member *members)
{
    uint32_t count = 0;

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_rank_record *record = report->rows[r].record;

        for (uint32_t i = 0; i < record->communicator_count && record->identity.rank >= 0; i++)
            members[count++] =
                (struct member){record->communicators[i].id, record->communicators[i].rank,
                                record->communicators[i].ranks, r};
    }
    if (count)
        qsort(members, count, sizeof *members, by_communicator);
    return count;
}

static uint32_t rank_at(const struct mt_job_report *report, const struct member *member)
{
    return (uint32_t)report->rows[member->row].record->identity.rank;
}

/* Copies members to `ranks`, without further devices of the same rank at the same place. */
static uint32_t ranks_of(const struct mt_job_report *report, const struct member *members,
                         uint32_t count, struct member *ranks)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (!kept || ranks[kept - 1].position != members[i].position ||
            rank_at(report, &ranks[kept - 1]) != rank_at(report, &members[i]))
            ranks[kept++] = members[i];
    return kept;
}

/* All members are there, each once, and their numbers are at equal distances. 0: they are not. */
static uint32_t stride_of(const struct mt_job_report *report, const struct member *members,
                          uint32_t count)
{
    if (count < 2 || count != members[0].size ||
        rank_at(report, &members[1]) <= rank_at(report, &members[0]))
        return 0;
    uint32_t stride = rank_at(report, &members[1]) - rank_at(report, &members[0]);
    for (uint32_t i = 0; i < count; i++)
        if (members[i].position != i || members[i].size != count ||
            rank_at(report, &members[i]) - rank_at(report, &members[0]) != (uint64_t)i * stride)
            return 0;
    return stride;
}

/* Every device of a rank gets the group. `ranks`: room for `count` members. */
static void add_groups(const struct mt_job_report *report, const struct member *members,
                       uint32_t count, struct member *ranks, struct groups *groups)
{
    uint32_t size = ranks_of(report, members, count, ranks);
    uint32_t stride = stride_of(report, ranks, size);

    for (uint32_t i = 0; i < count && stride; i++) {
        uint32_t row = members[i].row;

        groups->list[groups->begin[row] + groups->count[row]++] =
            (struct mt_record_group){.name = "",
                                     .size = size,
                                     .first = rank_at(report, &members[0]),
                                     .stride = stride,
                                     .position = (int32_t)members[i].position};
    }
}

/* Shapes that are not an axis, by their size and stride. */
struct bad_shapes {
    struct {
        uint32_t size, stride;
    } list[64];
    uint32_t count;
};

static bool is_bad(const struct bad_shapes *bad, const struct mt_record_group *group)
{
    for (uint32_t i = 0; i < bad->count; i++)
        if (bad->list[i].size == group->size && bad->list[i].stride == group->stride)
            return true;
    return false;
}

/* False: there are too many. */
static bool find_bad(const struct mt_job_report *report, const struct groups *groups,
                     struct bad_shapes *bad)
{
    for (uint32_t r = 0; r < report->row_count; r++)
        for (uint32_t i = 0; i < groups->count[r]; i++) {
            const struct mt_record_group *group = &groups->list[groups->begin[r] + i];

            if (job_group_is_in_place(group, report->rows[r].record->identity.rank) ||
                is_bad(bad, group))
                continue;
            if (bad->count == MT_ARRAY_LEN(bad->list))
                return false;
            bad->list[bad->count].size = group->size;
            bad->list[bad->count++].stride = group->stride;
        }
    return true;
}

static void drop_bad(const struct mt_job_report *report, const struct bad_shapes *bad,
                     struct groups *groups)
{
    for (uint32_t r = 0; r < report->row_count; r++) {
        struct mt_record_group *own = groups->list + groups->begin[r];
        uint32_t kept = 0;

        for (uint32_t i = 0; i < groups->count[r]; i++)
            if (!is_bad(bad, &own[i]))
                own[kept++] = own[i];
        groups->count[r] = kept;
    }
}

/* Hashes of the parameters of complete ranks, by rank; 0 = unknown. */
static uint64_t *hashes_of(struct mt_job_work *work)
{
    const struct mt_job_report *report = work->report;
    uint64_t *hashes = MT_JOB_ARRAY(work, report->world, uint64_t);

    for (uint32_t r = report->row_count; r-- > 0;) {
        int32_t rank = report->rows[r].record->identity.rank;

        if (rank >= 0 && (uint32_t)rank < report->world && mt_job_is_whole(report->rows[r].record))
            hashes[rank] = report->rows[r].parameter_hash;
    }
    return hashes;
}

/* Whether a rank has other parameters than the first one of its line along the axis. */
static bool differs_along(const struct mt_job_report *report, const struct mt_job_axis *axis,
                          const uint64_t *hashes)
{
    for (uint32_t rank = 0; rank < report->world; rank++) {
        uint32_t first = rank - rank / axis->stride % axis->size * axis->stride;

        if (hashes[rank] && hashes[first] && hashes[rank] != hashes[first])
            return true;
    }
    return false;
}

/* Communicators have no names: ranks with other parameters are stages, others are replicas. */
static void name_axes(struct mt_job_work *work)
{
    static const char *const words[] = {"replica", "stage"};
    struct mt_job_report *report = work->report;
    const uint64_t *hashes = hashes_of(work);
    uint32_t counts[MT_ARRAY_LEN(words)] = {0};

    for (uint32_t a = 0; a < report->axis_count; a++) {
        bool is_stage = differs_along(report, &report->axes[a], hashes);
        uint32_t number = ++counts[is_stage];

        report->axes[a].name = number == 1 ? words[is_stage]
                                           : mt_arena_printf(&report->arena, "%s_%u",
                                                             words[is_stage], (unsigned)number);
    }
}

static void find_axes(struct mt_job_work *work, struct groups *groups)
{
    struct mt_job_report *report = work->report;
    struct mt_job_groups *of_rows = MT_JOB_ARRAY(work, report->row_count, struct mt_job_groups);
    struct bad_shapes bad = {.count = 0};

    if (!find_bad(report, groups, &bad))
        return;
    drop_bad(report, &bad, groups);
    for (uint32_t r = 0; r < report->row_count; r++)
        of_rows[r] = (struct mt_job_groups){groups->list + groups->begin[r], groups->count[r]};
    job_axes_from(work, of_rows);
    if (report->axis_count)
        name_axes(work);
}

void mt_job_axes_of_communicators(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    struct groups groups = {.begin = MT_JOB_ARRAY(work, report->row_count, uint32_t),
                            .count = MT_JOB_ARRAY(work, report->row_count, uint32_t)};
    uint32_t room = 0;

    if (report->world > MT_JOB_MAX_ROWS)
        return;
    for (uint32_t r = 0; r < report->row_count; r++) {
        groups.begin[r] = room;
        room += report->rows[r].record->communicator_count;
    }
    struct member *members = MT_JOB_ARRAY(work, room, struct member);
    struct member *ranks = MT_JOB_ARRAY(work, room, struct member);
    groups.list = MT_JOB_ARRAY(work, room, struct mt_record_group);
    uint32_t count = collect(report, members);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && members[end].id == members[i].id;)
            end++;
        add_groups(report, members + i, end - i, ranks, &groups);
    }
    find_axes(work, &groups);
}
