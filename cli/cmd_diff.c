/* memtrace diff: compares the memory of two runs. */
#include <string.h>

#include "diff_output.h"
#include "diff_run.h"
#include "instant_option.h"

struct arguments {
    struct mt_common common;
    struct mt_question question;
    struct mt_picture picture;
    struct mt_outputs outputs;
    uint64_t device;
    const char *a, *b;
};

static int print(struct mt_diff_run *run, const struct arguments *arguments)
{
    const struct mt_diff_output output = {&run->diff, &arguments->question, &run->arena,
                                          arguments->common.all};
    struct mt_buf out = {0};

    if (arguments->common.json)
        mt_diff_json(&out, &output);
    else
        mt_diff_text(&out, &output, mt_stdout_style());
    return mt_print_answer_and_release(&out, arguments->common.json);
}

/* The output is one JSON document, so no message announces the picture. */
static int draw(const struct mt_diff_run *run, const struct arguments *arguments)
{
    const struct mt_common no_options = {0};

    return mt_diff_picture(run, &arguments->question, &arguments->picture, &no_options);
}

static int diff(const struct arguments *arguments)
{
    const struct mt_diff_request request = {arguments->a, arguments->b, &arguments->question,
                                            arguments->device};
    struct mt_diff_run run;
    int code = mt_diff_run_open(&request, &arguments->common, &run);

    if (code < 0) {
        code = print(&run, arguments);
        if (code == MT_EXIT_OK && arguments->picture.output)
            code = draw(&run, arguments);
        code = mt_diff_run_verdict(&run, &arguments->common, code);
    }
    mt_diff_run_close(&run);
    return code;
}

static bool check_picture(struct arguments *arguments)
{
    struct mt_picture *picture = &arguments->picture;

    if (!picture->output)
        return true;
    if (strcmp(picture->output, "-") != 0)
        return mt_picture_read(picture, &arguments->common);
    mt_message("diff: -o needs the name of a file; to write to standard output use 'memtrace "
               "render diff A B -o -'");
    return false;
}

int mt_cmd_diff(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE};
    const char *at = NULL;
    const struct mt_option options[] = {
        {"at", 0, MT_OPTION_TEXT, "INSTANT",
         "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH", &at},
        {"device", 0, MT_OPTION_COUNT, "N", "only this device", &arguments.device},
        {"output", 'o', MT_OPTION_TEXT, "FILE", "also draw the difference: .svg or .png",
         &arguments.picture.output},
        MT_FORCE_OPTION(arguments.outputs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 2, 2, &paths, &count);

    if (code >= 0)
        return code;
    if (!mt_question_option_read(at, NULL, &arguments.question) || !check_picture(&arguments))
        return MT_EXIT_USAGE;
    arguments.a = paths[0];
    arguments.b = paths[1];
    if (!strcmp(arguments.a, "-") && !strcmp(arguments.b, "-")) {
        mt_message("diff: only one of the two traces can be standard input");
        return MT_EXIT_USAGE;
    }
    arguments.picture.outputs = &arguments.outputs;
    mt_outputs_add_input(&arguments.outputs, arguments.a);
    mt_outputs_add_input(&arguments.outputs, arguments.b);
    code = mt_picture_precheck(&arguments.picture);
    return code ? code : diff(&arguments);
}
