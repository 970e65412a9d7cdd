/* The arrangement of the ranks: the first source that has it. */
#include <string.h>

#include "job_axis.h"
#include "job_values.h"

/* Axes inferred from the memory of ranks. Ranks with the same parameters form a class, and classes
 * repeat over the rank numbers. The largest `block` of equal neighbors that divides the job, and
 * the smallest `period` of blocks, give
 *     rank = (outer * period + stage) * block + inner
 * in which ranks differ along `stage` only. Ranks without a class match any class. */

#define WILD UINT32_MAX

struct classes {
    uint32_t *of_rank; /* WILD: missing, or nothing is known */
    uint32_t world, count;
};

/* A rank with several devices has several rows; the first one represents it. */
static bool is_first_of_rank(const struct mt_job_report *report, uint32_t row)
{
    return !row ||
           report->rows[row - 1].record->identity.rank != report->rows[row].record->identity.rank;
}

static void read_classes(struct mt_job_work *work, bool with_steps, struct classes *classes)
{
    const struct mt_job_report *report = work->report;
    struct mt_job_key *keys = MT_JOB_ARRAY(work, report->row_count, struct mt_job_key);
    uint32_t *of_row = MT_JOB_ARRAY(work, report->row_count, uint32_t), count = 0;

    classes->of_rank = MT_JOB_ARRAY(work, classes->world, uint32_t);
    for (uint32_t i = 0; i < classes->world; i++)
        classes->of_rank[i] = WILD;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;
        uint64_t key = !with_steps               ? report->rows[i].parameter_hash
                       : mt_job_is_whole(record) ? record->step_hash
                                                 : 0;

        if (key && record->identity.rank >= 0 && is_first_of_rank(report, i))
            keys[count++] = (struct mt_job_key){0, i, key};
    }
    classes->count = mt_job_classes_split(keys, count, of_row);
    for (uint32_t i = 0; i < count; i++)
        classes->of_rank[report->rows[keys[i].row].record->identity.rank] = of_row[keys[i].row];
}

/* *class is the class of all ranks of the block; WILD if none is known. Returns false if they
 * differ. */
static bool class_of_block(const struct classes *classes, uint32_t first, uint32_t block,
                           uint32_t *class)
{
    *class = WILD;
    for (uint32_t i = first; i < first + block; i++) {
        if (classes->of_rank[i] == WILD)
            continue;
        if (*class != WILD && *class != classes->of_rank[i])
            return false;
        *class = classes->of_rank[i];
    }
    return true;
}

static bool has_blocks(const struct classes *classes, uint32_t block)
{
    uint32_t class;

    for (uint32_t i = 0; i < classes->world; i += block)
        if (!class_of_block(classes, i, block, &class))
            return false;
    return true;
}

static bool has_period(const struct classes *classes, uint32_t block, uint32_t period)
{
    for (uint32_t stage = 0; stage < period; stage++) {
        uint32_t known = WILD;

        for (uint32_t i = stage * block; i < classes->world; i += period * block) {
            uint32_t class;

            class_of_block(classes, i, block, &class);
            if (class == WILD)
                continue;
            if (known != WILD && known != class)
                return false;
            known = class;
        }
    }
    return true;
}

/* O(world) for each divisor of world, and there are few. */
static uint32_t largest_block(const struct classes *classes)
{
    for (uint32_t count = 1; count < classes->world; count++)
        if (classes->world % count == 0 && has_blocks(classes, classes->world / count))
            return classes->world / count;
    return 1;
}

static uint32_t smallest_period(const struct classes *classes, uint32_t block)
{
    uint32_t blocks = classes->world / block;

    for (uint32_t period = 1; period < blocks; period++)
        if (blocks % period == 0 && has_period(classes, block, period))
            return period;
    return blocks;
}

static void add_axes(struct mt_job_report *report, uint32_t block, uint32_t period)
{
    uint32_t outer = report->world / block / period;

    if (outer > 1)
        mt_job_axis_add(report, block > 1 ? "replica_outer" : "replica", outer, block * period);
    mt_job_axis_add(report, "stage", period, block);
    if (block > 1)
        mt_job_axis_add(report, outer > 1 ? "replica_inner" : "replica", block, 1);
}

/* Parameters that do not repeat are still stages of a pipeline if most ranks have their own. Steps
 * differ for many reasons, such as the lengths of sequences, so they must repeat. */
static void find(struct mt_job_work *work, bool with_steps, bool *is_known)
{
    struct mt_job_report *report = work->report;
    struct classes classes = {.world = report->world};

    read_classes(work, with_steps, &classes);
    *is_known = classes.count > 0;
    if (classes.count < 2)
        return;
    uint32_t block = largest_block(&classes);
    uint32_t period = smallest_period(&classes, block);
    bool repeats = period * block < report->world;
    bool has_stages = block > 1 || classes.count * 2 > report->world + 1;
    if (repeats || (has_stages && !with_steps))
        add_axes(report, block, period);
}

/* Steps count only if no parameters are known: ranks with the same parameters are replicas even if
 * their steps differ. */
static void job_axes_found(struct mt_job_work *work)
{
    bool is_known;

    if (work->report->world > MT_JOB_MAX_ROWS || work->report->world < 2)
        return;
    find(work, false, &is_known);
    if (!is_known)
        find(work, true, &is_known);
}

/* Axes named by the user of the command, or by MEMTRACE_MESH of the job. */

static enum mt_status refuse(struct mt_error *error, const char *reason)
{
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "the mesh %s; a mesh is like pp:8,dp:32,tp:8, the fastest axis last", reason);
}

/* "tp:8" of `length` bytes. */
static enum mt_status read_axis(struct mt_job_work *work, const char *text, size_t length,
                                struct mt_error *error)
{
    const char *colon = memchr(text, ':', length);
    size_t name_length = colon ? (size_t)(colon - text) : 0;
    uint64_t size = 0;

    if (!name_length || name_length > 16 ||
        strspn(text, "abcdefghijklmnopqrstuvwxyz_") < name_length)
        return refuse(error, "has an axis without a name of lower-case letters");
    for (size_t i = name_length + 1; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || size > INT32_MAX)
            return refuse(error, "has an axis whose size is not a number");
        size = size * 10 + (uint64_t)(text[i] - '0');
    }
    if (!size || size > INT32_MAX)
        return refuse(error, "has an axis whose size is not a number");
    char *name = mt_arena_text(&work->report->arena, text, name_length);
    for (uint32_t i = 0; i < work->report->axis_count; i++)
        if (!strcmp(work->report->axes[i].name, name))
            return refuse(error, "names an axis twice");
    if (!mt_job_axis_add(work->report, name, (uint32_t)size, 0))
        return refuse(error, "has more than 8 axes");
    return MT_OK;
}

static enum mt_status fill_strides(struct mt_job_report *report, struct mt_error *error)
{
    uint64_t places = 1;

    for (uint32_t i = report->axis_count; i--;) {
        report->axes[i].stride = (uint32_t)places;
        places *= report->axes[i].size;
        if (places > INT32_MAX)
            return refuse(error, "is larger than any job");
    }
    if (!report->world_is_known && places > report->world) {
        report->world = (uint32_t)places; /* the user's mesh determines the number of ranks */
        report->world_is_known = true;
    }
    if (places == report->world)
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "the mesh has %llu places, and the job has %u ranks", (unsigned long long)places,
                   (unsigned)report->world);
}

static enum mt_status job_axes_of_option(struct mt_job_work *work, struct mt_error *error)
{
    const char *at = work->options->mesh;

    if (!at)
        return MT_OK;
    for (;;) {
        size_t length = strcspn(at, ",");
        enum mt_status status = read_axis(work, at, length, error);

        if (status != MT_OK)
            return status;
        if (!at[length])
            return fill_strides(work->report, error);
        at += length + 1;
    }
}

/* The axes that ranks recorded count only if all ranks agree. */
static bool agrees(const struct mt_record_identity *identity,
                   const struct mt_record_identity *other)
{
    bool same = identity->axis_count == other->axis_count;

    for (uint32_t i = 0; same && i < identity->axis_count; i++)
        same = identity->axes[i].size == other->axes[i].size &&
               !strcmp(identity->axes[i].name, other->axes[i].name);
    return same;
}

static void job_axes_recorded(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    const struct mt_record_identity *first = NULL;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_record_identity *identity = &report->rows[i].record->identity;

        if (!identity->axis_count)
            continue;
        if (!first)
            first = identity;
        if (!agrees(identity, first))
            return;
    }
    if (!first)
        return;
    for (uint32_t a = 0; a < first->axis_count; a++)
        if (!mt_job_axis_add(report, first->axes[a].name, first->axes[a].size, 0))
            break;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_record_identity *identity = &report->rows[i].record->identity;

        for (uint32_t a = 0; a < report->axis_count && identity->axis_count; a++)
            report->rows[i].coordinates[a] = identity->axes[a].coordinate;
    }
}

/* Coordinates of axes whose stride is known follow from the number of the rank. */
static void fill_coordinates(struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;

        for (uint32_t a = 0; a < report->axis_count && rank >= 0; a++)
            if (report->axes[a].stride)
                report->rows[i].coordinates[a] =
                    (uint32_t)rank / report->axes[a].stride % report->axes[a].size;
    }
}

enum mt_status mt_job_find_axes(struct mt_job_work *work, struct mt_error *error)
{
    static const struct {
        enum mt_axes_source source;
        mt_job_answer *find;
    } sources[] = {
        {MT_AXES_RECORDED, job_axes_recorded},
        {MT_AXES_GROUPS, mt_job_axes_of_groups},
        {MT_AXES_COMMUNICATORS, mt_job_axes_of_communicators},
        {MT_AXES_FOUND, job_axes_found},
    };
    struct mt_job_report *report = work->report;

    report->axes = MT_JOB_ARRAY(work, MT_JOB_AXES, struct mt_job_axis);
    enum mt_status status = job_axes_of_option(work, error);
    report->axes_source = report->axis_count ? MT_AXES_OPTION : report->axes_source;
    for (size_t i = 0; i < MT_ARRAY_LEN(sources) && status == MT_OK && !report->axis_count; i++) {
        sources[i].find(work);
        report->axes_source = report->axis_count ? sources[i].source : report->axes_source;
    }
    if (status == MT_OK)
        fill_coordinates(report);
    return status;
}
