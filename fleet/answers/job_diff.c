#include "job_diff.h"

#include <stdlib.h>

#include "check.h"
#include "job_diff_work.h"

const char *mt_job_match_name(enum mt_job_match match)
{
    static const char *const names[] = {"ranks", "groups", "parameters", "none"};

    MT_ASSERT((unsigned)match < MT_ARRAY_LEN(names));
    return names[match];
}

int64_t mt_job_class_change(const struct mt_job_class *class, enum mt_job_metric metric)
{
    const struct mt_job_class_change *change = &class->metrics[metric];

    return change->is_known ? (int64_t)change->b_bytes - (int64_t)change->a_bytes : 0;
}

static bool changes(const struct mt_job_change *change)
{
    return change->min_bytes || change->max_bytes;
}

bool mt_job_diff_has_changes(const struct mt_job_diff *diff)
{
    for (int i = 0; i < MT_JOB_METRIC_COUNT; i++)
        if (changes(&diff->metrics[i]))
            return true;
    for (uint32_t i = 0; i < diff->line_count; i++)
        if (changes(&diff->lines[i].change))
            return true;
    for (uint32_t i = 0; i < diff->library_count; i++)
        if (changes(&diff->libraries[i].change))
            return true;
    return false;
}

/* "pp 0, tp 1" */
static const char *place_name(struct mt_arena *arena, const struct mt_job_diff *diff,
                              const struct mt_job_class *class)
{
    const char *name = "";

    for (uint32_t a = 0; a < diff->axis_count && name; a++) {
        const char *axis = diff->axes[a].name, *comma = a ? ", " : "";
        uint32_t coordinate = class->coordinates[a];

        name = coordinate == MT_NO_ROW
                   ? mt_arena_printf(arena, "%s%s%s unknown", name, comma, axis)
                   : mt_arena_printf(arena, "%s%s%s %u", name, comma, axis, (unsigned)coordinate);
    }
    return name;
}

const char *mt_job_class_name(struct mt_arena *arena, const struct mt_job_diff *diff,
                              uint32_t class_index)
{
    const struct mt_job_class *class = &diff->classes[class_index];
    const struct mt_job_report *report = class->a_count ? diff->a : diff->b;
    uint32_t row = class->a_count ? class->a_rows[0] : class->b_rows[0];
    const char *name;

    if (diff->match == MT_MATCH_NONE)
        return "all ranks";
    if (diff->match == MT_MATCH_GROUPS && class->is_compared)
        return place_name(arena, diff, class);
    name = mt_job_row_name(arena, report, row);
    if (!name || diff->match != MT_MATCH_PARAMETERS)
        return name;
    return mt_arena_printf(arena, "parameters as of %s of %s", name, class->a_count ? "A" : "B");
}

const char *mt_job_diff_site(struct mt_arena *arena, const struct mt_job_diff *diff, uint32_t path)
{
    const struct mt_rank_set *paths = &diff->paths;
    uint32_t caller = path == MT_NO_PATH ? MT_NO_PATH : paths->paths[path].parent;

    if (path == MT_NO_PATH)
        return "";
    if (caller == MT_NO_PATH)
        return mt_rank_set_frame(paths, path);
    return mt_arena_printf(arena, "%s < %s", mt_rank_set_frame(paths, path),
                           mt_rank_set_frame(paths, caller));
}

/* Roles and leaves are parts of the allocated peak. */
static enum mt_status check_sizes(const struct mt_job_report *report, struct mt_error *error)
{
    for (uint32_t i = 0; i < report->row_count; i++)
        for (int m = 0; m < MT_JOB_METRIC_COUNT; m++) {
            const struct mt_rank_record *record = report->rows[i].record;
            uint64_t bytes = mt_job_metric_of(record, (enum mt_job_metric)m);

            if (bytes > MT_JOB_DIFF_MAX_BYTES)
                return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                               "%.80s has a record of %llu bytes (%s), which no device has",
                               record->trace_name, (unsigned long long)bytes,
                               mt_job_metric_name((enum mt_job_metric)m));
        }
    return MT_OK;
}

static enum mt_status fill(struct mt_job_diff *diff)
{
    struct mt_job_line_index index = {0};
    enum mt_status status = mt_job_diff_find_classes(diff);

    if (status == MT_OK)
        status = mt_job_diff_find_lines(diff, &index);
    if (status == MT_OK)
        status = mt_job_diff_count(diff, &index);
    mt_job_line_index_release(&index);
    return status;
}

enum mt_status mt_job_diff_make(const struct mt_job_report *a, const struct mt_job_report *b,
                                struct mt_job_diff **diff, struct mt_error *error)
{
    struct mt_job_diff *made;
    enum mt_status status = check_sizes(a, error);

    *diff = NULL;
    if (status == MT_OK)
        status = check_sizes(b, error);
    if (status != MT_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (!made)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for the diff of two jobs");
    made->a = a;
    made->b = b;
    status = fill(made);
    if (status != MT_OK) {
        mt_job_diff_free(made);
        return mt_fail(error, status, MT_NO_OFFSET,
                       status == MT_ERR_MEMORY ? "no memory for the diff of two jobs"
                                               : "too many call paths for one diff");
    }
    *diff = made;
    return MT_OK;
}

void mt_job_diff_free(struct mt_job_diff *diff)
{
    if (!diff)
        return;
    mt_rank_set_release(&diff->paths);
    mt_arena_release(&diff->arena);
    free(diff);
}
