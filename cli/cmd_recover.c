/* memtrace recover: what a killed process left on its tape becomes part of its
 * trace. `record` does this itself, unless it was killed as well. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "memory_limit.h"
#include "outputs.h"
#include "record_output.h"
#include "tape_file.h"

enum {
    MAX_FILES = 4096,
    TIMEOUT_MS = 500 /* for a process that was killed and is about to be gone */
};

/* The trace whose tape `path` is, or path itself; false if it is too long. */
static bool trace_of(const char *path, char trace[4096])
{
    size_t length = strlen(path), suffix = strlen(MT_TAPE_SUFFIX);

    if (length >= 4096)
        return false;
    if (length > suffix && strcmp(path + length - suffix, MT_TAPE_SUFFIX) == 0)
        length -= suffix;
    memcpy(trace, path, length);
    trace[length] = '\0';
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

/* The first of the lines: the others are for what went well. */
static void say_line(const char *trace, const struct mt_buf *lines)
{
    if (lines->failed || !lines->data)
        (void)mt_say_no_memory(trace);
    else
        mt_say("%.*s", (int)strcspn(lines->data, "\n"), lines->data);
}

/* One file: its lines or its object; exit code. */
static int recover_one(const char *path, const struct mt_common *common, struct mt_buf *out,
                       struct mt_json *json)
{
    const struct mt_trace_end_options options = {.patience_ms = TIMEOUT_MS,
                                                 .unfinished = mt_outputs_unfinished()};
    struct mt_buf line = {0};
    struct mt_trace_end end;
    char trace[4096];
    int code;

    if (!trace_of(path, trace)) {
        mt_say("'%.80s...': the path is too long", path);
        return MT_EXIT_INPUT;
    }
    mt_trace_end(&end, trace, &options);
    code = exit_code_of(&end, common->strict);
    mt_add_trace_end(&line, &end, "", common->quiet);
    if (end.state == MT_TRACE_RUNNING || end.state == MT_TRACE_FAILED ||
        end.state == MT_TRACE_INCOMPLETE)
        say_line(trace, &line);
    else if (!common->json && line.data)
        mt_buf_add(out, line.data, line.length);
    if (common->json)
        mt_json_trace_end(json, &end);
    mt_buf_release(&line);
    return code;
}

int mt_cmd_recover(const struct mt_command *command, int argc, char **argv)
{
    struct mt_common common = {.format = NULL};
    const struct mt_option options[] = {
        {"json", 0, MT_OPTION_FLAG, NULL, "print one JSON document", &common.json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "say only what was lost", &common.quiet},
        {"strict", 0, MT_OPTION_FLAG, NULL, "exit with 5 if events are missing", &common.strict},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    struct mt_buf out = {0};
    struct mt_json json;
    char **files;
    int count, i, printed, code;

    code = mt_options_parse(command, options, argc, argv, 1, MAX_FILES, &files, &count);
    if (code >= 0)
        return code;
    code = MT_EXIT_OK;
    mt_json_init(&json, &out, true);
    if (common.json) {
        mt_json_object_begin(&json, NULL);
        mt_json_text(&json, "schema", "memtrace.recover/1");
        mt_json_array_begin(&json, "traces");
    }
    for (i = 0; i < count; i++) {
        int one = recover_one(files[i], &common, &out, &json);
        code = one > code ? one : code;
    }
    if (common.json) {
        mt_json_array_end(&json);
        mt_json_object_end(&json);
        mt_buf_add_char(&out, '\n');
    }
    printed = mt_print_answer_and_release(&out, common.json);
    return printed != MT_EXIT_OK ? printed : code;
}
