/* memtrace render: writes one chart of one device to one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "blocks_model.h"
#include "blocks_option.h"
#include "cards.h"
#include "chart.h"
#include "cli.h"
#include "debug.h"
#include "diff_run.h"
#include "instant_option.h"
#include "picture_option.h"
#include "policies_chart.h"
#include "policy_options.h"
#include "policy_runs.h"
#include "process_memory.h"
#include "question.h"
#include "question_report.h"
#include "report.h"
#include "report_html.h"
#include "report_query.h"
#include "screen.h"
#include "source.h"
#include "tune.h"
#include "util.h"
#include "work_kinds.h"

/* Measures and draws the same requests under several settings of the run's own allocator. */

#define BEST_TEXT (MT_TUNE_CONF_BYTES + 16)

struct work {
    const char *path;
    uint64_t device; /* MT_EVERY_DEVICE: the device that reserves the most */
    const struct mt_common *common;
    struct mt_source *source;
    struct mt_text_list policies;
    const char *whats[MT_MAX_POLICY_ROWS]; /* names of the policies for users */
    char best[BEST_TEXT];
    struct mt_known_size sizes[32];
    struct mt_policy_table *table;
};

static void add(struct work *work, const char *policy, const char *what)
{
    work->whats[work->policies.count] = what;
    work->policies.items[work->policies.count++] = policy;
}

static void show_progress(void *progress, double share)
{
    mt_progress_update(progress, "searching for better options", share);
}

/* Adds the best options that a search finds, if they are better than those of the run. */
static void add_best(struct work *work)
{
    struct mt_progress progress = {0};
    const struct mt_tune_options options = {.progress = show_progress, .context = &progress};
    struct mt_tune_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    mt_progress_start(&progress, work->common->quiet);
    if (mt_tune_run(work->source, &options, summary, &error) == MT_OK &&
        summary->best != MT_TUNE_CURRENT) {
        snprintf(work->best, sizeof work->best, "pytorch:%s", summary->front[summary->best].conf);
        add(work, work->best, "the best that tune finds");
    }
    mt_progress_end(&progress);
    free(summary);
}

/* Chooses other settings of the run's own allocator. If a setting is equal to that of the run, the
 * table keeps only the row of the run. */
static void choose(struct work *work)
{
    if (strcmp(mt_policy_of_run(&work->source->header), "pytorch") != 0) {
        add(work, "bfc:preallocate=False", "without preallocation");
        return;
    }
    add_best(work);
    add(work, "pytorch:", "PyTorch's defaults");
    add(work, "pytorch:expandable_segments=True", "expandable segments");
}

static enum mt_status measure_one(void *context, struct mt_source *source, const char *policy,
                                  size_t index, struct mt_error *error)
{
    struct work *work = context;
    uint16_t unused;

    return mt_policy_row_measure(source, policy, work->table->device, &work->table->rows[index + 1],
                                 &unused, error);
}

static void add_cards(struct work *work)
{
    for (size_t i = 0; mt_cards[i].name && i + 1 < MT_ARRAY_LEN(work->sizes); i++)
        work->sizes[i] = (struct mt_known_size){mt_cards[i].name, mt_cards[i].memory_bytes};
    work->table->sizes = work->sizes;
}

/* Measures the policy of the run, which also determines the device. */
static enum mt_status measure_own(struct work *work, struct mt_error *error)
{
    struct mt_policy_table *table = work->table;
    enum mt_status status = mt_source_rewind(work->source, error);

    if (status == MT_OK)
        status = mt_policy_row_measure(work->source, NULL, work->device, &table->rows[0],
                                       &table->device, error);
    if (status == MT_OK)
        status = mt_source_rewind(work->source, error);
    table->starts_in_middle = work->source->header.starts_in_middle;
    return status;
}

static int measure_others(struct work *work)
{
    const struct mt_policy_runs runs = {.source = work->source,
                                        .path = work->path,
                                        .common = work->common,
                                        .policies = &work->policies,
                                        .what = "replaying",
                                        .run = measure_one,
                                        .context = work};

    return mt_policy_runs_run(&runs);
}

static int say_no_requests(const struct work *work)
{
    if (work->device == MT_EVERY_DEVICE)
        mt_message("'%s': no requests", work->path);
    else
        mt_message("'%s': no requests on device %llu", work->path,
                   (unsigned long long)work->device);
    return MT_EXIT_INPUT;
}

/* Removes policies that do not fit on the device. The others are still shown. */
static void leave_out_refusing(struct mt_policy_table *table)
{
    uint32_t kept = 1;

    for (uint32_t i = 1; i < table->row_count; i++) {
        const struct mt_policy_row *row = &table->rows[i];

        if (mt_policy_row_refuses(table, row))
            mt_message("'%s' is not drawn: only %llu of %llu requests succeed", row->policy,
                       (unsigned long long)mt_policy_row_requests(row),
                       (unsigned long long)mt_policy_row_requests(&table->rows[0]));
        else
            table->rows[kept++] = *row;
    }
    table->row_count = kept;
}

static int measure(struct work *work)
{
    struct mt_policy_table *table = work->table;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = measure_own(work, &error);

    if (status == MT_END)
        return say_no_requests(work);
    if (status != MT_OK)
        return mt_report_error(work->path, &error);
    int code = measure_others(work);
    if (code)
        return code;
    table->rows[0].what = "what the run had";
    for (size_t i = 0; i < work->policies.count; i++)
        table->rows[i + 1].what = work->whats[i];
    table->row_count = (uint32_t)work->policies.count + 1;
    leave_out_refusing(table);
    table->name = mt_report_name(&table->arena, work->path);
    add_cards(work);
    if (mt_policy_table_finish(table, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_error(work->path, &error);
}

static void draw_policies_picture(const struct work *work, const struct mt_picture *picture,
                                  struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = picture->width, .height = picture->height};

    mt_policies_draw(work->table, &options, drawing);
}

static int measure_and_draw(struct work *work, const struct mt_picture *picture,
                            struct mt_drawing *drawing)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_heap_view_choose(work->source, &error) != MT_OK)
        return mt_report_error(work->path, &error);
    if (work->source->view.level != MT_VIEW_FRAMEWORK) {
        mt_message("'%s': its requests did not go to an allocator of a framework; 'memtrace replay "
                   "--policies' lists allocators",
                   work->path);
        return MT_EXIT_INPUT;
    }
    choose(work);
    int code = measure(work);
    if (code == MT_EXIT_OK)
        draw_policies_picture(work, picture, drawing);
    return code;
}

static int write_picture(const struct work *work, const struct mt_picture *picture,
                         const struct mt_drawing *drawing)
{
    size_t bytes;
    int code = mt_picture_write(picture, drawing, &bytes);

    if (code == MT_EXIT_OK && work->common->json)
        code = mt_picture_print_json(picture, "policies", work->table->device, bytes);
    return code;
}

/* Runs `memtrace render policies PATH` for a device (MT_EVERY_DEVICE: the device that reserves the
 * most). Prints errors; returns enum mt_exit. */
static int policies_render(const char *path, uint64_t device, const struct mt_picture *picture,
                           const struct mt_common *common)
{
    struct work *work = mt_memory_zeroed(1, sizeof *work);
    struct mt_policy_table *table = mt_memory_zeroed(1, sizeof *table);
    struct mt_drawing drawing = {0};
    int code = MT_EXIT_INPUT;

    if (!mt_question_refuses_device(device)) {
        *work = (struct work){.path = path, .device = device, .common = common, .table = table};
        work->source = mt_open_input(path, common, &code);
    }
    if (work->source) {
        code = measure_and_draw(work, picture, &drawing);
        if (code == MT_EXIT_OK)
            code = write_picture(work, picture, &drawing);
        code = mt_answer_verdict(code, work->source, path, common);
        mt_source_close(work->source);
    }
    mt_drawing_release(&drawing);
    mt_policy_table_release(table);
    free(table);
    free(work);
    return code;
}

#define WALL       2400.0 /* pixels; larger pictures use finer models */
#define FINE_BINS  4096
#define MAX_CHARTS 32

struct arguments {
    struct mt_common common;
    struct mt_picture picture;
    const char *axis;
    uint64_t device; /* MT_EVERY_DEVICE: no option */
    bool whole;
    struct mt_outputs outputs;
    struct mt_blocks_option blocks;
    const char *zoom; /* path of a phase: flame chart */
    const char *by;
    enum mt_layer_by layer_by;
    const char *layer_member;
    const struct mt_chart *chart;
    const char *path;
    struct mt_chart_options options;
};

static int render_diff(const struct arguments *arguments, char **paths)
{
    struct mt_question question = {.at = MT_AT_PEAK};
    const struct mt_diff_request request = {
        .a = paths[0], .b = paths[1], .question = &question, .device = arguments->device};

    if (!mt_question_option_read(arguments->blocks.at, NULL, &question))
        return MT_EXIT_USAGE;
    if (!strcmp(paths[0], "-") && !strcmp(paths[1], "-")) {
        mt_message("render: only one of the two traces can be standard input");
        return MT_EXIT_USAGE;
    }
    return mt_diff_render(&request, &arguments->picture, &arguments->common);
}

static int render_policies(const struct arguments *arguments, char **paths)
{
    return policies_render(paths[0], arguments->device, &arguments->picture, &arguments->common);
}

/* Charts that do not come from the report of one trace. */
struct other_chart {
    const char *name, *summary;
    const char *after; /* the chart before it in the help */
    int traces;
    int (*render)(const struct arguments *arguments, char **paths);
};

static const struct other_chart others[] = {
    {"diff", "what changed between two runs (two traces)", "trend", 2, render_diff},
    {"policies", "the same requests with other settings of the allocator", "address", 1,
     render_policies},
};

static const struct other_chart *find_other(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(others); i++)
        if (!strcmp(others[i].name, name))
            return &others[i];
    return NULL;
}

static const struct mt_chart *find_chart(const char *name)
{
    const struct mt_chart *found = mt_chart_find(name);
    const char *names[MAX_CHARTS];
    size_t count = 0;

    if (found)
        return found;
    for (size_t i = 0; i < MT_ARRAY_LEN(others); i++)
        names[count++] = others[i].name;
    for (size_t i = 0; mt_charts[i] && count < MAX_CHARTS; i++)
        names[count++] = mt_charts[i]->name;
    const char *near = mt_did_you_mean(name, names, count);
    if (!strncmp(name, "flame", 5))
        mt_message("unknown chart '%s'; icicle is a flame graph from the top, flamechart has time "
                   "on its axis",
                   name);
    else if (near)
        mt_message("unknown chart '%s'; did you mean '%s'?", name, near);
    else
        mt_message("unknown chart '%s'; 'memtrace render --help' lists the charts", name);
    return NULL;
}

static bool is_icicle(const struct arguments *arguments)
{
    return !strcmp(arguments->chart->name, "icicle");
}

static bool read_by(struct arguments *arguments)
{
    const char *names[MT_LAYER_BY_COUNT];

    for (int i = 0; i < MT_LAYER_BY_COUNT; i++)
        names[i] = mt_layer_by_name((enum mt_layer_by)i);
    if (strcmp(arguments->chart->name, "timeline") != 0) {
        mt_message("--by is for the timeline");
        return false;
    }
    arguments->layer_by = MT_LAYERS_BY_TAG;
    arguments->layer_member = mt_tag_member_option(arguments->by);
    if (arguments->layer_member)
        return true;
    int found = mt_blocks_option_find_word("--by", arguments->by, names, MT_LAYER_BY_COUNT);
    arguments->layer_by = found < 0 ? MT_LAYERS_BY_ROLE : (enum mt_layer_by)found;
    return found >= 0;
}

/* Returns true if the chart `name` accepts the options that select a part of the run. Otherwise
 * prints a message. */
static bool check_window(const struct arguments *arguments, const char *name)
{
    const struct mt_blocks_option *blocks = &arguments->blocks;

    if (blocks->step == UINT64_MAX && !blocks->zoom && !arguments->whole)
        return true;
    if (!strcmp(name, "flamechart") || !strcmp(name, "blocks") || !strcmp(name, "icicle"))
        return true;
    mt_message(
        "options '--step', '--zoom' and '--whole' are only for the charts flamechart, blocks "
        "and icicle");
    return false;
}

/* Checks options that only some charts have. */
static bool check_blocks(struct arguments *arguments)
{
    struct mt_blocks_option *blocks = &arguments->blocks;

    if (is_icicle(arguments) && arguments->by) {
        mt_message("--by is for the timeline");
        return false;
    }
    if (is_icicle(arguments)) {
        arguments->options.weigh = MT_WEIGH_ALLOCATED;
        if (!mt_blocks_option_read(blocks))
            return false;
        arguments->options.weigh = blocks->weigh;
        return true;
    }
    if (blocks->at || blocks->of || blocks->metric) {
        mt_message("options '--at', '--of' and '--metric' are only for the chart icicle");
        return false;
    }
    if (arguments->by && !read_by(arguments))
        return false;
    if (blocks->zoom)
        arguments->zoom = mt_zoom_option_read(blocks->zoom);
    return true;
}

/* Checks the options of a chart of a report. */
static bool check_report_chart(struct arguments *arguments)
{
    if (arguments->axis && strcmp(arguments->axis, "time") && strcmp(arguments->axis, "events")) {
        mt_message("option '--x' needs time or events, not '%s'", arguments->axis);
        return false;
    }
    arguments->options.event_axis = arguments->axis && !strcmp(arguments->axis, "events");
    arguments->options.width = arguments->picture.width;
    arguments->options.height = arguments->picture.height;
    return check_blocks(arguments);
}

/* Returns MT_EXIT_OK, or the exit code after a message. */
static int check(struct arguments *arguments, char **words, int traces)
{
    const struct other_chart *other = find_other(words[0]);
    int wanted = other ? other->traces : 1;

    arguments->chart = other ? NULL : find_chart(words[0]);
    arguments->picture.allows_page = !strcmp(words[0], "timeline");
    if (!other && !arguments->chart)
        return MT_EXIT_USAGE;
    if (traces != wanted)
        mt_message("render %s: %s", words[0],
                   wanted == 1 ? "one trace, not two" : "two traces, A and B");
    else if (!arguments->picture.output)
        mt_message("no output file given: add -o FILE.svg or -o FILE.png");
    else if (check_window(arguments, words[0]) &&
             mt_picture_read(&arguments->picture, &arguments->common) &&
             (other || check_report_chart(arguments)))
        return MT_EXIT_OK;
    return MT_EXIT_USAGE;
}

/* The analyzer uses the whole run if the step is missing. */
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

/* Writes the timeline as a page that the reader explores. */
static int write_page(const struct mt_report *report, const struct mt_device_report *device,
                      const struct arguments *arguments)
{
    const struct mt_report_html page = {.report = report, .only = device};
    struct mt_buf document = {0};

    if (!device || !device->history || !device->timeline || mt_is_one_instant(report, device)) {
        mt_message("'%s': no history was recorded; write an .svg file instead", arguments->path);
        return MT_EXIT_INPUT;
    }
    mt_report_html_add(&document, &page);
    int code = mt_picture_write_page(&arguments->picture, &document);
    if (code == MT_EXIT_OK && arguments->common.json)
        code = mt_picture_print_json(&arguments->picture, arguments->chart->name, device->device,
                                     document.length);
    mt_buf_release(&document);
    return code;
}

static int draw(const struct mt_report *report, const struct arguments *arguments)
{
    const struct mt_device_report *device = mt_question_device(report, arguments->device);
    const struct mt_question_report asked = {.path = arguments->path,
                                             .report = (struct mt_report *)report};
    struct mt_chart_options options = arguments->options;
    struct mt_drawing drawing;
    size_t bytes = 0;

    if (!device && arguments->device != MT_EVERY_DEVICE) {
        mt_question_print_no_events(arguments->path, report, arguments->device);
        return MT_EXIT_INPUT;
    }
    if (arguments->picture.is_page)
        return write_page(report, device, arguments);
    if (lacks_step(device, arguments)) {
        mt_message("'%s': step %llu does not exist", arguments->path,
                   (unsigned long long)arguments->blocks.step);
        return MT_EXIT_INPUT;
    }
    if (lacks_phase(report, device, arguments))
        return mt_question_print_no_phase(&asked, arguments->zoom);
    if (is_icicle(arguments) &&
        !mt_blocks_found(&arguments->blocks, report, device, arguments->path))
        return MT_EXIT_USAGE;
    const char *lack = mt_chart_lacks(arguments->chart, report, device);
    if (lack) {
        mt_message("'%s': no %s: %s", arguments->path, arguments->chart->name, lack);
        return MT_EXIT_INPUT;
    }
    options.event_axis |= !arguments->axis && mt_is_shown_by_event(report, device);
    arguments->chart->draw(report, device, &options, &drawing);
    drawing.huge = arguments->outputs.force;
    int exit_code = mt_picture_write(&arguments->picture, &drawing, &bytes);
    mt_drawing_release(&drawing);
    if (exit_code == MT_EXIT_OK && arguments->common.json)
        exit_code = mt_picture_print_json(&arguments->picture, arguments->chart->name,
                                          device ? device->device : -1, bytes);
    return exit_code;
}

static struct mt_analyze_options options_of(const struct arguments *arguments)
{
    const struct mt_blocks_option *blocks = &arguments->blocks;
    struct mt_analyze_options options = {
        .path = arguments->path,
        .models = arguments->chart->models,
        .no_findings = !arguments->chart->shows_findings,
        .layer_by = arguments->layer_by,
        .layer_member = arguments->layer_member,
        .window = {.whole = arguments->whole, .phase = arguments->zoom}};

    if (arguments->picture.is_page)
        options.models = mt_report_html_models();
    if (is_icicle(arguments))
        return mt_blocks_analysis(blocks, arguments->path);
    if (arguments->picture.width > WALL || arguments->picture.height > WALL)
        options.bins = FINE_BINS;
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

    if (mt_analyze_with_progress(source, &options, arguments->common.quiet, &report, &error) !=
        MT_OK)
        return mt_report_error(arguments->path, &error);
    mt_debug_passes(report);
    int exit_code = mt_question_check_member(source, arguments->path, arguments->layer_member);
    if (exit_code < 0)
        exit_code = draw(report, arguments);
    mt_report_release(report);
    return mt_answer_verdict(exit_code, source, arguments->path, &arguments->common);
}

static void add_chart_line(struct mt_buf *out, const char *name, const char *summary)
{
    mt_buf_printf(out, "  %-11s %s\n", name, summary);
}

/* Details of the help, with the list of charts after their first line. */
static void add_details(struct mt_buf *out, const char *details)
{
    const char *rest = details ? strchr(details, '\n') : NULL;

    if (!rest)
        return;
    mt_buf_add(out, details, (size_t)(rest - details) + 1);
    for (size_t i = 0; mt_charts[i]; i++) {
        add_chart_line(out, mt_charts[i]->name, mt_charts[i]->summary);
        for (size_t j = 0; j < MT_ARRAY_LEN(others); j++)
            if (!strcmp(others[j].after, mt_charts[i]->name))
                add_chart_line(out, others[j].name, others[j].summary);
    }
    mt_buf_add_text(out, rest + 1);
}

static int run(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE, .blocks.step = UINT64_MAX};
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE",
         "picture to write: .svg or .png; - is an SVG on standard output; timeline: also .html, a "
         "page to explore",
         &arguments.picture.output},
        {"x", 0, MT_OPTION_TEXT, "AXIS", "time (idle gaps shortened) or events (all equally wide)",
         &arguments.axis},
        MT_PICTURE_SIZE_OPTIONS(arguments.picture),
        {"by", 0, MT_OPTION_TEXT, "GROUP",
         "timeline: layers by role, phase, site, stream, tag or tag.MEMBER", &arguments.by},
        MT_DEVICE_OPTION(&arguments.device,
                         "draw device N (default: the one with the largest reserved peak)"),
        {"step", 0, MT_OPTION_STEP, "N",
         "flamechart, blocks, icicle --of kept or allocated-total: draw step N",
         &arguments.blocks.step},
        {"zoom", 0, MT_OPTION_TEXT, "PHASE",
         "flamechart, blocks, icicle --of allocated-total: draw one phase (phase:PATH)",
         &arguments.blocks.zoom},
        {"whole", 0, MT_OPTION_FLAG, NULL, "flamechart, blocks: draw the whole run",
         &arguments.whole},
        MT_BLOCKS_OPTIONS(arguments.blocks, "icicle: "),
        {"reverse", 0, MT_OPTION_FLAG, NULL, "icicle: innermost frames first, their callers below",
         &arguments.options.reversed},
        {"force", 0, MT_OPTION_FLAG, NULL,
         "replace files that memtrace did not write; allow a PNG too large for most viewers",
         &arguments.outputs.force},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **positional;
    int count;
    int exit_code = mt_options_parse(command, options, argc, argv, 2, 3, &positional, &count);

    if (exit_code >= 0)
        return exit_code;
    arguments.picture.outputs = &arguments.outputs;
    exit_code = check(&arguments, positional, count - 1);
    for (int i = 1; i < count; i++)
        mt_outputs_add_input(&arguments.outputs, positional[i]);
    if (exit_code == MT_EXIT_OK)
        exit_code = mt_picture_precheck(&arguments.picture);
    if (exit_code != MT_EXIT_OK)
        return exit_code;
    if (!arguments.chart)
        return find_other(positional[0])->render(&arguments, positional + 1);
    arguments.path = positional[1];
    struct mt_source *source = mt_open_input(arguments.path, &arguments.common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = render(source, &arguments);
    mt_source_close(source);
    return exit_code;
}

int mt_cmd_render(const struct mt_command *command, int argc, char **argv)
{
    struct mt_command with_charts = *command;
    struct mt_buf details = {0};

    add_details(&details, command->details);
    with_charts.details = details.data;
    int exit_code = run(&with_charts, argc, argv);
    mt_buf_release(&details);
    return exit_code;
}
