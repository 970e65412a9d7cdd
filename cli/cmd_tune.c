/* memtrace tune: the allocator options that minimize the memory of a run. */
#include "cli.h"
#include "screen.h"
#include "tune_output.h"

struct arguments {
    struct mt_common common;
    uint64_t limit_bytes;
    bool no_fits;
};

static void show_progress(void *context, double share)
{
    mt_progress_update(context, "replaying", share);
}

static int print(const struct arguments *arguments, const struct mt_tune_summary *summary)
{
    const struct mt_tune_answer answer = {summary, arguments->limit_bytes, !arguments->no_fits};
    struct mt_buf out = {0};

    if (arguments->common.json)
        mt_tune_print_json(&out, &answer);
    else
        mt_tune_print_text(&out, &answer);
    return mt_print_answer_and_release(&out, arguments->common.json);
}

static int tune(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    struct mt_progress progress = {0};
    const struct mt_tune_options options = {arguments->limit_bytes, !arguments->no_fits,
                                            show_progress, &progress};
    struct mt_error error = {MT_OK, MT_NO_OFFSET, ""};
    struct mt_tune_summary summary;

    mt_progress_start(&progress, arguments->common.quiet);
    enum mt_status status = mt_tune_run(source, &options, &summary, &error);
    mt_progress_end(&progress);
    if (status == MT_ERR_UNSUPPORTED && summary.is_not_pytorch) {
        mt_message("cannot tune '%s': %s; 'memtrace replay --policies' lists other allocators",
                   path, error.text);
        return MT_EXIT_INPUT;
    }
    if (status != MT_OK) {
        error.status = status;
        return mt_report_error(path, &error);
    }
    int exit_code = mt_answer_verdict(print(arguments, &summary), source, path, &arguments->common);
    if (exit_code == MT_EXIT_OK && arguments->limit_bytes && !mt_tune_best(&summary)->serves)
        exit_code = MT_EXIT_BUDGET;
    return exit_code;
}

int mt_cmd_tune(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct mt_option options[] = {
        MT_LIMIT_OPTION(
            &arguments.limit_bytes,
            "memory limit of the allocator; consider only settings with which the run fits"),
        {"no-fits", 0, MT_OPTION_FLAG, NULL, "do not search for the smallest limits (faster)",
         &arguments.no_fits},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int path_count;
    int exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &path_count);

    if (exit_code >= 0)
        return exit_code;
    struct mt_source *source = mt_open_input(paths[0], &arguments.common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = tune(source, paths[0], &arguments);
    mt_source_close(source);
    return exit_code;
}
