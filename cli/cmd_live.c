/* memtrace live: blocks that are alive at an instant. */
#include "instant_option.h"
#include "live_output.h"
#include "question_report.h"

struct arguments {
    struct mt_common common;
    struct mt_question question;
    uint64_t device;
};

static int print_result(const struct mt_question_report *asked, const struct arguments *arguments)
{
    const struct mt_live_output live = {asked->report, &arguments->question, arguments->device,
                                        arguments->common.all};
    struct mt_buf out = {0};
    int code = mt_question_check(asked, &arguments->question, arguments->device);

    if (code >= 0)
        return code;
    if (arguments->common.json)
        mt_live_json(&out, &live);
    else
        mt_live_text(&out, &live, mt_stdout_style());
    return mt_print_answer_and_release(&out, arguments->common.json);
}

static int live(const char *path, const struct arguments *arguments)
{
    struct mt_question_report asked;
    int code = mt_question_run(path, &arguments->common, &arguments->question, &asked);

    if (code < 0) {
        code = print_result(&asked, arguments);
        code = mt_answer_verdict(code, asked.source, path, &arguments->common);
    }
    mt_question_close(&asked);
    return code;
}

int mt_cmd_live(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE};
    const char *at = NULL, *by = NULL;
    const struct mt_option options[] = {
        {"at", 0, MT_OPTION_TEXT, "INSTANT",
         "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH", &at},
        {"by", 0, MT_OPTION_TEXT, "GROUP",
         "site, stack, role, phase, size, module, tag or tag.MEMBER", &by},
        MT_DEVICE_OPTION(&arguments.device, "only this device"),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);

    if (code >= 0)
        return code;
    if (!mt_question_option_read(at, by, &arguments.question))
        return MT_EXIT_USAGE;
    arguments.question.all = arguments.common.all;
    return live(paths[0], &arguments);
}
