/* memtrace analyze: the whole report of one trace. */
#include "analyze_output.h"
#include "file_hash.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct arguments {
    struct mt_common common;
    const char *directory, *policy;
    uint64_t limit_bytes;
};

static struct mt_analyze_options options_of(const struct arguments *arguments, const char *path)
{
    struct mt_analyze_options options = {.path = path, .flamechart_step = MT_NO_STEP};

    options.replay.policy = arguments->policy;
    options.replay.limit_bytes = arguments->limit_bytes;
    options.want_timeline = options.want_flamechart = arguments->directory != NULL;
    return options;
}

/* ---- files ----------------------------------------------------------------- */

static int make_directory(const char *path)
{
    struct stat facts;
    struct mt_error error;

    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)))
        return MT_EXIT_OK;
    mt_fail(&error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    return mt_report_error(path, &error);
}

static int write_json(const struct mt_report *report, const char *directory)
{
    struct mt_buf json = {0}, path = {0};
    int code;

    mt_analyze_json(&json, report);
    mt_buf_printf(&path, "%s/report.json", directory);
    if (json.failed || path.failed) {
        mt_say("out of memory while writing the report");
        code = MT_EXIT_OUTPUT;
    } else {
        code = mt_write_file(path.data, json.data, json.length);
    }
    mt_buf_release(&json);
    mt_buf_release(&path);
    return code;
}

/* ---- the command ----------------------------------------------------------- */

static int tell(const struct mt_report *report, const struct arguments *arguments)
{
    struct mt_buf out = {0};
    int code;

    if (arguments->common.json)
        mt_analyze_json(&out, report);
    else
        mt_analyze_text(&out, report, mt_stdout_style());
    code = mt_print(&out);
    mt_buf_release(&out);
    return code;
}

static int analyze(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    const struct mt_analyze_options options = options_of(arguments, path);
    struct mt_progress progress = {0};
    struct mt_report *report;
    struct mt_file_hash hash;
    struct mt_error error;
    int code, verdict;

    mt_file_hash_start(&hash, path);
    mt_progress_start(&progress, &arguments->common);
    if (mt_analyze(source, &options, &report, &error) != MT_OK) {
        mt_progress_end(&progress);
        (void)mt_file_hash_finish(&hash);
        return mt_report_error(path, &error);
    }
    mt_progress_end(&progress);
    memcpy(report->sha256, mt_file_hash_finish(&hash), sizeof report->sha256);
    code = tell(report, arguments);
    if (code == MT_EXIT_OK && arguments->directory) {
        code = make_directory(arguments->directory);
        if (code == MT_EXIT_OK)
            code = write_json(report, arguments->directory);
    }
    verdict = mt_input_verdict(source, path, &arguments->common);
    mt_report_release(report);
    return code ? code : verdict;
}

int mt_cmd_analyze(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.directory = NULL};
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "DIR", "write report.json and pictures there",
         &arguments.directory},
        {"policy", 0, MT_OPTION_TEXT, "P", "simulate this allocator instead of the recorded one",
         &arguments.policy},
        {"limit", 0, MT_OPTION_BYTES, "BYTES", "simulate a device of this size",
         &arguments.limit_bytes},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_source *source;
    char **paths;
    int count, code;

    code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);
    if (code >= 0)
        return code;
    source = mt_open_input(paths[0], &arguments.common, &code);
    if (!source)
        return code;
    code = analyze(source, paths[0], &arguments);
    mt_source_close(source);
    return code;
}
