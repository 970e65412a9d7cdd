#include "lines_output.h"

#include "json.h"
#include "json_list.h"
#include "text_table.h"
#include "wrapped_text.h"
#include "units.h"
#include "report_json.h"

#include <string.h>

/* Returns true if the function has this name. "Net.forward" also has the name "forward". */
static bool is_called(const char *function, const char *name)
{
    const char *dot = strrchr(function, '.');

    return !strcmp(function, name) || (dot && !strcmp(dot + 1, name));
}

bool mt_lines_shows_device(const struct mt_lines_answer *answer,
                           const struct mt_line_device *device)
{
    return answer->device == MT_LINES_EVERY_DEVICE || answer->device == device->device;
}

bool mt_lines_shows(const struct mt_lines_answer *answer, const struct mt_line_function *function)
{
    if (answer->function)
        return is_called(mt_symbols_text(answer->symbols, function->function), answer->function);
    if (function->origin == MT_ORIGIN_USER)
        return true;
    return !answer->own && (answer->with_libraries || function->site_bytes);
}

static bool opens_source(struct mt_source_text *text, const struct mt_lines_answer *answer,
                         const struct mt_line_function *function)
{
    return answer->sources && mt_source_text_open(text, answer->sources,
                                                  mt_symbols_text(answer->symbols, function->file));
}

static void add_cells(struct mt_table *table, const struct mt_lines_answer *answer,
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

static void add_heading(struct mt_buf *out, const struct mt_lines_answer *answer,
                        const struct mt_line_function *function)
{
    const struct mt_style *style = mt_stdout_style();
    const char *name = mt_symbols_text(answer->symbols, function->function);
    const char *file = mt_source_text_name(mt_symbols_text(answer->symbols, function->file));

    mt_buf_printf(out, "\n%s", style->bold);
    mt_buf_add_printable(out, name, strlen(name));
    mt_buf_add_text(out, style->reset);
    mt_buf_add_text(out, ", ");
    mt_buf_add_printable(out, file, strlen(file));
    mt_buf_add_char(out, '\n');
}

static void add_function(struct mt_buf *out, const struct mt_lines_answer *answer,
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
    mt_add_text_table(out, &table, 2, style);
    mt_source_text_release(&text);
}

/* Returns the line with the highest peak among the lines that are shown, and sets its function. */
static const struct mt_line_use *greatest(const struct mt_lines_answer *answer,
                                          const struct mt_line_device *device,
                                          const struct mt_line_function **of)
{
    const struct mt_line_use *most = NULL;
    uint32_t f, i;

    for (f = 0; f < device->function_count; f++) {
        if (!mt_lines_shows(answer, &device->functions[f]))
            continue;
        for (i = 0; i < device->functions[f].line_count; i++) {
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
        mt_add_wrapped(out, line->data, 0, 2);
    mt_buf_add_char(out, '\n');
}

/* Adds the line with the highest peak. If several lines have this peak, adds the first one, whose
 * function allocates the most itself. */
static void add_answer(struct mt_buf *out, const struct mt_lines_answer *answer,
                       const struct mt_line_device *device)
{
    char bytes[MT_UNITS_TEXT], count[MT_UNITS_TEXT], unseen[MT_UNITS_TEXT];
    struct mt_arena arena = {0};
    struct mt_buf line = {0};
    const struct mt_line_function *function = NULL;
    const struct mt_line_use *most = greatest(answer, device, &function);

    if (answer->table->device_count > 1)
        mt_buf_printf(&line, "Device %u: ", device->device);
    mt_buf_printf(&line, "%s allocations, %s in total", mt_format_count(count, device->allocations),
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

static bool add_device(struct mt_buf *out, const struct mt_lines_answer *answer,
                       const struct mt_line_device *device)
{
    bool has_engine = false;
    uint32_t f, i;

    add_answer(out, answer, device);
    for (f = 0; f < device->function_count; f++) {
        const struct mt_line_function *function = &device->functions[f];

        if (!mt_lines_shows(answer, function))
            continue;
        add_function(out, answer, function);
        for (i = 0; i < function->line_count; i++)
            has_engine |= function->lines[i].engine_bytes != 0;
    }
    return has_engine;
}

static void add_notes(struct mt_buf *out, const struct mt_lines_answer *answer, bool has_engine)
{
    mt_buf_add_char(out, '\n');
    mt_add_note(out, 0,
                "peak, after and growth are active bytes. after and reserved are the values after "
                "the line ran. A line includes the functions that it calls");
    if (has_engine)
        mt_add_note(out, 0,
                    "* includes memory of autograd threads, which have no Python stack, while the "
                    "line waited for them");
    if (!answer->table->has_frees)
        mt_add_note(out, 0,
                    "frees were recorded without stacks: growth is unknown, and after is the value "
                    "after the last allocation of the line");
    if (!answer->table->sizes_are_exact)
        mt_add_note(
            out, 0,
            "block sizes are the recorded ones, because no known allocator reproduces this trace");
}

void mt_lines_text(struct mt_buf *out, const struct mt_lines_answer *answer)
{
    const struct mt_line_table *table = answer->table;
    bool has_engine = false, begun = false;

    if (!table->has_lines) {
        mt_buf_add_text(out, "No lines: the trace has no Python stacks.\n");
        return;
    }
    for (uint32_t i = 0; i < table->device_count; i++) {
        if (!mt_lines_shows_device(answer, &table->devices[i]))
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

static void json_function(struct mt_json *json, const struct mt_lines_answer *answer,
                          const struct mt_line_function *function)
{
    struct mt_json_list list;
    struct mt_source_text text = {0};
    bool has_source = opens_source(&text, answer, function);

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "function", mt_symbols_text(answer->symbols, function->function));
    mt_json_text(json, "file", mt_symbols_text(answer->symbols, function->file));
    mt_json_text(json, "origin", mt_origin_name(function->origin));
    mt_json_list_begin(&list, json, "lines");
    for (uint32_t i = 0; i < function->line_count; i++) {
        const struct mt_line_use *line = &function->lines[i];
        uint32_t number = answer->symbols->frames[line->frame].line;

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
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
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
    mt_json_object_end(json);
    mt_source_text_release(&text);
}

static void json_device(struct mt_json *json, const struct mt_lines_answer *answer,
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
        if (mt_lines_shows(answer, &device->functions[i]) && mt_json_list_takes(&list))
            json_function(json, answer, &device->functions[i]);
    mt_json_list_end(&list);
    mt_json_object_end(json);
}

void mt_lines_json(struct mt_buf *out, const struct mt_lines_answer *answer)
{
    struct mt_json json;
    struct mt_json_list list;

    mt_json_init(&json, out, true);
    json.all = answer->all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.lines/1");
    mt_json_text(&json, "path", answer->path);
    mt_json_text(&json, "policy", answer->table->policy);
    mt_json_bool(&json, "frees_have_stacks", answer->table->has_frees);
    mt_json_bool(&json, "sizes_exact", answer->table->sizes_are_exact);
    mt_json_objects_begin(&list, &json, "devices", answer->table->device_count);
    for (uint32_t i = 0; i < answer->table->device_count; i++)
        if (mt_lines_shows_device(answer, &answer->table->devices[i]) && mt_json_list_takes(&list))
            json_device(&json, answer, &answer->table->devices[i]);
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}
