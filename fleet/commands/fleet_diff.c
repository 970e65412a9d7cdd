/* memtrace fleet with --base: the difference between two jobs, also as JSON. */
#include "fleet_diff_output.h"
#include "fleet_output.h"
#include "fleet_parts.h"
#include "job_diff_make.h"
#include "json.h"

struct arguments {
    struct mt_common common;
    const char *job_a, *job_b, *mesh;
    uint64_t jobs;
    char **paths;
    int path_count;
};

static const struct mt_command diff_command = {
    "fleet diff", "JOB1 JOB2 [options]", "compare the memory of two runs of a job",
    "A job is a folder, a summary (.mtsum) or a trace, as in 'memtrace fleet'. Shows\n"
    "the changes from JOB1 (A) to JOB2 (B): by axis of the job, by role, by site, by\n"
    "library outside of the allocator, and by rank. Ranks match by number if the\n"
    "jobs have the same size, or else by their place on the axes, or else by the\n"
    "sizes of their parameters. The output states which.\n"
    "\n"
    "To read a folder named diff as a job, write ./diff.\n"
    "\n"
    "Examples:\n"
    "  memtrace fleet diff monday/ tuesday/\n"
    "  memtrace fleet diff base.mtsum traces/ --json\n"
    "  memtrace fleet ./diff",
    NULL};

static int answer(const struct arguments *arguments, const struct mt_fleet_job *a,
                  const struct mt_fleet_job *b);

static int diff(const struct arguments *arguments)
{
    const struct mt_fleet_reading reading = {.name_all = arguments->common.all};
    const struct mt_fleet_naming of_a = {.path = arguments->paths[0],
                                         .option = "job-a",
                                         .job = arguments->job_a,
                                         .mesh = arguments->mesh};
    const struct mt_fleet_naming of_b = {.path = arguments->paths[1],
                                         .option = "job-b",
                                         .job = arguments->job_b,
                                         .mesh = arguments->mesh};
    struct mt_fleet_job a = {0}, b = {0};
    int code = mt_fleet_job_open(&a, &of_a, &reading, arguments->jobs);

    if (code == MT_EXIT_OK)
        code = mt_fleet_job_open(&b, &of_b, &reading, arguments->jobs);
    if (code == MT_EXIT_OK)
        code = answer(arguments, &a, &b);
    mt_fleet_job_release(&a);
    mt_fleet_job_release(&b);
    return code;
}

static int print(const struct mt_fleet_diff_answer *answer, bool json);

static bool is_incomplete(const struct mt_fleet_job *job)
{
    return job->report->missing_count || job->report->incomplete_count;
}

static int answer(const struct arguments *arguments, const struct mt_fleet_job *a,
                  const struct mt_fleet_job *b)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_arena arena = {0};
    struct mt_job_diff *diff;
    enum mt_status status = mt_job_diff_make(a->report, b->report, &diff, &error);

    if (status != MT_OK) {
        error.status = status;
        return mt_report_error(b->path, &error);
    }
    int code =
        print(&(struct mt_fleet_diff_answer){diff, a->path, b->path, &arena, arguments->common.all},
              arguments->common.json);
    mt_arena_release(&arena);
    mt_job_diff_free(diff);
    if (code == MT_EXIT_OK && (a->failures.count || b->failures.count))
        code = MT_EXIT_INPUT;
    if (code == MT_EXIT_OK && arguments->common.strict && (is_incomplete(a) || is_incomplete(b)))
        code = MT_EXIT_INCOMPLETE;
    return code;
}

static void add_job(struct mt_json *json, const char *key, const char *path,
                    const struct mt_job_report *report)
{
    mt_json_object_begin(json, key);
    mt_json_text(json, "path", path);
    mt_fleet_json_world(json, report);
    mt_fleet_json_missing(json, report);
    mt_json_u64(json, "ranks_planned", report->planned_count);
    mt_json_u64(json, "ranks_incomplete", report->incomplete_count);
    mt_json_u64(json, "files_unreadable", report->unreadable_count);
    mt_json_u64(json, "needed_bytes", report->needed.max);
    mt_json_bool(json, "needed_is_exact", report->needed_is_exact);
    mt_fleet_json_outcomes(json, report);
    mt_json_object_end(json);
}

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
    for (struct mt_json_list row = mt_json_rows(json, "groups", axis->group_count);
         mt_json_next(&row);) {
        const struct mt_job_diff_group *group = &axis->groups[row.i];

        mt_json_u64_or_null(json, "coordinate", group->coordinate != MT_NO_ROW, group->coordinate);
        mt_json_object_begin(json, "reserved_peak");
        add_change(json, answer, &group->reserved);
        mt_json_object_end(json);
        mt_json_object_begin(json, "allocated_peak");
        add_change(json, answer, &group->allocated);
        mt_json_object_end(json);
        add_cause(json, answer, group->line, group->line_bytes);
    }
}

static void add_axes(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;

    for (struct mt_json_list row = mt_json_objects(json, "axes", diff->axis_count);
         mt_json_next(&row);) {
        mt_json_text(json, "name", diff->axes[row.i].name);
        mt_json_u64(json, "size", diff->axes[row.i].size);
        add_groups(json, answer, &diff->axes[row.i]);
    }
}

static void add_rank(struct mt_json *json, const struct mt_rank_record *record)
{
    mt_json_u64_or_null(json, "rank", record->identity.rank >= 0, (uint64_t)record->identity.rank);
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

static void add_libraries(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;

    for (struct mt_json_list row = mt_json_rows(json, "libraries", diff->library_count);
         mt_json_next(&row);) {
        const struct mt_job_diff_library *library = &diff->libraries[row.i];

        mt_json_text(json, "library", *library->name ? library->name : NULL);
        add_change(json, answer, &library->change);
    }
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
}

static void add_sites(struct mt_json *json, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;

    for (struct mt_json_list row = mt_json_rows(json, "sites", diff->line_count);
         mt_json_next(&row);) {
        const struct mt_job_diff_line *line = &diff->lines[row.i];
        bool has_moved = line->a_path != line->b_path;

        add_path(json, "site", answer, line->b_path);
        add_path(json, "site_in_a", answer, has_moved ? line->a_path : MT_NO_PATH);
        mt_json_bool(json, "moved", has_moved);
        mt_json_text(json, "only_in", !line->is_in_b ? "a" : !line->is_in_a ? "b" : NULL);
        mt_json_text(json, "role", mt_role_name(line->role));
        add_change(json, answer, &line->change);
    }
}

/* Appends a document "memtrace.fleet-diff/1". */
static void fleet_diff_json(struct mt_buf *out, const struct mt_fleet_diff_answer *answer)
{
    const struct mt_job_diff *diff = answer->diff;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.fleet-diff/1", answer->all);
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
    for (struct mt_json_list row = mt_json_rows(&json, "matches", diff->compared_count);
         mt_json_next(&row);)
        add_match(&json, answer, diff->order[row.i]);
    add_sites(&json, answer);
    mt_json_object_end(&json);
}

static int print(const struct mt_fleet_diff_answer *answer, bool json)
{
    struct mt_buf out = {0};

    if (json)
        fleet_diff_json(&out, answer);
    else
        mt_fleet_diff_text(&out, answer, mt_stdout_style());
    return mt_print_answer_and_release(&out, json);
}

int mt_fleet_diff(int argc, char **argv)
{
    struct arguments arguments = {.jobs = 0};
    const struct mt_option options[] = {
        {"job-a", 0, MT_OPTION_TEXT, "NAME", "the job to compare, if JOB1 contains several",
         &arguments.job_a},
        {"job-b", 0, MT_OPTION_TEXT, "NAME", "the job to compare, if JOB2 contains several",
         &arguments.job_b},
        {"mesh", 0, MT_OPTION_TEXT, "AXES",
         "names and sizes of the axes of both jobs: pp:8,dp:32,tp:8", &arguments.mesh},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N", "read at most N files at the same time",
         &arguments.jobs},
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS_WITH(arguments.common, "print one JSON document",
                               "exit with 5 if ranks are missing or a trace is incomplete"),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    int code = mt_options_parse(&diff_command, options, argc, argv, 0, 2, &arguments.paths,
                                &arguments.path_count);

    if (code >= 0)
        return code;
    if (arguments.path_count < 2) {
        mt_message("fleet diff: needs two jobs, JOB1 and JOB2; to read a folder named 'diff', use "
                   "'memtrace fleet ./diff'");
        return MT_EXIT_USAGE;
    }
    return diff(&arguments);
}

/* The comparison of two jobs as memtrace.fleet-diff/1. */
