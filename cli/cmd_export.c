/* memtrace export: writes live or allocated memory by call stack in formats of other programs. */
#include <string.h>
#include <unistd.h>

#include "question_report.h"
#include "blocks_option.h"
#include "cli.h"
#include "export_database.h"
#include "export_format.h"
#include "json.h"
#include "outputs.h"
#include "perfetto.h"

enum { MAX_FORMATS = 16 };

struct arguments {
    struct mt_common common;
    const struct mt_export_format *format;
    const char *path, *output;
    uint64_t device; /* MT_EVERY_DEVICE = not given */
    struct mt_blocks_option blocks;
    bool reversed, with_blocks, with_events;
    struct mt_outputs outputs;
};

static const struct mt_export_format *find_format(const char *name)
{
    const char *names[MAX_FORMATS];
    size_t count = 0;

    for (; mt_export_formats[count] && count < MAX_FORMATS; count++)
        names[count] = mt_export_formats[count]->name;
    int found = mt_blocks_option_find_word("FORMAT", name, names, count);
    return found < 0 ? NULL : mt_export_formats[found];
}

/* Sets the blocks; none if there is no device. */
static void choose_blocks(const struct arguments *arguments, const struct mt_device_report *device,
                          struct mt_export *what)
{
    if (device && arguments->blocks.is_population) {
        what->holdings = device->population->holdings;
        what->holding_count = device->population->holding_count;
    } else if (device) {
        what->instant = &device->answer->instant;
        what->holdings = what->instant->holdings;
        what->holding_count = what->instant->holding_count;
    }
}

/* Makes the tree of the blocks. */
static void grow(struct mt_arena *arena, const struct arguments *arguments,
                 const struct mt_device_report *device, const struct mt_export *what,
                 struct mt_icicle **icicle)
{
    const struct mt_report *report = what->report;
    const struct mt_icicle_options shape = {.reversed = arguments->reversed,
                                            .weigh = arguments->blocks.weigh,
                                            .first_event = device ? device->first_event : 0};

    mt_icicle_build(arena, what->holdings, what->holding_count, report->phases, report->phase_count,
                    report->symbols, &shape, icicle);
}

static const char *title_of(struct mt_arena *arena, const struct arguments *arguments,
                            const struct mt_report *report)
{
    const struct mt_blocks_option *blocks = &arguments->blocks;
    const char *title;

    if (blocks->is_population)
        title = mt_arena_printf(arena, "%s: %s", report->name, blocks->of);
    else
        title = mt_arena_printf(arena, "%s: live at %s", report->name,
                                blocks->at ? blocks->at : "peak");
    return title;
}

static bool is_database(const struct arguments *arguments)
{
    return arguments->format->kind == &mt_file_database;
}

/* Refuses a binary document on a terminal. */
static int check_terminal(const struct arguments *arguments)
{
    if (arguments->output || !isatty(STDOUT_FILENO))
        return MT_EXIT_OK;
    mt_message("%s is binary: add -o FILE", arguments->format->name);
    return MT_EXIT_USAGE;
}

/* A whole run has all blocks, so options that select some are wrong. */
static int check_run(const struct arguments *arguments)
{
    const struct mt_blocks_option *blocks = &arguments->blocks;
    const bool has_file = arguments->output && !mt_outputs_is_standard(arguments->output);

    if (blocks->at || blocks->of || blocks->metric || arguments->reversed ||
        arguments->with_blocks || arguments->device != MT_EVERY_DEVICE)
        mt_message("%s describes the whole run: only -o, %s--force and --json apply to it",
                   arguments->format->name, is_database(arguments) ? "--events, " : "");
    else if (!has_file && is_database(arguments))
        mt_message("a database needs a file: add -o FILE");
    else if (!has_file && arguments->common.json)
        mt_message("--json describes the file that was written: add -o FILE");
    else if (arguments->with_events && !is_database(arguments))
        mt_message("--events applies only to sqlite");
    else
        return check_terminal(arguments);
    return MT_EXIT_USAGE;
}

/* Begins the document about what was written. */
static void begin_result(struct mt_json *json, struct mt_buf *out,
                         const struct arguments *arguments)
{
    mt_json_document(json, out, "memtrace.export/1", false);
    mt_json_text(json, "format", arguments->format->name);
    mt_json_text(json, "path", arguments->output);
}

static int print_amount(const struct arguments *arguments, const char *what, uint64_t amount)
{
    struct mt_buf out = {0};
    struct mt_json json;

    begin_result(&json, &out, arguments);
    mt_json_u64(&json, what, amount);
    mt_json_object_end(&json);
    return mt_print_and_release(&out);
}

static int export_database(const struct arguments *arguments)
{
    const struct mt_database_export wanted = {.input = arguments->path,
                                              .output = arguments->output,
                                              .common = &arguments->common,
                                              .outputs = &arguments->outputs,
                                              .with_events = arguments->with_events};
    uint64_t rows = 0;
    int code = mt_export_database(&wanted, &rows), printed = MT_EXIT_OK;

    if (rows && arguments->common.json)
        printed = print_amount(arguments, "rows", rows);
    return code ? code : printed;
}

/* Prints what was written, as JSON. */
static int print_result(const struct arguments *arguments, const struct mt_device_report *device,
                        const struct mt_icicle *icicle, size_t bytes)
{
    struct mt_buf out = {0};
    struct mt_json json;

    begin_result(&json, &out, arguments);
    mt_json_u64(&json, "bytes", bytes);
    if (device)
        mt_json_u64(&json, "device", device->device);
    else
        mt_json_null(&json, "device");
    mt_json_text(&json, "metric", mt_weigh_name(icicle->weigh));
    mt_json_u64(&json, "total", icicle->nodes[0].weight);
    mt_json_object_end(&json);
    return mt_print_and_release(&out);
}

static int write_bytes(const struct arguments *arguments, const struct mt_buf *bytes)
{
    if (!arguments->output)
        return mt_print(bytes);
    return mt_outputs_write(arguments->output, &arguments->outputs, arguments->format->kind, bytes);
}

static int write_perfetto(const struct mt_question_report *asked, const struct arguments *arguments,
                          const struct mt_perfetto_levels *levels)
{
    struct mt_buf out = {0};

    mt_perfetto_add(&out, asked->report, &asked->source->header, levels);
    int code = write_bytes(arguments, &out);
    if (code == MT_EXIT_OK && arguments->common.json)
        code = print_amount(arguments, "bytes", out.length);
    mt_buf_release(&out);
    return code;
}

static int export_perfetto(const struct arguments *arguments)
{
    struct mt_analyze_options wanted = {.path = arguments->path, .no_findings = true};
    struct mt_perfetto_levels levels = {0};
    struct mt_question_report asked;

    mt_perfetto_attach(&levels, &wanted);
    int code = mt_question_run_with(arguments->path, &arguments->common, &wanted, &asked);
    if (code < 0) {
        code = write_perfetto(&asked, arguments, &levels);
        code = mt_answer_verdict(code, asked.source, arguments->path, &arguments->common);
    }
    mt_question_close(&asked);
    mt_perfetto_levels_release(&levels);
    return code;
}

static int write_out(const struct arguments *arguments, const struct mt_device_report *device,
                     const struct mt_export *what)
{
    struct mt_buf out = {0};

    arguments->format->add(&out, what);
    int code = write_bytes(arguments, &out);
    if (code == MT_EXIT_OK && arguments->common.json)
        code = print_result(arguments, device, what->icicle, out.length);
    mt_buf_release(&out);
    return code;
}

static int export(const struct mt_question_report *asked, const struct arguments *arguments)
{
    const struct mt_report *report = asked->report;
    const struct mt_device_report *device = mt_question_device(report, arguments->device);
    struct mt_icicle *icicle = NULL;
    struct mt_arena arena = {0};

    if (!device && arguments->device != MT_EVERY_DEVICE) {
        mt_question_print_no_events(arguments->path, report, arguments->device);
        return MT_EXIT_INPUT;
    }
    if (!mt_blocks_found(&arguments->blocks, report, device, arguments->path))
        return MT_EXIT_USAGE;
    struct mt_export what = {.report = report,
                             .first_event = device ? device->first_event : 0,
                             .title = title_of(&arena, arguments, report),
                             .exporter = "memtrace",
                             .with_blocks = arguments->with_blocks};
    choose_blocks(arguments, device, &what);
    grow(&arena, arguments, device, &what, &icicle);
    what.icicle = icicle;
    int code = write_out(arguments, device, &what);
    mt_arena_release(&arena);
    return code;
}

static int check(struct arguments *arguments, const char *format)
{
    arguments->format = find_format(format);
    if (!arguments->format)
        return MT_EXIT_USAGE;
    if (!arguments->format->add)
        return check_run(arguments);
    if (arguments->with_events)
        mt_message("--events applies only to sqlite");
    else if (arguments->format->has_all_metrics &&
             (arguments->blocks.metric || arguments->reversed || arguments->with_blocks))
        mt_message("%s has all metrics and whole stacks: --metric, --reverse and --blocks do not "
                   "apply to it",
                   format);
    else if (arguments->common.json && (!arguments->output || !strcmp(arguments->output, "-")))
        mt_message("--json describes the file that was written: add -o FILE");
    else if (mt_blocks_option_read(&arguments->blocks))
        return arguments->format->has_all_metrics ? check_terminal(arguments) : MT_EXIT_OK;
    return MT_EXIT_USAGE;
}

int mt_cmd_export(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE, .blocks.step = UINT64_MAX};
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE", "write to this file instead of standard output",
         &arguments.output},
        MT_FORCE_OPTION(arguments.outputs),
        MT_BLOCKS_OPTIONS(arguments.blocks, ""),
        MT_DEVICE_OPTION(&arguments.device,
                         "use device N (default: the one with the largest reserved peak)"),
        {"reverse", 0, MT_OPTION_FLAG, NULL, "innermost frames first, then their callers",
         &arguments.reversed},
        {"blocks", 0, MT_OPTION_FLAG, NULL, "add a leaf for each size and role of blocks",
         &arguments.with_blocks},
        {"events", 0, MT_OPTION_FLAG, NULL, "sqlite: fill the table of events",
         &arguments.with_events},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_question_report asked;
    char **positional;
    int count;
    int code = mt_options_parse(command, options, argc, argv, 2, 2, &positional, &count);

    if (code >= 0)
        return code;
    code = check(&arguments, positional[0]);
    if (code != MT_EXIT_OK)
        return code;
    arguments.path = positional[1];
    mt_outputs_add_input(&arguments.outputs, arguments.path);
    code = mt_output_precheck(arguments.output, &arguments.outputs, arguments.format->kind);
    if (code != MT_EXIT_OK)
        return code;
    if (!arguments.format->add)
        return is_database(&arguments) ? export_database(&arguments) : export_perfetto(&arguments);
    struct mt_analyze_options wanted = mt_blocks_analysis(&arguments.blocks, arguments.path);
    code = mt_question_run_with(arguments.path, &arguments.common, &wanted, &asked);
    if (code < 0) {
        code = export(&asked, &arguments);
        code = mt_answer_verdict(code, asked.source, arguments.path, &arguments.common);
    }
    mt_question_close(&asked);
    return code;
}
