/* memtrace render: one chart of one device as one file. */
#include <stdlib.h>
#include <string.h>

#include "asked_report.h"
#include "blocks_model.h"
#include "blocks_option.h"
#include "chart.h"
#include "cli.h"
#include "flamechart_model.h"
#include "gallery.h"
#include "json.h"
#include "question.h"
#include "report.h"

#define MOST_CHARTS  32
#define LEAST_WIDTH  480
#define LEAST_HEIGHT 320
#define MOST_SIDE    8192

struct arguments {
    struct mt_common common;
    const char *output, *axis, *size, *theme;
    uint64_t device; /* MT_EVERY_DEVICE: not said */
    bool whole;
    struct mt_blocks_option blocks;
    const char *zoom; /* path of a phase: flame chart */
    const struct mt_chart *chart;
    const char *path;
    enum mt_theme theme_kind;
    bool is_png;
    struct mt_chart_options options;
};

/* ---- what was asked for ---- */

static const struct mt_chart *find_chart(const char *name)
{
    const char *names[MOST_CHARTS], *near;
    size_t i;

    for (i = 0; mt_charts[i].name && i < MOST_CHARTS; i++) {
        if (!strcmp(mt_charts[i].name, name))
            return &mt_charts[i];
        names[i] = mt_charts[i].name;
    }
    near = mt_did_you_mean(name, names, i);
    if (near)
        mt_say("there is no chart '%s': did you mean '%s'?", name, near);
    else
        mt_say("there is no chart '%s': 'memtrace render --help' lists them", name);
    return NULL;
}

/* "1200x680". Smaller than LEAST is no chart any more, and PNGs end at twice
 * MOST. */
static bool parse_size(const char *text, struct mt_chart_options *options)
{
    char *end;
    unsigned long width = strtoul(text, &end, 10), height;

    if (end == text || *text == '-' || (*end != 'x' && *end != 'X'))
        return false;
    text = end + 1;
    height = strtoul(text, &end, 10);
    if (end == text || *text == '-' || *end || width < LEAST_WIDTH || height < LEAST_HEIGHT ||
        width > MOST_SIDE || height > MOST_SIDE)
        return false;
    options->width = (double)width;
    options->height = (double)height;
    return true;
}

static bool parse_theme(const char *text, enum mt_theme *theme)
{
    static const char *const names[] = {"auto", "light", "dark"};
    size_t i;

    for (i = 0; i < 3; i++) {
        if (!strcmp(text, names[i])) {
            *theme = (enum mt_theme)i;
            return true;
        }
    }
    return false;
}

static bool parse_output(const char *path, bool *is_png)
{
    const char *dot = strrchr(path, '.');

    *is_png = dot && !strcmp(dot, ".png");
    return !strcmp(path, "-") || *is_png || (dot && !strcmp(dot, ".svg"));
}

static bool is_icicle(const struct arguments *arguments)
{
    return arguments->chart->draw == mt_icicle_draw;
}

/* Options that only some charts have. */
static bool check_blocks(struct arguments *arguments)
{
    struct mt_blocks_option *blocks = &arguments->blocks;

    if (is_icicle(arguments)) {
        arguments->options.weigh = MT_WEIGH_ALLOCATED;
        if (!mt_blocks_option_read(blocks))
            return false;
        arguments->options.weigh = blocks->weigh;
        return true;
    }
    if (blocks->at || blocks->of || blocks->metric) {
        mt_say("--at, --of and --metric are for the icicle");
        return false;
    }
    if (blocks->zoom)
        arguments->zoom = mt_zoom_option_read(blocks->zoom);
    return !blocks->zoom || arguments->zoom;
}

/* MT_EXIT_OK, or the code after a line that says what is wrong. */
static int check(struct arguments *arguments, const char *chart)
{
    arguments->chart = find_chart(chart);
    if (!arguments->chart)
        return MT_EXIT_USAGE;
    if (!arguments->output)
        mt_say("say where to with -o FILE.svg or -o FILE.png");
    else if (!parse_output(arguments->output, &arguments->is_png))
        mt_say("'%s': the name has to end in .svg or .png", arguments->output);
    else if (arguments->is_png && !mt_png_available())
        mt_say("this memtrace was built without cairo and libpng: write an .svg instead");
    else if (arguments->size && !parse_size(arguments->size, &arguments->options))
        mt_say("--size is WIDTHxHEIGHT in pixels, from %dx%d to %dx%d, such as 1200x680, not '%s'",
               LEAST_WIDTH, LEAST_HEIGHT, MOST_SIDE, MOST_SIDE, arguments->size);
    else if (arguments->common.json && arguments->output && !strcmp(arguments->output, "-"))
        mt_say("--json and -o - both want standard output");
    else if (arguments->theme && !parse_theme(arguments->theme, &arguments->theme_kind))
        mt_say("--theme is auto, light or dark, not '%s'", arguments->theme);
    else if (arguments->axis && strcmp(arguments->axis, "time") &&
             strcmp(arguments->axis, "events"))
        mt_say("--x is time or events, not '%s'", arguments->axis);
    else if (check_blocks(arguments)) {
        arguments->options.event_axis = arguments->axis && !strcmp(arguments->axis, "events");
        return MT_EXIT_OK;
    }
    return MT_EXIT_USAGE;
}

/* ---- drawing ---- */

/* The analyzer falls back to the whole run. */
static bool lacks_step(const struct mt_device_report *device, const struct arguments *arguments)
{
    int64_t step = (int64_t)arguments->blocks.step;

    if (arguments->blocks.step == UINT64_MAX || arguments->whole || !device)
        return false;
    return (device->flamechart && device->flamechart->step != step) ||
           (device->blocks && device->blocks->step != step);
}

static bool lacks_phase(const struct mt_report *report, const struct mt_device_report *device,
                        const struct arguments *arguments)
{
    if (!arguments->zoom || !device)
        return false;
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (mt_phase_path_matches(report->phases[i].path, arguments->zoom) &&
            report->phases[i].end_event >= device->first_event)
            return false;
    return true;
}

/* What was drawn, for programs. */
static int tell(const struct arguments *arguments, const struct mt_device_report *device,
                size_t bytes)
{
    struct mt_buf out = {0};
    struct mt_json json;
    int exit_code;

    mt_json_init(&json, &out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.render/1");
    mt_json_text(&json, "chart", arguments->chart->name);
    mt_json_text(&json, "path", arguments->output);
    mt_json_u64(&json, "bytes", bytes);
    if (device)
        mt_json_u64(&json, "device", device->device);
    else
        mt_json_null(&json, "device");
    mt_json_object_end(&json);
    exit_code = mt_print(&out);
    mt_buf_release(&out);
    return exit_code;
}

static int draw(const struct mt_report *report, const struct arguments *arguments)
{
    const struct mt_device_report *device = mt_asked_device(report, arguments->device);
    const struct mt_asked_report asked = {.path = arguments->path,
                                          .report = (struct mt_report *)report};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf bytes = {0};
    int exit_code;

    if (!device && arguments->device != MT_EVERY_DEVICE) {
        mt_say("'%s': no events of device %llu", arguments->path,
               (unsigned long long)arguments->device);
        return MT_EXIT_INPUT;
    }
    if (lacks_step(device, arguments)) {
        mt_say("'%s': no step %llu", arguments->path, (unsigned long long)arguments->blocks.step);
        return MT_EXIT_INPUT;
    }
    if (lacks_phase(report, device, arguments))
        return mt_say_no_phase(&asked, arguments->zoom);
    if (is_icicle(arguments) &&
        !mt_blocks_found(&arguments->blocks, report, device, arguments->path))
        return MT_EXIT_USAGE;
    if (mt_chart_write(arguments->chart, report, device, &arguments->options, arguments->theme_kind,
                       arguments->is_png, &bytes, &error) != MT_OK) {
        mt_say("cannot draw '%s': %s", arguments->output, error.text);
        exit_code = MT_EXIT_OUTPUT;
    } else if (!strcmp(arguments->output, "-")) {
        exit_code = mt_print(&bytes);
    } else {
        exit_code = mt_write_file(arguments->output, bytes.data, bytes.length);
        if (exit_code == MT_EXIT_OK && arguments->common.json)
            exit_code = tell(arguments, device, bytes.length);
    }
    mt_buf_release(&bytes);
    return exit_code;
}

static struct mt_analyze_options options_of(const struct arguments *arguments)
{
    const struct mt_blocks_option *blocks = &arguments->blocks;
    struct mt_analyze_options options = {
        .path = arguments->path,
        .models = arguments->chart->models,
        .window = {.whole = arguments->whole, .phase = arguments->zoom}};

    if (is_icicle(arguments))
        return mt_blocks_analysis(blocks, arguments->path);
    options.window.has_step = blocks->step <= INT64_MAX;
    if (options.window.has_step)
        options.window.step = (int64_t)blocks->step;
    return options;
}

static int render(struct mt_source *source, const struct arguments *arguments)
{
    struct mt_analyze_options options = options_of(arguments);
    struct mt_report *report = NULL;
    struct mt_error error;
    int exit_code, verdict;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(arguments->path, &error);
    exit_code = draw(report, arguments);
    mt_report_release(report);
    verdict = mt_input_verdict(source, arguments->path, &arguments->common);
    return exit_code == MT_EXIT_OK ? verdict : exit_code;
}

int mt_cmd_render(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE, .blocks.step = UINT64_MAX};
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE",
         "picture to write: .svg or .png; - is an SVG on "
         "standard output",
         &arguments.output},
        {"x", 0, MT_OPTION_TEXT, "AXIS", "time (idle gaps folded) or events (equal widths)",
         &arguments.axis},
        {"size", 0, MT_OPTION_TEXT, "WxH", "logical pixels; a PNG has twice as many each way",
         &arguments.size},
        {"theme", 0, MT_OPTION_TEXT, "NAME", "auto (follows the viewer, SVG only), light or dark",
         &arguments.theme},
        {"device", 0, MT_OPTION_COUNT, "N", "of several devices, not the one that reserved most",
         &arguments.device},
        {"step", 0, MT_OPTION_COUNT, "N",
         "of step N: flame chart, blocks, and icicle --of kept or allocated-total",
         &arguments.blocks.step},
        {"zoom", 0, MT_OPTION_TEXT, "PHASE",
         "of one phase (phase:PATH): flame chart, blocks, icicle --of allocated-total",
         &arguments.blocks.zoom},
        {"whole", 0, MT_OPTION_FLAG, NULL, "flame chart, blocks: of the whole run",
         &arguments.whole},
        MT_BLOCKS_OPTIONS(arguments.blocks),
        {"flame", 0, MT_OPTION_FLAG, NULL, "icicle: callers at the bottom",
         &arguments.options.flame},
        {"reverse", 0, MT_OPTION_FLAG, NULL, "icicle: innermost frames first, their callers below",
         &arguments.options.reversed},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_source *source;
    char **positional;
    int count, exit_code;

    exit_code = mt_options_parse(command, options, argc, argv, 2, 2, &positional, &count);
    if (exit_code >= 0)
        return exit_code;
    exit_code = check(&arguments, positional[0]);
    if (exit_code != MT_EXIT_OK)
        return exit_code;
    arguments.path = positional[1];
    source = mt_open_input(arguments.path, &arguments.common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = render(source, &arguments);
    mt_source_close(source);
    return exit_code;
}
