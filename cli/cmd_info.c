/* memtrace info: the contents of a trace, and whether it is complete. */
#include <string.h>

#include "annexes.h"
#include "cli.h"
#include "info_identity.h"
#include "info_recorded.h"
#include "json.h"
#include "open_input.h"
#include "report_json.h"
#include "text_table.h"
#include "trace.h"
#include "units.h"

struct info {
    struct mt_common common;
    bool secrets;
    const char *path;
    struct mt_source *source;
    uint64_t kinds[MT_EVENT_KIND_COUNT];
    uint64_t events, begin_ns, end_ns;
    size_t frames; /* 0 if the format has no frames */
    struct mt_info_recorded recorded;
};

static bool is_trace(const struct mt_source *source)
{
    return strncmp(source->format, "memtrace/", 9) == 0;
}

static enum mt_status count_events(struct info *info, struct mt_error *error)
{
    const struct mt_zstd_frame_info *frames;
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(info->source, &batch, error)) == MT_OK) {
        if (!info->events)
            info->begin_ns = batch.events[0].t_ns;
        for (size_t i = 0; i < batch.count; i++) {
            info->kinds[batch.events[i].kind < MT_EVENT_KIND_COUNT ? batch.events[i].kind : 0]++;
            mt_info_recorded_add(&info->recorded, &batch.events[i]);
        }
        info->events += batch.count;
        info->end_ns = batch.events[batch.count - 1].t_ns;
    }
    if (status == MT_END)
        status = mt_info_recorded_read(&info->recorded, info->source, error);
    if (status != MT_OK)
        return status;
    return is_trace(info->source) ? mt_trace_frames(info->source, &frames, &info->frames, error)
                                  : MT_OK;
}

static void json_header(struct mt_json *json, const struct mt_trace_header *header)
{
    struct mt_dry_run dry_run;

    mt_json_object_begin(json, "header");
    mt_json_text(json, "framework", header->framework);
    mt_json_text(json, "allocator_options", header->allocator_options);
    mt_json_text(json, "settings", header->settings);
    mt_json_text(json, "sources", header->sources);
    if (header->driver_calls)
        mt_json_text(json, "driver_calls", header->driver_calls);
    if (header->not_recorded)
        mt_json_text(json, "not_recorded", header->not_recorded);
    if (header->not_used)
        mt_json_text(json, "not_used", header->not_used);
    if (mt_dry_run_read(header->dry_run, &dry_run))
        mt_json_dry_run(json, &dry_run);
    mt_json_text(json, "host", header->host);
    mt_json_text(json, "command", header->command);
    mt_json_u64(json, "process_id", header->process_id);
    if (header->rank >= 0)
        mt_json_i64(json, "rank", header->rank);
    if (header->world_size >= 0)
        mt_json_i64(json, "world_size", header->world_size);
    mt_json_u64_or_null(json, "memory_limit_bytes", header->memory_limit_bytes,
                        header->memory_limit_bytes);
    mt_json_bool(json, "starts_in_middle", header->starts_in_middle);
    mt_json_bool(json, "sizes_rounded", header->sizes_rounded);
    mt_json_bool(json, "has_stacks", header->has_stacks);
    mt_json_bool(json, "has_segments", header->has_segments);
    mt_json_bool(json, "has_free_requested", header->has_free_requested);
    mt_json_bool(json, "has_free_completed", header->has_free_completed);
    mt_json_object_end(json);
}

static void json_devices(struct mt_json *json, const struct mt_symbols *symbols)
{
    for (struct mt_json_list row = mt_json_rows(json, "devices", symbols->device_count);
         mt_json_next(&row);) {
        const struct mt_device_info *device = &symbols->devices[row.i];

        mt_json_u64(json, "device", row.i);
        mt_json_text(json, "name",
                     device->name == MT_NO_ID ? NULL : mt_symbols_text(symbols, device->name));
        mt_json_u64_or_null(json, "total_memory_bytes", device->total_memory_bytes,
                            device->total_memory_bytes);
    }
}

static void json_symbols(struct mt_json *json, const struct mt_symbols *symbols)
{
    mt_json_object_begin(json, "symbols");
    mt_json_u64(json, "strings", symbols->strings.count);
    mt_json_u64(json, "frames", symbols->frame_count);
    mt_json_u64(json, "stacks", symbols->stack_count);
    mt_json_u64(json, "streams", symbols->stream_count);
    mt_json_u64(json, "threads", symbols->thread_count);
    mt_json_u64(json, "heaps", symbols->heap_count);
    mt_json_u64(json, "pools", symbols->pool_count);
    if (symbols->frames_cut)
        mt_json_u64(json, "frames_cut", symbols->frames_cut);
    mt_json_object_end(json);
}

static void json_integrity(struct mt_json *json, const struct mt_integrity *integrity)
{
    const struct mt_error *first = &integrity->first_error;

    mt_json_object_begin(json, "integrity");
    mt_json_u64(json, "frames_read", integrity->frames_read);
    mt_json_u64(json, "frames_damaged", integrity->frames_damaged);
    mt_json_u64(json, "events_read", integrity->events_read);
    mt_json_u64(json, "events_dropped", integrity->events_dropped);
    mt_json_u64(json, "events_unknown", integrity->events_unknown);
    mt_json_u64(json, "events_invalid", integrity->events_invalid);
    mt_json_u64(json, "records_damaged", integrity->records_damaged);
    mt_json_bool(json, "closed", integrity->closed);
    mt_json_bool(json, "cut", integrity->cut);
    mt_json_u64_or_null(json, "cut_offset", integrity->cut, integrity->cut_offset);
    mt_json_text(json, "first_error", first->status == MT_OK ? NULL : first->text);
    if (first->status != MT_OK && first->offset != MT_NO_OFFSET)
        mt_json_u64(json, "first_error_offset", first->offset);
    mt_json_object_end(json);
}

static void json_events(struct mt_json *json, const struct info *info)
{
    mt_json_object_begin(json, "events");
    mt_json_u64(json, "total", info->events);
    mt_json_u64(json, "begin_ns", info->begin_ns);
    mt_json_u64(json, "end_ns", info->end_ns);
    mt_json_object_begin(json, "kinds");
    for (unsigned kind = 1; kind < MT_EVENT_KIND_COUNT; kind++)
        if (info->kinds[kind])
            mt_json_u64(json, mt_event_kind_name(kind), info->kinds[kind]);
    mt_json_object_end(json);
    mt_json_object_end(json);
}

static double bytes_per_event(const struct info *info)
{
    return info->events ? (double)info->source->input_bytes / (double)info->events : 0;
}

static void write_json(const struct info *info, struct mt_buf *out)
{
    const struct mt_source *source = info->source;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.info/1", info->common.all);
    mt_json_object_begin(&json, "input");
    mt_json_text(&json, "path", info->path);
    mt_json_text(&json, "format", source->format);
    mt_json_u64(&json, "bytes", source->input_bytes);
    mt_json_u64(&json, "decoded_bytes", source->decoded_bytes);
    mt_json_u64(&json, "frames", info->frames);
    mt_json_share(&json, "bytes_per_event", bytes_per_event(info));
    mt_json_object_end(&json);
    json_header(&json, &source->header);
    mt_info_identity_json(&json, &source->header, info->path);
    json_devices(&json, &source->symbols);
    json_events(&json, info);
    json_symbols(&json, &source->symbols);
    mt_info_recorded_json(&json, &info->recorded, &source->symbols);
    json_integrity(&json, &source->integrity);
    mt_json_object_end(&json);
}

enum { LABEL_COLUMNS = 14 };

/* Adds a text from the file, or nothing if it is unknown. */
static void add_fact(struct mt_buf *out, const char *label, const char *value)
{
    if (!value || !*value)
        return;
    mt_info_add_label(out, label);
    mt_buf_add_printable(out, value, strcspn(value, "\n"));
    mt_buf_add_char(out, '\n');
}

static void add_lines(struct mt_buf *out, const char *label, const char *lines)
{
    while (lines) {
        add_fact(out, label, lines);
        lines = strchr(lines, '\n');
        lines = lines ? lines + 1 : NULL;
        label = "";
    }
}

static void add_devices(struct mt_buf *out, const struct mt_symbols *symbols)
{
    char bytes[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < symbols->device_count; i++) {
        const struct mt_device_info *device = &symbols->devices[i];
        const char *name = device->name == MT_NO_ID ? "" : mt_symbols_text(symbols, device->name);
        mt_info_add_label(out, i ? "" : "devices");
        mt_buf_printf(out, "gpu %u%s", i, *name ? "  " : "");
        mt_buf_add_printable(out, name, strlen(name));
        if (device->total_memory_bytes)
            mt_buf_printf(out, "  %s", mt_format_bytes(bytes, device->total_memory_bytes));
        mt_buf_add_char(out, '\n');
    }
}

/* "1 stream", "7,615 stacks" */
static void add_number(struct mt_buf *out, uint64_t count, const char *what, const char *after)
{
    char digits[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s%s", mt_format_counted(digits, count, what), after);
}

static void add_symbols(struct mt_buf *out, const struct mt_symbols *symbols)
{
    struct mt_buf line = {0};

    add_number(&line, symbols->stack_count, "stack", ", ");
    add_number(&line, symbols->frame_count, "frame", ", ");
    add_number(&line, symbols->strings.count, "string", ", ");
    add_number(&line, symbols->stream_count, "stream", ", ");
    add_number(&line, symbols->thread_count, "thread", ", ");
    add_number(&line, symbols->heap_count, "heap", ", ");
    add_number(&line, symbols->pool_count, "pool", "");
    mt_info_add_label(out, "symbols");
    mt_text_table_add_wrapped(out, line.data, LABEL_COLUMNS, LABEL_COLUMNS);
    mt_buf_add_char(out, '\n');
    mt_buf_release(&line);
}

static void add_counts(struct mt_buf *out, const struct info *info)
{
    char digits[MT_UNITS_TEXT], span[MT_UNITS_TEXT];

    mt_info_add_label(out, "events");
    mt_buf_add_text(out, mt_format_count(digits, info->events));
    if (info->end_ns > info->begin_ns)
        mt_buf_printf(out, " in %s", mt_format_duration(span, info->end_ns - info->begin_ns));
    mt_buf_add_char(out, '\n');
    for (unsigned kind = 1; kind < MT_EVENT_KIND_COUNT; kind++) {
        if (!info->kinds[kind])
            continue;
        mt_info_add_label(out, "");
        mt_buf_printf(out, "%12s %s\n", mt_format_count(digits, info->kinds[kind]),
                      mt_event_kind_name(kind));
    }
    add_symbols(out, &info->source->symbols);
}

static void add_size(struct mt_buf *out, const struct info *info)
{
    char bytes[MT_UNITS_TEXT];

    mt_info_add_label(out, "size");
    mt_buf_add_text(out, mt_format_bytes(bytes, info->source->input_bytes));
    if (info->events) {
        mt_buf_add_text(out, ", ");
        mt_buf_add_decimal(out, bytes_per_event(info), 2);
        mt_buf_add_text(out, " bytes per event");
    }
    if (info->frames) {
        mt_buf_add_text(out, ", ");
        add_number(out, info->frames, "frame", "");
    }
    mt_buf_add_char(out, '\n');
}

static void add_integrity_line(struct mt_buf *out, bool *first, uint64_t count, const char *one,
                               const char *many)
{
    char digits[MT_UNITS_TEXT];

    if (!count)
        return;
    mt_info_add_label(out, *first ? "integrity" : "");
    mt_buf_printf(out, "%s %s\n", mt_format_count(digits, count), count == 1 ? one : many);
    *first = false;
}

static void add_integrity(struct mt_buf *out, const struct info *info)
{
    const struct mt_source *source = info->source;
    const struct mt_integrity *integrity = &source->integrity;
    char missing[MT_MISSING_TEXT];
    bool first = true;

    add_integrity_line(out, &first, integrity->frames_damaged, "damaged frame", "damaged frames");
    add_integrity_line(out, &first, integrity->events_invalid, "event refers to a lost definition",
                       "events refer to lost definitions");
    add_integrity_line(out, &first, integrity->events_unknown, "event of an unknown kind",
                       "events of unknown kinds");
    if (integrity->events_dropped) {
        mt_info_add_label(out, first ? "integrity" : "");
        mt_buf_printf(out, "%s\n", mt_missing_events_text(source, missing));
        first = false;
    }
    add_integrity_line(out, &first, source->symbols.frames_cut, "frame omitted from deep stacks",
                       "frames omitted from deep stacks");
    mt_info_dropped_text(out, &info->recorded, &source->symbols);
    if (source->header.starts_in_middle) {
        mt_info_add_label(out, first ? "integrity" : "");
        mt_buf_add_text(out, "starts in the middle: earlier history is missing\n");
        if (source->header.ring_left_out) {
            char digits[MT_UNITS_TEXT];
            mt_info_add_label(out, "");
            mt_buf_printf(out, "record --ring left out %s\n",
                          mt_format_counted(digits, source->header.ring_left_out, "earlier event"));
        }
        first = false;
    }
    if (integrity->cut) {
        mt_info_add_label(out, first ? "integrity" : "");
        mt_buf_printf(out, "cut at byte %llu\n", (unsigned long long)integrity->cut_offset);
        first = false;
    }
    if (first) {
        mt_info_add_label(out, "integrity");
        mt_buf_add_text(out, "complete\n");
    }
}

static void add_dry_run(struct mt_buf *out, const char *fact)
{
    struct mt_dry_run dry_run;

    if (!mt_dry_run_read(fact, &dry_run))
        return;
    mt_info_add_label(out, "dry run");
    mt_header_add_simulated_card(out, &dry_run);
    mt_buf_add_text(out, ": times and values are meaningless\n");
}

static void write_text(const struct info *info, struct mt_buf *out)
{
    const struct mt_trace_header *header = &info->source->header;
    char bytes[MT_UNITS_TEXT];
    const char *name = strcmp(info->path, "-") == 0 ? "standard input" : info->path;

    mt_buf_add_printable(out, name, strlen(name));
    mt_buf_printf(out, ": %s\n", info->source->format);
    add_fact(out, "program", header->framework);
    add_dry_run(out, header->dry_run);
    add_fact(out, "options", header->allocator_options);
    add_fact(out, "recorded by", header->sources);
    add_fact(out, "driver", header->driver_calls);
    add_lines(out, "missing", header->not_recorded);
    add_fact(out, "host", header->host);
    add_fact(out, "command", header->command);
    mt_info_identity_text(out, header, info->path);
    if (header->memory_limit_bytes)
        add_fact(out, "limit", mt_format_bytes(bytes, header->memory_limit_bytes));
    add_devices(out, &info->source->symbols);
    add_counts(out, info);
    mt_info_recorded_text(out, &info->recorded, &info->source->symbols);
    add_size(out, info);
    add_integrity(out, info);
    add_lines(out, "not used", header->not_used);
}

static int print_info(struct info *info)
{
    struct mt_buf out = {0};

    if (info->secrets)
        mt_info_secrets(&out, info->source, info->path, info->common.json);
    else if (info->common.json)
        write_json(info, &out);
    else
        write_text(info, &out);
    return mt_print_answer_and_release(&out, info->common.json);
}

int mt_cmd_info(const struct mt_command *command, int argc, char **argv)
{
    struct info info = {0};
    const struct mt_option options[] = {
        {"secrets", 0, MT_OPTION_FLAG, NULL,
         "list data that could identify a person, machine or project", &info.secrets},
        MT_ALL_OPTION(info.common),
        MT_STRICT_OPTIONS(info.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_reading reading;
    char **arguments;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 1, &arguments, &count);

    if (code >= 0)
        return code;
    info.path = arguments[0];
    if (!info.secrets && mt_annex_files && mt_annex_files->is_own(info.path))
        return mt_annex_files->info(info.path, &info.common);
    info.source = mt_open_input(info.path, &info.common, &code);
    if (!info.source)
        return code;
    mt_reading_start(&reading, info.source, "reading", info.common.quiet);
    enum mt_status status = count_events(&info, &error);
    mt_reading_end(&reading);
    if (status != MT_OK)
        code = mt_report_error(info.path, &error);
    else if ((code = print_info(&info)) == MT_EXIT_OK)
        code = mt_input_verdict(info.source, info.path, &info.common);
    mt_info_recorded_release(&info.recorded);
    mt_source_close(info.source);
    return code;
}
