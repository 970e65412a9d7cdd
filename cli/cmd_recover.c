/* memtrace recover: completes the trace of a killed process with the events on its tape. `record`
 * does this itself, unless it was also killed. */
#include <string.h>

#include "cli.h"
#include "info_recorded.h"
#include "outputs.h"
#include "record_output.h"
#include "tape_file.h"

enum {
    MAX_FILES = 4096,
    TIMEOUT_MS = 500 /* for a process that was killed and is still exiting */
};

struct recover {
    struct mt_common common;
    bool no_summary;
    struct mt_recorded_summaries summaries;
    struct mt_buf out;
    struct mt_json json;
};

/* Changes `path` from a tape to its trace. Returns false if it is too long for a file name. */
static bool take_trace(char *path)
{
    size_t length = strlen(path), suffix = strlen(MT_TAPE_SUFFIX);

    if (length >= 4096)
        return false;
    if (length > suffix && strcmp(path + length - suffix, MT_TAPE_SUFFIX) == 0)
        path[length - suffix] = '\0';
    return true;
}

static int exit_code_of(const struct mt_trace_end *end, bool strict)
{
    switch (end->state) {
    case MT_TRACE_FAILED:
        return end->error.status == MT_ERR_OUTPUT ? MT_EXIT_OUTPUT : MT_EXIT_INPUT;
    case MT_TRACE_RUNNING:
    case MT_TRACE_INCOMPLETE: return MT_EXIT_INPUT;
    case MT_TRACE_WHOLE:
    case MT_TRACE_RECOVERED: break;
    }
    return strict && !mt_trace_end_is_complete(end) ? MT_EXIT_INCOMPLETE : MT_EXIT_OK;
}

/* Prints only the first line: the others describe success. */
static void say_line(const struct mt_buf *lines)
{
    mt_message("%.*s", (int)strcspn(lines->data, "\n"), lines->data);
}

/* `record` was killed before it wrote the summary. An existing summary may describe the trace
 * without its tape. */
static bool wants_a_summary(const struct recover *recover, const struct mt_trace_end *end)
{
    return !recover->no_summary && end->state == MT_TRACE_RECOVERED && end->summary.events;
}

/* Handles one file and prints lines or a JSON object. Returns the exit code. */
static int recover_one(struct recover *recover, char *path)
{
    const struct mt_trace_end_options options = {.patience_ms = TIMEOUT_MS,
                                                 .unfinished = mt_outputs_unfinished()};
    const struct mt_common *common = &recover->common;
    struct mt_buf line = {0};
    struct mt_trace_end end;

    if (!take_trace(path)) {
        mt_message("'%.80s...': the path is too long", path);
        return MT_EXIT_INPUT;
    }
    mt_trace_end(&end, path, &options);
    mt_record_add_trace_end(&line, &end, "", common->quiet);
    if (end.state == MT_TRACE_RUNNING || end.state == MT_TRACE_FAILED ||
        end.state == MT_TRACE_INCOMPLETE)
        say_line(&line);
    else if (!common->json && line.data)
        mt_buf_add(&recover->out, line.data, line.length);
    if (common->json)
        mt_json_trace_end(&recover->json, &end);
    mt_buf_release(&line);
    if (wants_a_summary(recover, &end))
        mt_recorded_summaries_add(&recover->summaries, path);
    return exit_code_of(&end, common->strict);
}

static int recover_all(struct recover *recover, char **files, int count)
{
    int code = MT_EXIT_OK;

    mt_json_init(&recover->json, &recover->out, true);
    if (recover->common.json) {
        mt_json_object_begin(&recover->json, NULL);
        mt_json_text(&recover->json, "schema", "memtrace.recover/1");
        mt_json_array_begin(&recover->json, "traces");
    }
    recover->summaries.is_quiet = recover->common.quiet || recover->common.json;
    for (int i = 0; i < count; i++) {
        int one = recover_one(recover, files[i]);
        code = one > code ? one : code;
    }
    mt_recorded_summaries_finish(&recover->summaries);
    if (recover->common.json) {
        mt_json_array_end(&recover->json);
        mt_json_object_end(&recover->json);
        mt_buf_add_char(&recover->out, '\n');
    }
    return code;
}

int mt_cmd_recover(const struct mt_command *command, int argc, char **argv)
{
    struct recover recover = {.no_summary = false};
    struct mt_common *common = &recover.common;
    const struct mt_option options[] = {
        {"no-summary", 0, MT_OPTION_FLAG, NULL, "do not write a summary (.mtsum) beside a trace",
         &recover.no_summary},
        {"json", 0, MT_OPTION_FLAG, NULL, "print one JSON document", &common->json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print only what was lost", &common->quiet},
        {"strict", 0, MT_OPTION_FLAG, NULL, "exit with 5 if events are missing", &common->strict},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    char **files;
    int count;
    int code = mt_options_parse(command, options, argc, argv, 1, MAX_FILES, &files, &count);

    if (code >= 0)
        return code;
    code = recover_all(&recover, files, count);
    int printed = mt_print_answer_and_release(&recover.out, common->json);
    return printed != MT_EXIT_OK ? printed : code;
}
