/* memtrace diff: what another run holds more, or less. */
#include "diff_output.h"
#include "instant_option.h"

#include <stdlib.h>
#include <string.h>

struct arguments {
    struct mt_common common;
    struct mt_question question;
    uint64_t device;
    const char *a, *b;
};

/* ---- the runs themselves --------------------------------------------------- */

static void add_run(struct mt_diff_output *diff, const char *what, const char *a, const char *b)
{
    const char *of_a = a && *a ? a : "none", *of_b = b && *b ? b : "none";

    if (strcmp(of_a, of_b) != 0 && diff->run_count < MT_RUN_DIFFERENCES)
        diff->runs[diff->run_count++] = (struct mt_run_difference){what, of_a, of_b};
}

static void add_counted(struct mt_diff_output *diff, const char *what, int64_t a, int64_t b)
{
    add_run(diff, what, mt_arena_printf(diff->arena, "%lld", (long long)a),
            mt_arena_printf(diff->arena, "%lld", (long long)b));
}

static const char *device_name(const struct mt_report *report)
{
    return report->device_count ? report->devices[0].name : NULL;
}

static const char *level(const struct mt_report *report)
{
    return report->is_driver_level ? "the driver's" : "the framework's";
}

static const char *start(const struct mt_report *report)
{
    return report->starts_in_middle ? "in the middle of the run" : "at its beginning";
}

/* Whatever may be why memory differs, or makes the comparison lame. */
static void compare_runs(struct mt_diff_output *diff)
{
    const struct mt_report *a = diff->a, *b = diff->b;

    add_counted(diff, "the number of steps", a->step_count, b->step_count);
    add_counted(diff, "the number of devices", a->device_count, b->device_count);
    add_run(diff, "the kind of device", device_name(a), device_name(b));
    add_run(diff, "the framework's version", a->framework, b->framework);
    add_run(diff, "options of the allocator", a->options, b->options);
    add_run(diff, "the level that is analysed", level(a), level(b));
    add_run(diff, "where the trace begins", start(a), start(b));
}

/* ---- devices --------------------------------------------------------------- */

static const struct mt_device_report *find_device(const struct mt_report *report, uint16_t device)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == device)
            return &report->devices[i];
    return NULL;
}

/* Devices of the same number; those of two runs with one device each, whatever
 * their numbers. */
static const struct mt_device_report *partner(const struct mt_diff_output *diff,
                                              const struct mt_device_report *device)
{
    if (diff->a->device_count == 1 && diff->b->device_count == 1)
        return &diff->b->devices[0];
    return find_device(diff->b, device->device);
}

static enum mt_status compare_devices(struct mt_diff_output *diff)
{
    enum mt_status status = MT_OK;

    diff->devices =
        mt_arena_array(diff->arena, (size_t)diff->a->device_count + 1, sizeof *diff->devices);
    if (!diff->devices)
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < diff->a->device_count && !status; i++) {
        const struct mt_device_report *a = &diff->a->devices[i], *b = partner(diff, a);

        if (!b || a->answer->missing || b->answer->missing ||
            (diff->only != MT_EVERY_DEVICE && diff->only != a->device))
            continue;
        diff->devices[diff->device_count] = (struct mt_device_diff){.a = a, .b = b};
        status =
            mt_diff_devices(diff->arena, diff->a, diff->b, &diff->devices[diff->device_count++]);
    }
    return status;
}

/* ---- the command ----------------------------------------------------------- */

static int print(const struct mt_diff_output *diff, const struct arguments *arguments)
{
    struct mt_buf out = {0};
    int code;

    if (arguments->common.json)
        mt_diff_json(&out, diff);
    else
        mt_diff_text(&out, diff, mt_stdout_style());
    code = mt_print(&out);
    mt_buf_release(&out);
    return code;
}

static int compare(const struct mt_asked_report *a, const struct mt_asked_report *b,
                   const struct arguments *arguments)
{
    struct mt_arena arena = {0};
    struct mt_diff_output diff = {.a = a->report,
                                  .b = b->report,
                                  .question = &arguments->question,
                                  .only = arguments->device,
                                  .arena = &arena};
    bool are_single = a->report->device_count == 1 && b->report->device_count == 1;
    int code = mt_asked_check(a, &arguments->question, arguments->device);

    if (code < 0)
        code = mt_asked_check(b, &arguments->question,
                              are_single ? MT_EVERY_DEVICE : arguments->device);
    if (code < 0) {
        compare_runs(&diff);
        code = MT_EXIT_OUTPUT;
        if (compare_devices(&diff))
            mt_say("out of memory while comparing");
        else
            code = print(&diff, arguments);
    }
    mt_arena_release(&arena);
    return code;
}

static int verdict(const struct mt_asked_report *asked, const struct arguments *arguments, int code)
{
    int of_input = mt_input_verdict(asked->source, asked->path, &arguments->common);

    return code ? code : of_input;
}

static int diff(const struct arguments *arguments)
{
    struct mt_asked_report a, b = {0};
    int code = mt_ask(arguments->a, &arguments->common, &arguments->question, &a);

    if (code < 0)
        code = mt_ask(arguments->b, &arguments->common, &arguments->question, &b);
    if (code < 0) {
        code = compare(&a, &b, arguments);
        code = verdict(&a, arguments, code);
        code = verdict(&b, arguments, code);
    }
    mt_asked_close(&a);
    mt_asked_close(&b);
    return code;
}

int mt_cmd_diff(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE};
    const char *at = NULL;
    const struct mt_option options[] = {
        {"at", 0, MT_OPTION_TEXT, "INSTANT",
         "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH", &at},
        {"device", 0, MT_OPTION_COUNT, "N", "only this device", &arguments.device},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 2, 2, &paths, &count);

    if (code >= 0)
        return code;
    if (!mt_question_option_read(at, NULL, &arguments.question))
        return MT_EXIT_USAGE;
    arguments.a = paths[0];
    arguments.b = paths[1];
    if (!strcmp(arguments.a, "-") && !strcmp(arguments.b, "-")) {
        mt_say("diff: only one of the two can be standard input");
        return MT_EXIT_USAGE;
    }
    return diff(&arguments);
}
