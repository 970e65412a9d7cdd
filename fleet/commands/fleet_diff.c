#include "fleet_diff.h"

#include "fleet_diff_output.h"
#include "job_diff_make.h"

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

static int print(const struct mt_fleet_diff_answer *answer, bool json)
{
    struct mt_buf out = {0};

    if (json)
        mt_fleet_diff_json(&out, answer);
    else
        mt_fleet_diff_text(&out, answer, mt_stdout_style());
    return mt_print_answer_and_release(&out, json);
}

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
    int code;

    if (status != MT_OK) {
        error.status = status;
        return mt_report_error(b->path, &error);
    }
    code =
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
        mt_say("fleet diff: needs two jobs, JOB1 and JOB2; to read a folder named 'diff', use "
               "'memtrace fleet ./diff'");
        return MT_EXIT_USAGE;
    }
    return diff(&arguments);
}
