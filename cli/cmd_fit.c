/* memtrace fit: the smallest device limit under which a policy serves a trace. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "fit_output.h"
#include "policy.h"

struct arguments {
    struct mt_common common;
    struct mt_text_list policies;
    uint64_t limit_bytes;
    bool no_cards;
};

static const char *const default_policy[] = {"pytorch"};

enum { MOST_NAMES = 32 };

static int fit_error(const char *path, const char *policy, const struct mt_error *error,
                     enum mt_status status)
{
    const char *names[MOST_NAMES], *near;
    size_t count = 0, i;

    if (status != MT_ERR_USAGE && status != MT_ERR_UNSUPPORTED)
        return mt_report_error(path, error);
    for (i = 0; mt_policies[i] && count < MOST_NAMES; i++)
        names[count++] = mt_policies[i]->name;
    near = mt_did_you_mean(policy, names, count);
    if (near && !mt_policy_find(policy, strlen(policy)))
        mt_say("policy '%s': %s; did you mean '%s'?", policy, error->text, near);
    else
        mt_say("policy '%s': %s", policy, error->text);
    return MT_EXIT_USAGE;
}

static int fit_policy(struct mt_source *source, const char *path, const struct arguments *arguments,
                      const char *policy, struct mt_fit_summary *summary)
{
    const struct mt_fit_options options = {policy, arguments->limit_bytes};
    struct mt_error error = {MT_OK, MT_NO_OFFSET, ""};
    enum mt_status status = mt_fit_run(source, &options, summary, &error);

    return status == MT_OK ? MT_EXIT_OK : fit_error(path, policy, &error, status);
}

static int fit_all(struct mt_source *source, const char *path, const struct arguments *arguments,
                   const char *const *policies, size_t count, struct mt_fit_summary *summaries)
{
    struct mt_progress progress = {0};
    int exit_code = MT_EXIT_OK;
    size_t i;

    mt_progress_start(&progress, &arguments->common);
    for (i = 0; exit_code == MT_EXIT_OK && i < count; i++) {
        struct mt_error error;
        mt_progress_update(&progress, "searching", (double)i / (double)count);
        if (i > 0 && mt_source_rewind(source, &error) != MT_OK)
            exit_code = mt_report_error(path, &error);
        else
            exit_code = fit_policy(source, path, arguments, policies[i], &summaries[i]);
    }
    mt_progress_end(&progress);
    return exit_code;
}

static int print(const struct arguments *arguments, const struct mt_fit_summary *summaries,
                 size_t count)
{
    const struct mt_fit_answer answer = {summaries, count, arguments->limit_bytes,
                                         arguments->no_cards};
    struct mt_buf out = {0};
    int exit_code;

    if (arguments->common.json)
        mt_fit_print_json(&out, &answer);
    else
        mt_fit_print_text(&out, &answer);
    exit_code = mt_print(&out);
    mt_buf_release(&out);
    return exit_code;
}

/* A limit that was asked about and does not do is a failed check. */
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
    const char *const *policies =
        arguments->policies.count ? arguments->policies.items : default_policy;
    size_t count = arguments->policies.count ? arguments->policies.count : 1, i;
    struct mt_fit_summary *summaries = calloc(count, sizeof *summaries);
    int exit_code, verdict;

    if (!summaries) {
        mt_say("out of memory");
        return MT_EXIT_INPUT;
    }
    exit_code = fit_all(source, path, arguments, policies, count, summaries);
    if (exit_code == MT_EXIT_OK) {
        exit_code = print(arguments, summaries, count);
        verdict = mt_input_verdict(source, path, &arguments->common);
        if (exit_code == MT_EXIT_OK)
            exit_code = verdict;
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
        {"policy", 'p', MT_OPTION_LIST, "P", "simulate this allocator; may be given several times",
         &arguments.policies},
        {"limit", 0, MT_OPTION_BYTES, "BYTES", "say whether this limit does; exit with 1 if not",
         &arguments.limit_bytes},
        {"no-cards", 0, MT_OPTION_FLAG, NULL, "leave out the table of common cards",
         &arguments.no_cards},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_source *source;
    char **paths;
    int path_count, exit_code;

    exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &path_count);
    if (exit_code >= 0)
        return exit_code;
    source = mt_open_input(paths[0], &arguments.common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = fit(source, paths[0], &arguments);
    mt_source_close(source);
    return exit_code;
}
