/* memtrace fit: the smallest device limit under which a policy serves a trace. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "process_memory.h"
#include "trace_summary.h"
#include "fit_output.h"
#include "policy_runs.h"
#include "pool_option.h"
#include "memory_limit.h"

struct arguments {
    struct mt_common common;
    struct mt_text_list policies, pools;
    uint64_t limit_bytes, jobs;
    bool no_cards;
};

struct fit_run {
    const struct arguments *arguments;
    struct mt_fit_summary *summaries; /* one per policy */
};

static enum mt_status fit_policy(void *context, struct mt_source *source, const char *policy,
                                 size_t index, struct mt_error *error)
{
    const struct fit_run *run = context;
    const struct mt_fit_options options = {
        .policy = policy, .limit_bytes = run->arguments->limit_bytes, .orders = MT_BASE_ORDERS};

    return mt_fit_run(source, &options, &run->summaries[index], error);
}

/* Returns true if only driver calls of XLA were recorded. False for standard input, which cannot be
 * read again. */
static bool lacks_xla_requests(const struct mt_source *source, const char *path)
{
    struct mt_trace_summary summary;
    struct mt_error error;

    return source->view.level == MT_VIEW_DRIVER && strcmp(path, "-") != 0 &&
           mt_trace_summarize(path, &summary, &error) == MT_OK && summary.xla_requests_missing;
}

static int print(const struct mt_source *source, const char *path,
                 const struct arguments *arguments, const struct mt_fit_summary *summaries,
                 size_t count)
{
    const struct mt_fit_answer answer = {source,
                                         summaries,
                                         count,
                                         arguments->limit_bytes,
                                         arguments->no_cards,
                                         arguments->common.all,
                                         lacks_xla_requests(source, path)};
    struct mt_buf out = {0};

    if (arguments->common.json)
        mt_fit_print_json(&out, &answer);
    else
        mt_fit_print_text(&out, &answer);
    return mt_print_answer_and_release(&out, arguments->common.json);
}

/* A requested limit that is too small is a failed check. */
static int limit_exit(const struct arguments *arguments, const struct mt_fit_summary *summaries,
                      size_t count)
{
    size_t i, d;

    for (i = 0; arguments->limit_bytes && i < count; i++) {
        for (d = 0; d < summaries[i].device_count; d++) {
            if (!summaries[i].devices[d].limit_fits)
                return MT_EXIT_BUDGET;
        }
    }
    return MT_EXIT_OK;
}

static int fit(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    size_t count = arguments->policies.count, i;
    struct mt_fit_summary *summaries = mt_memory_zeroed(count, sizeof *summaries);
    struct fit_run run = {arguments, summaries};
    const struct mt_policy_runs runs = {
        source,          path,       NULL, &arguments->common, &arguments->policies, "searching",
        arguments->jobs, fit_policy, &run};
    int exit_code;

    exit_code = mt_run_policies(&runs);
    if (exit_code == MT_EXIT_OK) {
        exit_code = print(source, path, arguments, summaries, count);
        exit_code = mt_answer_verdict(exit_code, source, path, &arguments->common);
        if (exit_code == MT_EXIT_OK)
            exit_code = limit_exit(arguments, summaries, count);
    }
    for (i = 0; i < count; i++)
        mt_fit_release(&summaries[i]);
    free(summaries);
    return exit_code;
}

int mt_cmd_fit(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct mt_option options[] = {
        {"policy", 'p', MT_OPTION_LIST, "P", "simulate this allocator; repeatable",
         &arguments.policies},
        {"pool", 0, MT_OPTION_LIST, "SELECTOR",
         "give the requests that match a separate memory pool", &arguments.pools},
        {"limit", 0, MT_OPTION_BYTES, "BYTES",
         "test this limit; exit with 1 if the run does not fit", &arguments.limit_bytes},
        {"no-cards", 0, MT_OPTION_FLAG, NULL, "omit the table of common cards",
         &arguments.no_cards},
        MT_JOBS_OPTION(&arguments.jobs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_arena arena = {0};
    struct mt_source *source;
    char **paths;
    int path_count, exit_code;

    exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &path_count);
    if (exit_code >= 0)
        return exit_code;
    if (!arguments.policies.count)
        arguments.policies.items[arguments.policies.count++] = NULL; /* the policy of the trace */
    exit_code = mt_pools_to_policies(&arguments.pools, &arguments.policies, &arena);
    source = exit_code ? NULL : mt_open_input(paths[0], &arguments.common, &exit_code);
    if (source)
        exit_code = fit(source, paths[0], &arguments);
    mt_source_close(source);
    mt_arena_release(&arena);
    return exit_code;
}
