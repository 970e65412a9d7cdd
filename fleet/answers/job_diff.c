#include "job_diff.h"

#include <stdlib.h>

#include "check.h"

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

    for (uint32_t a = 0; a < diff->axis_count; a++) {
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

    if (diff->match == MT_MATCH_NONE)
        return "all ranks";
    if (diff->match == MT_MATCH_GROUPS && class->is_compared)
        return place_name(arena, diff, class);
    const char *name = mt_job_row_name(arena, report, row);
    if (diff->match != MT_MATCH_PARAMETERS)
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

void mt_job_diff_free(struct mt_job_diff *diff)
{
    if (!diff)
        return;
    mt_rank_set_release(&diff->paths);
    mt_arena_release(&diff->arena);
    free(diff);
}
