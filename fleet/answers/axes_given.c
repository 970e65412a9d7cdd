/* Axes named by the user of the command, or by MEMTRACE_MESH of the job. */
#include <string.h>

#include "job_axis.h"

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
    char *name;

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
    name = mt_arena_text(&work->report->arena, text, name_length);
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

enum mt_status mt_job_axes_of_option(struct mt_job_work *work, struct mt_error *error)
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

enum mt_status mt_job_axes_recorded(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    const struct mt_record_identity *first = NULL;

    (void)error;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_record_identity *identity = &report->rows[i].record->identity;

        if (!identity->axis_count)
            continue;
        if (!first)
            first = identity;
        if (!agrees(identity, first))
            return MT_OK;
    }
    if (!first)
        return MT_OK;
    for (uint32_t a = 0; a < first->axis_count; a++)
        if (!mt_job_axis_add(report, first->axes[a].name, first->axes[a].size, 0))
            break;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_record_identity *identity = &report->rows[i].record->identity;

        for (uint32_t a = 0; a < report->axis_count && identity->axis_count; a++)
            report->rows[i].coordinates[a] = identity->axes[a].coordinate;
    }
    return MT_OK;
}
