/* memtrace live: what is alive at an instant. */
#include "file_hash.h"
#include "instant_option.h"
#include "live_output.h"

#include <stdlib.h>
#include <string.h>

struct arguments {
    struct mt_common common;
    struct mt_question question;
    uint64_t device;
};

/* ---- what cannot be answered ------------------------------------------------ */

static int say_no_device(const struct mt_report *report, uint64_t device)
{
    struct mt_buf line = {0};

    for (uint32_t i = 0; i < report->device_count; i++)
        mt_buf_printf(&line, "%s%u", i ? ", " : "", report->devices[i].device);
    mt_say("nothing happened on device %llu; devices of this trace: %s", (unsigned long long)device,
           line.data ? line.data : "none");
    mt_buf_release(&line);
    return MT_EXIT_USAGE;
}

static int say_no_phase(const struct mt_report *report, const char *asked)
{
    size_t count = 0;
    const char **names = calloc(2 * (size_t)report->phase_count + 1, sizeof *names), *near;

    for (uint32_t i = 0; names && i < report->phase_count; i++) {
        names[count++] = report->phases[i].path;
        names[count++] = report->phases[i].name;
    }
    near = count ? mt_did_you_mean(asked, names, count) : NULL;
    free(names);
    if (near)
        mt_say("no phase '%s'; did you mean '%s'?", asked, near);
    else if (report->phase_count)
        mt_say("no phase '%s'; 'memtrace analyze --json' has the paths of all", asked);
    else
        mt_say("no phase '%s': this trace has none", asked);
    return MT_EXIT_USAGE;
}

/* -1 if any device has an answer, else the exit code of having said why not. */
static int check(const struct mt_report *report, const struct arguments *arguments)
{
    const struct mt_live_output live = {report, &arguments->question, arguments->device};
    enum mt_no_answer missing = MT_ANSWERED;
    uint32_t told = 0;

    for (uint32_t i = 0; i < report->device_count; i++) {
        if (!mt_live_tells(&live, &report->devices[i]))
            continue;
        told++;
        missing = report->devices[i].answer->missing;
        if (!missing)
            return -1;
    }
    if (missing == MT_NO_SUCH_PHASE)
        return say_no_phase(report, arguments->question.phase);
    if (missing) {
        mt_say("%s", mt_no_answer_text(missing));
        return MT_EXIT_USAGE;
    }
    if (!told && arguments->device != MT_EVERY_DEVICE)
        return say_no_device(report, arguments->device);
    return -1;
}

/* ---- the command ----------------------------------------------------------- */

static int tell(const struct mt_report *report, const struct arguments *arguments)
{
    const struct mt_live_output live = {report, &arguments->question, arguments->device};
    struct mt_buf out = {0};
    int code = check(report, arguments);

    if (code >= 0)
        return code;
    if (arguments->common.json)
        mt_live_json(&out, &live);
    else
        mt_live_text(&out, &live, mt_stdout_style());
    code = mt_print(&out);
    mt_buf_release(&out);
    return code;
}

static void show_progress(void *progress, double share)
{
    mt_progress_update(progress, "reading", share);
}

static int answer(struct mt_source *source, const char *path, const struct arguments *arguments)
{
    struct mt_progress progress = {0};
    struct mt_analyze_options options = {.path = path,
                                         .flamechart_step = MT_NO_STEP,
                                         .progress = {show_progress, &progress},
                                         .question = &arguments->question};
    struct mt_report *report;
    struct mt_file_hash hash;
    struct mt_error error;
    enum mt_status status;
    int code, verdict;

    mt_file_hash_start(&hash, path);
    mt_progress_start(&progress, &arguments->common);
    status = mt_analyze(source, &options, &report, &error);
    mt_progress_end(&progress);
    if (status) {
        (void)mt_file_hash_finish(&hash);
        return mt_report_error(path, &error);
    }
    memcpy(report->sha256, mt_file_hash_finish(&hash), sizeof report->sha256);
    code = tell(report, arguments);
    verdict = mt_input_verdict(source, path, &arguments->common);
    mt_report_release(report);
    return code ? code : verdict;
}

int mt_cmd_live(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE};
    const char *at = NULL, *by = NULL;
    const struct mt_option options[] = {
        {"at", 0, MT_OPTION_TEXT, "INSTANT",
         "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH", &at},
        {"by", 0, MT_OPTION_TEXT, "GROUP", "site, stack, role, phase or size", &by},
        {"device", 0, MT_OPTION_COUNT, "N", "only this device", &arguments.device},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_source *source;
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);

    if (code >= 0)
        return code;
    if (!mt_question_option_read(at, by, &arguments.question))
        return MT_EXIT_USAGE;
    source = mt_open_input(paths[0], &arguments.common, &code);
    if (!source)
        return code;
    code = answer(source, paths[0], &arguments);
    mt_source_close(source);
    return code;
}
