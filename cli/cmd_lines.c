/* memtrace lines: the memory use of each line of the program. */
#include <string.h>

#include "ascii.h"
#include "cli.h"
#include "json.h"
#include "line_table.h"
#include "open_input.h"
#include "question_report.h"
#include "report_json.h"
#include "source_text.h"
#include "text_table.h"
#include "units.h"

/* Writes a table of lines as text or as JSON. */

struct lines_answer {
    const char *path;
    const struct mt_symbols *symbols;
    const struct mt_line_table *table;
    /* Selects functions of this name; NULL = the next fields select functions. */
    const char *function;
    uint64_t device;                 /* or LINES_EVERY_DEVICE */
    bool own;                        /* selects only the user's own code */
    bool with_libraries;             /* also selects library functions without sites */
    bool all;                        /* no limits in JSON (--all) */
    struct mt_source_files *sources; /* for the source text of lines; NULL = without text */
};
#define LINES_EVERY_DEVICE UINT64_MAX

/* Returns true if the function has this name. "Net.forward" also has the name "forward". */
static bool is_called(const char *function, const char *name)
{
    const char *dot = strrchr(function, '.');

    return !strcmp(function, name) || (dot && !strcmp(dot + 1, name));
}

/* Removes the file from a site or a heading as reports print them: "train train.py:77",
 * "train, train.py". */
static void keep_name(char *text)
{
    char *place = strrchr(text, ' '), *colon = place ? strrchr(place, ':') : NULL;

    if (place && place > text && place[-1] == ',' && strchr(place, '.'))
        place[-1] = '\0';
    else if (colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")])
        *place = '\0';
}

/* Return true if the answer includes the device, or the function. */
static bool lines_shows_device(const struct lines_answer *answer,
                               const struct mt_line_device *device)
{
    return answer->device == LINES_EVERY_DEVICE || answer->device == device->device;
}

static bool lines_shows(const struct lines_answer *answer, const struct mt_line_function *function)
{
    if (answer->function)
        return is_called(mt_symbols_text(answer->symbols, function->function), answer->function);
    if (function->origin == MT_ORIGIN_USER)
        return true;
    return !answer->own && (answer->with_libraries || function->site_bytes);
}

static bool opens_source(struct mt_source_text *text, const struct lines_answer *answer,
                         const struct mt_line_function *function)
{
    return answer->sources && mt_source_text_open(text, answer->sources,
                                                  mt_symbols_text(answer->symbols, function->file));
}

static void add_cells(struct mt_table *table, const struct lines_answer *answer,
                      const struct mt_line_use *line)
{
    char marked[MT_UNITS_TEXT + 1];

    mt_format_bytes(marked, line->allocated_bytes);
    if (line->engine_bytes)
        strcat(marked, "*");
    MT_CELLS(table, MT_COUNT(answer->symbols->frames[line->frame].line),
             MT_BYTES(line->peak.active), MT_BYTES(line->after.active),
             MT_BYTES(line->after.reserved),
             answer->table->has_frees ? MT_CHANGE(line->growth_bytes) : MT_TEXT("?"),
             MT_TEXT(marked), MT_COUNT(line->allocations));
}

static void add_source(struct mt_table *table, struct mt_source_text *text, uint32_t number)
{
    char code[256];
    size_t length;
    const char *line = mt_source_text_line(text, number, &length);

    length = length < sizeof code ? length : sizeof code - 1;
    memcpy(code, line, length);
    code[length] = '\0';
    MT_CELLS(table, MT_TEXT(code));
}

static void add_heading(struct mt_buf *out, const struct lines_answer *answer,
                        const struct mt_line_function *function)
{
    const struct mt_style *style = mt_stdout_style();
    const char *name = mt_symbols_text(answer->symbols, function->function);
    const char *file = mt_base_name(mt_symbols_text(answer->symbols, function->file));

    mt_buf_printf(out, "\n%s", style->bold);
    mt_buf_add_printable(out, name, strlen(name));
    mt_buf_add_text(out, style->reset);
    mt_buf_add_text(out, ", ");
    mt_buf_add_printable(out, file, strlen(file));
    mt_buf_add_char(out, '\n');
}

static void add_function(struct mt_buf *out, const struct lines_answer *answer,
                         const struct mt_line_function *function)
{
    struct mt_source_text text = {0};
    bool has_source = opens_source(&text, answer, function);
    const struct mt_style *style = mt_stdout_style();
    struct mt_table table;

    add_heading(out, answer, function);
    mt_table_begin(&table, "#line|#peak|#after|#reserved|#growth|#allocated|#times");
    if (has_source)
        mt_table_columns(&table, "~code");
    for (uint32_t i = 0; i < function->line_count; i++) {
        add_cells(&table, answer, &function->lines[i]);
        if (has_source)
            add_source(&table, &text, answer->symbols->frames[function->lines[i].frame].line);
    }
    mt_text_table_add(out, &table, 2, style);
    mt_source_text_release(&text);
}

/* Returns the line with the highest peak among the lines that are shown, and sets its function. */
static const struct mt_line_use *greatest(const struct lines_answer *answer,
                                          const struct mt_line_device *device,
                                          const struct mt_line_function **of)
{
    const struct mt_line_use *most = NULL;

    for (uint32_t f = 0; f < device->function_count; f++) {
        if (!lines_shows(answer, &device->functions[f]))
            continue;
        for (uint32_t i = 0; i < device->functions[f].line_count; i++) {
            const struct mt_line_use *line = &device->functions[f].lines[i];

            if (most && line->peak.active <= most->peak.active)
                continue;
            most = line;
            *of = &device->functions[f];
        }
    }
    return most;
}

static void add_line(struct mt_buf *out, const struct mt_buf *line)
{
    if (line->data)
        mt_text_table_add_wrapped(out, line->data, 0, 2);
    mt_buf_add_char(out, '\n');
}

/* Adds the line with the highest peak. If several lines have this peak, adds the first one, whose
 * function allocates the most itself. */
static void add_answer(struct mt_buf *out, const struct lines_answer *answer,
                       const struct mt_line_device *device)
{
    char bytes[MT_UNITS_TEXT], count[MT_UNITS_TEXT], unseen[MT_UNITS_TEXT];
    struct mt_arena arena = {0};
    struct mt_buf line = {0};
    const struct mt_line_function *function = NULL;
    const struct mt_line_use *most = greatest(answer, device, &function);

    if (answer->table->device_count > 1)
        mt_buf_printf(&line, "Device %u: ", device->device);
    mt_buf_printf(&line, "%s, %s in total",
                  mt_format_counted(count, device->allocations, "allocation"),
                  mt_format_bytes(bytes, device->allocated_bytes));
    if (most)
        mt_buf_printf(&line, "; active memory is highest, %s, in %s",
                      mt_format_bytes(bytes, most->peak.active),
                      mt_frame_label(&arena, answer->symbols, most->frame));
    if (device->unseen_allocations)
        mt_buf_printf(&line, "; %s of them (%s) have no Python stack and belong to no line",
                      mt_format_count(count, device->unseen_allocations),
                      mt_format_bytes(unseen, device->unseen_bytes));
    add_line(out, &line);
    mt_buf_release(&line);
    mt_arena_release(&arena);
}

static bool add_device(struct mt_buf *out, const struct lines_answer *answer,
                       const struct mt_line_device *device)
{
    bool has_engine = false;

    add_answer(out, answer, device);
    for (uint32_t f = 0; f < device->function_count; f++) {
        const struct mt_line_function *function = &device->functions[f];

        if (!lines_shows(answer, function))
            continue;
        add_function(out, answer, function);
        for (uint32_t i = 0; i < function->line_count; i++)
            has_engine |= function->lines[i].engine_bytes != 0;
    }
    return has_engine;
}

static void add_notes(struct mt_buf *out, const struct lines_answer *answer, bool has_engine)
{
    mt_buf_add_char(out, '\n');
    mt_text_table_add_note(
        out, 0,
        "peak, after and growth are active bytes. after and reserved are the values after "
        "the line ran. A line includes the functions that it calls");
    if (has_engine)
        mt_text_table_add_note(
            out, 0,
            "* includes memory of autograd threads, which have no Python stack, while the "
            "line waited for them");
    if (!answer->table->has_frees)
        mt_text_table_add_note(
            out, 0,
            "frees were recorded without stacks: growth is unknown, and after is the value "
            "after the last allocation of the line");
    if (!answer->table->sizes_are_exact)
        mt_text_table_add_note(
            out, 0,
            "block sizes are the recorded ones, because no known allocator reproduces this trace");
}

static void lines_text(struct mt_buf *out, const struct lines_answer *answer)
{
    const struct mt_line_table *table = answer->table;
    bool has_engine = false, begun = false;

    if (!table->has_lines) {
        mt_buf_add_text(out, "No lines: the trace has no Python stacks.\n");
        return;
    }
    for (uint32_t i = 0; i < table->device_count; i++) {
        if (!lines_shows_device(answer, &table->devices[i]))
            continue;
        if (begun)
            mt_buf_add_char(out, '\n');
        begun = true;
        has_engine |= add_device(out, answer, &table->devices[i]);
    }
    add_notes(out, answer, has_engine);
}

/* Adds the source text of a line. The JSON writer replaces bytes that are not UTF-8. */
static void json_source(struct mt_json *json, struct mt_source_text *text, uint32_t number)
{
    struct mt_buf code = {0};
    size_t length;
    const char *line = mt_source_text_line(text, number, &length);

    mt_buf_add(&code, line, length);
    mt_json_text(json, "source", length ? code.data : NULL);
    mt_buf_release(&code);
}

static void json_function(struct mt_json *json, const struct lines_answer *answer,
                          const struct mt_line_function *function)
{
    struct mt_source_text text = {0};
    bool has_source = opens_source(&text, answer, function);

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "function", mt_symbols_text(answer->symbols, function->function));
    mt_json_text(json, "file", mt_symbols_text(answer->symbols, function->file));
    mt_json_text(json, "origin", mt_origin_name(function->origin));
    for (struct mt_json_list row = mt_json_rows(json, "lines", function->line_count);
         mt_json_next(&row);) {
        const struct mt_line_use *line = &function->lines[row.i];
        uint32_t number = answer->symbols->frames[line->frame].line;

        mt_json_u64(json, "line", number);
        mt_json_bytes(json, "peak", &line->peak);
        mt_json_bytes(json, "after", &line->after);
        if (answer->table->has_frees)
            mt_json_i64(json, "growth_bytes", line->growth_bytes);
        else
            mt_json_null(json, "growth_bytes");
        mt_json_u64(json, "allocated_bytes", line->allocated_bytes);
        mt_json_u64(json, "engine_bytes", line->engine_bytes);
        mt_json_u64(json, "own_bytes", line->own_bytes);
        mt_json_u64(json, "site_bytes", line->site_bytes);
        mt_json_u64(json, "allocations", line->allocations);
        if (has_source)
            json_source(json, &text, number);
    }
    mt_json_object_end(json);
    mt_source_text_release(&text);
}

static void json_device(struct mt_json *json, const struct lines_answer *answer,
                        const struct mt_line_device *device)
{
    struct mt_json_list list;

    mt_json_object_begin(json, NULL);
    mt_json_u64(json, "device", device->device);
    mt_json_u64(json, "allocations", device->allocations);
    mt_json_u64(json, "allocated_bytes", device->allocated_bytes);
    mt_json_u64(json, "unseen_allocations", device->unseen_allocations);
    mt_json_u64(json, "unseen_bytes", device->unseen_bytes);
    mt_json_list_begin(&list, json, "functions");
    for (uint32_t i = 0; i < device->function_count; i++)
        if (lines_shows(answer, &device->functions[i]) && mt_json_list_takes(&list))
            json_function(json, answer, &device->functions[i]);
    mt_json_list_end(&list);
    mt_json_object_end(json);
}

/* Appends a document "memtrace.lines/1". */
static void lines_json(struct mt_buf *out, const struct lines_answer *answer)
{
    struct mt_json json;
    struct mt_json_list list;

    mt_json_document(&json, out, "memtrace.lines/1", answer->all);
    mt_json_text(&json, "path", answer->path);
    mt_json_text(&json, "policy", answer->table->policy);
    mt_json_bool(&json, "frees_have_stacks", answer->table->has_frees);
    mt_json_bool(&json, "sizes_exact", answer->table->sizes_are_exact);
    mt_json_objects_begin(&list, &json, "devices", answer->table->device_count);
    for (uint32_t i = 0; i < answer->table->device_count; i++)
        if (lines_shows_device(answer, &answer->table->devices[i]) && mt_json_list_takes(&list))
            json_device(&json, answer, &answer->table->devices[i]);
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

#define SARIF_RESULTS 1000 /* the first of them: functions are in the order of their bytes */

/* Adds the file of a function as a URI reference of RFC 3986. */
static void sarif_file(struct mt_json *json, const char *file)
{
    struct mt_buf uri = {0};

    mt_buf_add_text(&uri, *file == '/' ? "file://" : "");
    for (; *file; file++)
        if (mt_is_alnum(*file) || strchr("-._~/", *file))
            mt_buf_add_char(&uri, *file);
        else
            mt_buf_printf(&uri, "%%%02X", (unsigned)(unsigned char)*file);
    mt_json_object_begin(json, "artifactLocation");
    mt_json_text(json, "uri", uri.data ? uri.data : "");
    mt_json_object_end(json);
    mt_buf_release(&uri);
}

static void sarif_line(struct mt_json *json, const struct lines_answer *answer,
                       const struct mt_line_function *function, const struct mt_line_use *line)
{
    char peak[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT], change[MT_UNITS_TEXT];
    struct mt_buf words = {0};

    mt_buf_printf(&words, "%s active at most while this line ran, %s allocated by it",
                  mt_format_bytes(peak, line->peak.active),
                  mt_format_bytes(allocated, line->allocated_bytes));
    if (answer->table->has_frees)
        mt_buf_printf(&words, ", %s growth", mt_format_change(change, line->growth_bytes));
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "ruleId", "memory");
    mt_json_text(json, "level", "note");
    mt_json_object_begin(json, "message");
    mt_json_text(json, "text", words.data);
    mt_json_object_end(json);
    mt_json_array_begin(json, "locations");
    mt_json_object_begin(json, NULL);
    mt_json_object_begin(json, "physicalLocation");
    sarif_file(json, mt_symbols_text(answer->symbols, function->file));
    mt_json_object_begin(json, "region");
    mt_json_u64(json, "startLine", mt_max_u64(answer->symbols->frames[line->frame].line, 1));
    mt_json_object_end(json);
    mt_json_object_end(json);
    mt_json_object_end(json);
    mt_json_array_end(json);
    mt_json_object_end(json);
    mt_buf_release(&words);
}

static void sarif_results(struct mt_json *json, const struct lines_answer *answer)
{
    uint32_t count = 0;

    mt_json_array_begin(json, "results");
    for (uint32_t i = 0; i < answer->table->device_count; i++) {
        const struct mt_line_device *device = &answer->table->devices[i];

        for (uint32_t f = 0; lines_shows_device(answer, device) && f < device->function_count; f++)
            for (uint32_t l = 0; l < device->functions[f].line_count; l++)
                if (lines_shows(answer, &device->functions[f]) && count++ < SARIF_RESULTS)
                    sarif_line(json, answer, &device->functions[f], &device->functions[f].lines[l]);
    }
    mt_json_array_end(json);
    if (count > SARIF_RESULTS)
        mt_message("%u of %u lines: --own or --function selects others", SARIF_RESULTS, count);
}

/* Appends a log of SARIF 2.1.0 (OASIS), which editors show beside the lines. */
static void lines_sarif(struct mt_buf *out, const struct lines_answer *answer)
{
    struct mt_json json;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "version", "2.1.0");
    mt_json_text(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    mt_json_array_begin(&json, "runs");
    mt_json_object_begin(&json, NULL);
    mt_json_object_begin(&json, "tool");
    mt_json_object_begin(&json, "driver");
    mt_json_text(&json, "name", "memtrace");
    mt_json_object_end(&json);
    mt_json_object_end(&json);
    sarif_results(&json, answer);
    mt_json_object_end(&json);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

struct arguments {
    struct mt_common common;
    const char *function;
    uint64_t device;
    bool all, own, source, sarif;
    struct mt_source_files sources;
};

static int say_no_device(const struct lines_answer *answer)
{
    if (!mt_question_refuses_device(answer->device))
        mt_message("device %llu has no allocations", (unsigned long long)answer->device);
    return MT_EXIT_USAGE;
}

static int say_no_function(const struct lines_answer *answer)
{
    const struct mt_line_table *table = answer->table;
    const char *near = NULL;

    for (uint32_t d = 0; d < table->device_count && !near; d++)
        for (uint32_t f = 0; f < table->devices[d].function_count && !near; f++) {
            const char *name =
                mt_symbols_text(answer->symbols, table->devices[d].functions[f].function);

            near = mt_did_you_mean(answer->function, &name, 1);
        }
    if (near)
        mt_message("no function '%s' allocated or freed anything; did you mean '%s'?",
                   answer->function, near);
    else
        mt_message("no function '%s' allocated or freed anything", answer->function);
    return MT_EXIT_USAGE;
}

/* Counts the functions that are shown, and in *devices the devices that are shown. */
static uint32_t count_shown(const struct lines_answer *answer, uint32_t *devices)
{
    uint32_t count = 0;

    *devices = 0;
    for (uint32_t d = 0; d < answer->table->device_count; d++) {
        const struct mt_line_device *device = &answer->table->devices[d];

        if (!lines_shows_device(answer, device))
            continue;
        ++*devices;
        for (uint32_t f = 0; f < device->function_count; f++)
            count += lines_shows(answer, &device->functions[f]);
    }
    return count;
}

static int say_no_own(void)
{
    mt_message(
        "no function of your own files allocated or freed anything; without --own, lines also "
        "shows the code of the model");
    return MT_EXIT_USAGE;
}

/* Falls back to libraries if the program has no site in Python code. */
static int settle(struct lines_answer *answer)
{
    uint32_t devices;

    if (count_shown(answer, &devices) == 0) {
        if (answer->device != LINES_EVERY_DEVICE && !devices)
            return say_no_device(answer);
        if (answer->function && answer->table->has_lines)
            return say_no_function(answer);
        if (answer->own && answer->table->has_lines)
            return say_no_own();
        answer->with_libraries = true;
    }
    return MT_EXIT_OK;
}

static int print_result(struct lines_answer *answer, const struct arguments *arguments)
{
    struct mt_buf out = {0};
    int code = settle(answer);

    if (code)
        return code;
    if (arguments->sarif)
        lines_sarif(&out, answer);
    else if (arguments->common.json)
        lines_json(&out, answer);
    else
        lines_text(&out, answer);
    return mt_print_answer_and_release(&out, arguments->common.json || arguments->sarif);
}

static int lines(struct mt_source *source, const char *path, struct arguments *arguments)
{
    struct mt_line_table table;
    struct lines_answer answer = {path,
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

    mt_reading_start(&reading, source, "reading", arguments->common.quiet);
    enum mt_status status = mt_line_table_read(source, &table, &error);
    mt_reading_end(&reading);
    if (status != MT_OK) {
        mt_line_table_release(&table);
        return mt_report_error(path, &error);
    }
    if (arguments->own)
        mt_line_table_sort_by_own(&table);
    arguments->sources.quiet = arguments->common.quiet;
    int code = print_result(&answer, arguments);
    mt_source_files_end(&arguments->sources);
    mt_line_table_release(&table);
    return mt_answer_verdict(code, source, path, &arguments->common);
}

int mt_cmd_lines(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = LINES_EVERY_DEVICE};
    const struct mt_option options[] = {
        {"function", 'f', MT_OPTION_TEXT, "F",
         "only functions with this name, including those of libraries", &arguments.function},
        {"source", 's', MT_OPTION_FLAG, NULL, "show the source text of files that exist here",
         &arguments.source},
        {"source-root", 0, MT_OPTION_LIST, "DIR",
         "with --source: also read files below DIR, not only below the current folder",
         &arguments.sources.roots},
        MT_DEVICE_OPTION(&arguments.device, "only this device"),
        {"own", 0, MT_OPTION_FLAG, NULL, "only functions of your own files", &arguments.own},
        {"all", 'a', MT_OPTION_FLAG, NULL,
         "print all rows: every function of the stacks; with --json: complete texts",
         &arguments.all},
        {"sarif", 0, MT_OPTION_FLAG, NULL, "print a SARIF log, which editors show beside the lines",
         &arguments.sarif},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count;
    int code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);

    if (code >= 0)
        return code;
    if (arguments.sarif && arguments.common.json) {
        mt_message(
            "options '--sarif' and '--json' cannot be combined: a SARIF log is already JSON");
        return MT_EXIT_USAGE;
    }
    if (arguments.function)
        keep_name((char *)arguments.function); /* argv may be changed */
    struct mt_source *source = mt_open_input(paths[0], &arguments.common, &code);
    if (!source)
        return code;
    code = lines(source, paths[0], &arguments);
    mt_source_close(source);
    return code;
}
