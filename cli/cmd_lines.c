/* memtrace lines: the memory use of each line of the program. */

#include "asked_report.h"
#include "lines_output.h"
#include "reading.h"

struct arguments {
    struct mt_common common;
    const char *function;
    uint64_t device;
    bool all, own, source;
    struct mt_source_files sources;
};

static int say_no_device(const struct mt_lines_answer *answer)
{
    if (!mt_refuses_device(answer->device))
        mt_say("device %llu has no allocations", (unsigned long long)answer->device);
    return MT_EXIT_USAGE;
}

static int say_no_function(const struct mt_lines_answer *answer)
{
    const struct mt_line_table *table = answer->table;
    const char *near = NULL;
    uint32_t d, f;

    for (d = 0; d < table->device_count && !near; d++)
        for (f = 0; f < table->devices[d].function_count && !near; f++) {
            const char *name =
                mt_symbols_text(answer->symbols, table->devices[d].functions[f].function);

            near = mt_did_you_mean(answer->function, &name, 1);
        }
    if (near)
        mt_say("no function '%s' allocated or freed anything; did you mean '%s'?", answer->function,
               near);
    else
        mt_say("no function '%s' allocated or freed anything", answer->function);
    return MT_EXIT_USAGE;
}

/* Counts the functions that are shown, and in *devices the devices that are shown. */
static uint32_t count_shown(const struct mt_lines_answer *answer, uint32_t *devices)
{
    uint32_t count = 0, d, f;

    *devices = 0;
    for (d = 0; d < answer->table->device_count; d++) {
        const struct mt_line_device *device = &answer->table->devices[d];

        if (!mt_lines_shows_device(answer, device))
            continue;
        ++*devices;
        for (f = 0; f < device->function_count; f++)
            count += mt_lines_shows(answer, &device->functions[f]);
    }
    return count;
}

static int say_no_own(void)
{
    mt_say("no function of your own files allocated or freed anything; without --own, lines also "
           "shows the code of the model");
    return MT_EXIT_USAGE;
}

/* Falls back to libraries if the program has no site in Python code. */
static int settle(struct mt_lines_answer *answer)
{
    uint32_t devices;

    if (count_shown(answer, &devices) == 0) {
        if (answer->device != MT_LINES_EVERY_DEVICE && !devices)
            return say_no_device(answer);
        if (answer->function && answer->table->has_lines)
            return say_no_function(answer);
        if (answer->own && answer->table->has_lines)
            return say_no_own();
        answer->with_libraries = true;
    }
    return MT_EXIT_OK;
}

static int print_result(struct mt_lines_answer *answer, const struct arguments *arguments)
{
    struct mt_buf out = {0};
    int code = settle(answer);

    if (code)
        return code;
    if (arguments->common.json)
        mt_lines_json(&out, answer);
    else
        mt_lines_text(&out, answer);
    return mt_print_answer_and_release(&out, arguments->common.json);
}

static int lines(struct mt_source *source, const char *path, struct arguments *arguments)
{
    struct mt_line_table table;
    struct mt_lines_answer answer = {path,
                                     &source->symbols,
                                     &table,
                                     arguments->function,
                                     arguments->device,
                                     arguments->own,
                                     arguments->all,
                                     arguments->all,
                                     arguments->source ? &arguments->sources : NULL};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_reading reading;
    enum mt_status status;
    int code;

    mt_reading_start(&reading, source, "reading", arguments->common.quiet);
    status = mt_line_table_read(source, &table, &error);
    mt_reading_end(&reading);
    if (status != MT_OK) {
        mt_line_table_release(&table);
        return mt_report_error(path, &error);
    }
    if (arguments->own)
        mt_line_table_sort_by_own(&table);
    arguments->sources.quiet = arguments->common.quiet;
    code = print_result(&answer, arguments);
    mt_source_files_end(&arguments->sources);
    mt_line_table_release(&table);
    return mt_answer_verdict(code, source, path, &arguments->common);
}

int mt_cmd_lines(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_LINES_EVERY_DEVICE};
    const struct mt_option options[] = {
        {"function", 'f', MT_OPTION_TEXT, "F",
         "only functions with this name, including those of libraries", &arguments.function},
        {"source", 's', MT_OPTION_FLAG, NULL, "show the source text of files that exist here",
         &arguments.source},
        {"source-root", 0, MT_OPTION_LIST, "DIR",
         "with --source: also read files below DIR, not only below the current folder",
         &arguments.sources.roots},
        {"device", 'd', MT_OPTION_COUNT, "N", "only this device", &arguments.device},
        {"own", 0, MT_OPTION_FLAG, NULL, "only functions of your own files", &arguments.own},
        {"all", 'a', MT_OPTION_FLAG, NULL,
         "include all functions of the stacks; with --json: all rows and complete texts",
         &arguments.all},
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
    code = lines(source, paths[0], &arguments);
    mt_source_close(source);
    return code;
}
