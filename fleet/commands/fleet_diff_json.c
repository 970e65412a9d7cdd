/* The comparison of two jobs as memtrace.fleet-diff/1. */
#include "fleet_diff_output.h"
#include "json_list.h"

/* Adds a sum, or null if the sum exceeds INT64_MAX, which a hostile file can cause. */
static void add_sum(struct mt_json *json, const char *key, unsigned __int128 sum)
{
    mt_json_u64_or_null(json, key, sum <= INT64_MAX, (uint64_t)sum);
}

static void add_class(struct mt_json *json, const char *key,
                      const struct mt_fleet_diff_answer *answer, uint32_t class)
{
    if (class == MT_NO_CLASS)
        mt_json_null(json, key);
    else
        mt_json_text(json, key, mt_job_class_name(answer->arena, answer->diff, class));
}

/* Adds the fields of a change to an open object. */
static void add_change(struct mt_json *json, const struct mt_fleet_diff_answer *answer,
                       const struct mt_job_change *change)
{
    add_sum(json, "a_sum_bytes", change->a_sum_bytes);
    add_sum(json, "b_sum_bytes", change->b_sum_bytes);
    mt_json_u64(json, "a_ranks", change->a_rows);
    mt_json_u64(json, "b_ranks", change->b_rows);
    mt_json_u64(json, "matches", change->class_count);
    mt_json_i64(json, "min_bytes", change->min_bytes);
    mt_json_i64(json, "mean_bytes", change->mean_bytes);
    mt_json_i64(json, "max_bytes", change->max_bytes);
    add_class(json, "min_match", answer, change->class_count ? change->min_class : MT_NO_CLASS);
    add_class(json, "max_match", answer, change->class_count ? change->max_class : MT_NO_CLASS);
}

static void add_rank(struct mt_json *json, const struct mt_rank_record *record)
{
    mt_json_u64_or_null(json, "rank", record->identity.rank >= 0, (uint64_t)record->identity.rank);
}

/* Limits the list as memtrace.fleet/1 does, because a file may claim a billion ranks. */
static void add_missing(struct mt_json *json, const struct mt_job_report *report)
{
    struct mt_json_list list;
    uint64_t added = 0;
    bool goes_on = true;

    mt_json_list_begin(&list, json, "missing_ranks");
    for (uint32_t i = 0; i < report->missing_ranges && goes_on; i++) {
        int64_t rank = report->missing[i].first;

        for (; rank <= report->missing[i].last && (goes_on = mt_json_list_takes(&list)); rank++) {
            mt_json_i64(json, NULL, rank);
            added++;
        }
    }
    if (!goes_on)
        list.omitted = report->missing_count - added;
    mt_json_list_end(&list);
}

static void add_job(struct mt_json *json, const char *key, const char *path,
                    const struct mt_job_report *report)
{
    mt_json_object_begin(json, key);
    mt_json_text(json, "path", path);
    mt_json_text(json, "job", *report->job ? report->job : NULL);
    mt_json_u64(json, "world", report->world);
    mt_json_bool(json, "world_is_known", report->world_is_known && !report->worlds_differ);
    mt_json_u64(json, "ranks_seen", report->seen_count);
    mt_json_u64(json, "ranks_missing", report->missing_count);
    add_missing(json, report);
    mt_json_u64(json, "ranks_planned", report->planned_count);
    mt_json_u64(json, "ranks_incomplete", report->incomplete_count);
    mt_json_u64(json, "files_unreadable", report->unreadable_count);
    mt_json_u64(json, "needed_bytes", report->needed.max);
    mt_json_bool(json, "needed_is_exact", report->needed_is_exact);
    mt_json_object_begin(json, "outcomes");
    for (int i = 0; i < MT_OUTCOME_COUNT; i++)
        mt_json_u64(json, mt_outcome_name((enum mt_outcome)i), report->outcome_counts[i]);
    mt_json_object_end(json);
    mt_json_object_end(json);
}

static void add_metrics(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    mt_json_array_begin(json, "metrics");
    for (int i = 0; i < MT_JOB_METRIC_COUNT; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "metric", mt_job_metric_name((enum mt_job_metric)i));
        add_change(json, answer, &answer->diff->metrics[i]);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void add_roles(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    mt_json_array_begin(json, "roles");
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "role", mt_role_name((enum mt_role)i));
        add_change(json, answer, &answer->diff->roles[i]);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void add_path(struct mt_json *json, const char *key,
                     const struct mt_fleet_diff_answer *answer, uint32_t path)
{
    if (path == MT_NO_PATH)
        mt_json_null(json, key);
    else
        mt_json_text(json, key, mt_job_diff_site(answer->arena, answer->diff, path));
}

/* Adds the line with the largest change in a group or in a match. */
static void add_cause(struct mt_json *json, const struct mt_fleet_diff_answer *answer,
                      uint32_t line, int64_t bytes)
{
    const struct mt_job_diff *diff = answer->diff;
    bool has_line = line != MT_NO_LINE;

    add_path(json, "site", answer, has_line ? diff->lines[line].b_path : MT_NO_PATH);
    mt_json_text(json, "site_role", has_line ? mt_role_name(diff->lines[line].role) : NULL);
    mt_json_i64(json, "site_change_bytes", has_line ? bytes : 0);
}

static void add_groups(struct mt_json *json, const struct mt_fleet_diff_answer *answer,
                       const struct mt_job_diff_axis *axis)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "groups");
    for (uint32_t i = 0; i < axis->group_count; i++) {
        const struct mt_job_diff_group *group = &axis->groups[i];

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_u64_or_null(json, "coordinate", group->coordinate != MT_NO_ROW, group->coordinate);
        mt_json_object_begin(json, "reserved_peak");
        add_change(json, answer, &group->reserved);
        mt_json_object_end(json);
        mt_json_object_begin(json, "allocated_peak");
        add_change(json, answer, &group->allocated);
        mt_json_object_end(json);
        add_cause(json, answer, group->line, group->line_bytes);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

static void add_axes(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json_list list;

    mt_json_objects_begin(&list, json, "axes", diff->axis_count);
    for (uint32_t i = 0; i < diff->axis_count; i++) {
        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "name", diff->axes[i].name);
        mt_json_u64(json, "size", diff->axes[i].size);
        add_groups(json, answer, &diff->axes[i]);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

static void add_sites(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "sites");
    for (uint32_t i = 0; i < diff->line_count; i++) {
        const struct mt_job_diff_line *line = &diff->lines[i];
        bool has_moved = line->a_path != line->b_path;

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        add_path(json, "site", answer, line->b_path);
        add_path(json, "site_in_a", answer, has_moved ? line->a_path : MT_NO_PATH);
        mt_json_bool(json, "moved", has_moved);
        mt_json_text(json, "only_in", !line->is_in_b ? "a" : !line->is_in_a ? "b" : NULL);
        mt_json_text(json, "role", mt_role_name(line->role));
        add_change(json, answer, &line->change);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

static void add_libraries(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "libraries");
    for (uint32_t i = 0; i < diff->library_count; i++) {
        const struct mt_job_diff_library *library = &diff->libraries[i];

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "library", *library->name ? library->name : NULL);
        add_change(json, answer, &library->change);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

/* Adds null if a rank of the match lacks the number. */
static void add_class_change(struct mt_json *json, const char *key,
                             const struct mt_job_class *class, enum mt_job_metric metric)
{
    const struct mt_job_class_change *change = &class->metrics[metric];

    if (!change->is_known) {
        mt_json_null(json, key);
        return;
    }
    mt_json_object_begin(json, key);
    mt_json_u64(json, "a_bytes", change->a_bytes);
    mt_json_u64(json, "b_bytes", change->b_bytes);
    mt_json_i64(json, "change_bytes", mt_job_class_change(class, metric));
    mt_json_object_end(json);
}

static void add_match(struct mt_json *json, const struct mt_fleet_diff_answer *answer,
                      uint32_t number)
{
    const struct mt_job_diff *diff = answer->diff;
    const struct mt_job_class *class = &diff->classes[number];
    const struct mt_rank_record *a = diff->a->rows[class->a_rows[0]].record;
    const struct mt_rank_record *b = diff->b->rows[class->b_rows[0]].record;
    bool is_rank = diff->match == MT_MATCH_RANKS;

    mt_json_object_begin(json, NULL);
    add_class(json, "name", answer, number);
    mt_json_u64_or_null(json, "rank", is_rank && a->identity.rank >= 0, (uint64_t)a->identity.rank);
    mt_json_u64(json, "a_ranks", class->a_count);
    mt_json_u64(json, "b_ranks", class->b_count);
    mt_json_text(json, "a_outcome", is_rank ? mt_outcome_name(a->outcome) : NULL);
    mt_json_text(json, "b_outcome", is_rank ? mt_outcome_name(b->outcome) : NULL);
    add_class_change(json, "reserved_peak", class, MT_JOB_RESERVED);
    add_class_change(json, "allocated_peak", class, MT_JOB_ALLOCATED);
    add_class_change(json, "outside", class, MT_JOB_OUTSIDE);
    add_class_change(json, "needed", class, MT_JOB_NEEDED);
    add_class_change(json, "growth", class, MT_JOB_GROWTH);
    add_cause(json, answer, class->line, class->line_bytes);
    mt_json_object_end(json);
}

static void add_matches(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "matches");
    for (uint32_t i = 0; i < answer->diff->compared_count; i++)
        if (mt_json_list_takes(&list))
            add_match(json, answer, answer->diff->order[i]);
    mt_json_list_end(&list);
}

static void add_alone(struct mt_json *json, const char *key,
                      const struct mt_fleet_diff_answer *answer, bool is_of_b)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json_list list;

    mt_json_list_begin(&list, json, key);
    for (uint32_t i = 0; i < diff->class_count; i++) {
        const struct mt_job_class *class = &diff->classes[i];
        uint32_t count = class->is_compared ? 0 : is_of_b ? class->b_count : class->a_count;

        for (uint32_t r = 0; r < count; r++) {
            const struct mt_rank_record *record = is_of_b ? diff->b->rows[class->b_rows[r]].record
                                                          : diff->a->rows[class->a_rows[r]].record;

            if (!mt_json_list_takes(&list))
                continue;
            mt_json_object_begin(json, NULL);
            add_rank(json, record);
            mt_json_u64(json, "device", record->device);
            mt_json_text(json, "trace", record->trace_name);
            mt_json_text(json, "outcome", mt_outcome_name(record->outcome));
            mt_json_u64(json, "reserved_peak_bytes", record->reserved_peak.bytes);
            mt_json_u64(json, "allocated_peak_bytes", record->allocated_peak.bytes);
            mt_json_object_end(json);
        }
    }
    mt_json_list_end(&list);
}

void mt_fleet_diff_json(struct mt_buf *out, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json json;

    mt_json_init(&json, out, true);
    json.all = answer->all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.fleet-diff/1");
    add_job(&json, "a", answer->a, diff->a);
    add_job(&json, "b", answer->b, diff->b);
    mt_json_text(&json, "matched_by", mt_job_match_name(diff->match));
    mt_json_bool(&json, "has_changes", mt_job_diff_has_changes(diff));
    mt_json_u64(&json, "matched_count", diff->compared_count);
    mt_json_u64(&json, "a_ranks_matched", diff->a_compared_rows);
    mt_json_u64(&json, "b_ranks_matched", diff->b_compared_rows);
    add_metrics(&json, answer);
    add_roles(&json, answer);
    add_axes(&json, answer);
    add_alone(&json, "only_in_a", answer, false);
    add_alone(&json, "only_in_b", answer, true);
    add_libraries(&json, answer);
    add_matches(&json, answer);
    add_sites(&json, answer);
    mt_json_object_end(&json);
}
