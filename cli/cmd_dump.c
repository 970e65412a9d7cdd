/* memtrace dump: the events of a trace, one per line. */
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "heaps.h"
#include "instant_option.h"
#include "json.h"
#include "open_input.h"
#include "question_report.h"
#include "units.h"
#include "util.h"
#include "work_kinds.h"

enum { FLUSH_BYTES = 1 << 16, MAX_STACK_LINES = 256 };

struct dump {
    struct mt_common common;
    bool stacks;
    struct mt_instant_option from, to;
    struct mt_source *source;
    uint64_t start_t_ns;
    struct mt_reading reading;
    struct mt_buf out;
    int exit_code; /* exit code of writing */
};

/* NULL if the thread has none. */
static const char *thread_name(const struct mt_symbols *symbols, uint16_t thread)
{
    if (thread >= symbols->thread_count || symbols->threads[thread].name == MT_NO_ID)
        return NULL;
    return mt_symbols_text(symbols, symbols->threads[thread].name);
}

static void add_frame_text(struct mt_buf *text, const struct mt_symbols *symbols, uint32_t stack)
{
    const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];

    mt_buf_add_text(text,
                    frame->function == MT_NO_ID ? "" : mt_symbols_text(symbols, frame->function));
    if (frame->file == MT_NO_ID)
        return;
    mt_buf_add_text(text, " (");
    mt_buf_add_text(text, mt_symbols_text(symbols, frame->file));
    mt_buf_add_char(text, ':');
    mt_buf_add_u64(text, frame->line);
    mt_buf_add_char(text, ')');
}

/* Innermost frame first. A stack deeper than MAX_STACK_LINES loses its outermost frames. */
static void json_stack(struct mt_json *json, const struct mt_symbols *symbols, uint32_t stack)
{
    struct mt_buf text = {0};

    mt_json_array_begin(json, "frames");
    for (int lines = 0; stack != MT_NO_ID && lines < MAX_STACK_LINES; lines++) {
        mt_buf_reset(&text);
        add_frame_text(&text, symbols, stack);
        mt_json_text(json, NULL, text.data ? text.data : "");
        stack = symbols->stacks[stack].parent;
    }
    mt_json_array_end(json);
    mt_buf_release(&text);
}

static const char *const flag_names[] = {"initial", "expandable", "size_derived", "at_address",
                                         "gap"};

static void json_flags(struct mt_json *json, unsigned flags)
{
    mt_json_array_begin(json, "flags");
    for (size_t i = 0; i < MT_ARRAY_LEN(flag_names); i++)
        if (flags >> i & 1)
            mt_json_text(json, NULL, flag_names[i]);
    mt_json_array_end(json);
}

static void json_event(struct dump *dump, const struct mt_event *event)
{
    const struct mt_symbols *symbols = &dump->source->symbols;
    struct mt_json json;

    mt_json_init(&json, &dump->out, false);
    json.all = true; /* a stream with one event per line is never shortened */
    mt_json_object_begin(&json, NULL);
    mt_json_u64(&json, "seq", event->seq);
    mt_json_u64(&json, "t_ns", event->t_ns);
    mt_json_text(&json, "kind", mt_event_kind_name(event->kind));
    json_flags(&json, event->flags);
    mt_json_u64(&json, "device", event->device);
    mt_json_u64(&json, "stream", symbols->streams[event->stream].handle);
    mt_json_u64(&json, "thread", event->thread);
    if (thread_name(symbols, event->thread))
        mt_json_text(&json, "thread_name", thread_name(symbols, event->thread));
    mt_json_text(&json, "heap", mt_symbols_text(symbols, symbols->heaps[event->heap].name));
    mt_json_array_begin(&json, "pool");
    mt_json_u64(&json, NULL, symbols->pools[event->pool].id[0]);
    mt_json_u64(&json, NULL, symbols->pools[event->pool].id[1]);
    mt_json_array_end(&json);
    mt_json_u64(&json, "addr", event->addr);
    mt_json_u64(&json, "size", event->size_bytes);
    mt_json_u64(&json, "aux", event->aux_bytes);
    mt_json_text(&json, "name",
                 event->name == MT_NO_ID ? NULL : mt_symbols_text(symbols, event->name));
    mt_json_u64_or_null(&json, "stack", event->stack != MT_NO_ID, event->stack);
    if (dump->stacks)
        json_stack(&json, symbols, event->stack);
    mt_json_object_end(&json);
    mt_buf_add_char(&dump->out, '\n');
}

static void add_printable(struct mt_buf *out, const char *text)
{
    mt_buf_add_printable(out, text, strlen(text));
}

static void text_frame(struct dump *dump, uint32_t stack, const char *before)
{
    struct mt_buf text = {0};

    add_frame_text(&text, &dump->source->symbols, stack);
    mt_buf_add_text(&dump->out, before);
    if (text.data)
        add_printable(&dump->out, text.data);
    mt_buf_release(&text);
}

/* Prints the heap, unless it is the usual one of an allocator. */
static void text_heap(struct dump *dump, const struct mt_event *event)
{
    const struct mt_symbols *symbols = &dump->source->symbols;

    if (!mt_event_is_memory(event) ||
        mt_heap_class_at(symbols, event->heap).level == MT_HEAP_FRAMEWORK)
        return;
    mt_buf_add_text(&dump->out, "  ");
    add_printable(&dump->out, mt_symbols_text(symbols, symbols->heaps[event->heap].name));
}

static void text_thread(struct dump *dump, const struct mt_event *event)
{
    const char *name = thread_name(&dump->source->symbols, event->thread);

    if (event->thread)
        mt_buf_printf(&dump->out, "  thread %u", event->thread);
    if (!name)
        return;
    mt_buf_add_text(&dump->out, event->thread ? " " : "  thread ");
    add_printable(&dump->out, name);
}

/* The meaning of address, size and aux depends on the kind (event.h). */
static void text_numbers(struct dump *dump, const struct mt_event *event)
{
    struct mt_buf *out = &dump->out;
    char number[MT_UNITS_TEXT];

    if (event->kind == MT_EVENT_COMMUNICATOR) {
        if (event->addr)
            mt_buf_printf(out, "  id 0x%llx", (unsigned long long)event->addr);
        if (event->size_bytes)
            mt_buf_printf(out, "  rank %llu of %s", (unsigned long long)event->aux_bytes,
                          mt_format_count(number, event->size_bytes));
        return;
    }
    if (event->addr)
        mt_buf_printf(out, "  0x%llx", (unsigned long long)event->addr);
    if (event->size_bytes)
        mt_buf_printf(out, "  %s", mt_format_bytes(number, event->size_bytes));
    if (event->aux_bytes && event->kind > MT_EVENT_COMMUNICATOR)
        mt_buf_printf(out, "  communicator 0x%llx", (unsigned long long)event->aux_bytes);
    else if (event->aux_bytes)
        mt_buf_printf(out, "  (%s)", mt_format_bytes(number, event->aux_bytes));
}

/* Prints the fields that only some events have. */
static void text_details(struct dump *dump, const struct mt_event *event)
{
    const struct mt_symbols *symbols = &dump->source->symbols;
    struct mt_buf *out = &dump->out;

    text_heap(dump, event);
    text_numbers(dump, event);
    if (event->stream)
        mt_buf_printf(out, "  stream 0x%llx",
                      (unsigned long long)symbols->streams[event->stream].handle);
    if (event->pool)
        mt_buf_printf(out, "  pool (%llu, %llu)",
                      (unsigned long long)symbols->pools[event->pool].id[0],
                      (unsigned long long)symbols->pools[event->pool].id[1]);
    text_thread(dump, event);
    for (size_t i = 0; i < MT_ARRAY_LEN(flag_names); i++)
        if ((event->flags & ~MT_EVENT_SIZE_DERIVED) >> i & 1)
            mt_buf_printf(out, "  %s", flag_names[i]);
    if (event->name != MT_NO_ID) {
        mt_buf_add_text(out, "  ");
        add_printable(out, mt_symbols_text(symbols, event->name));
    }
}

static void text_event(struct dump *dump, const struct mt_event *event)
{
    const struct mt_symbols *symbols = &dump->source->symbols;
    uint64_t t_ns = event->t_ns - mt_min_u64(event->t_ns, dump->start_t_ns);
    uint32_t stack = event->stack;

    mt_buf_printf(&dump->out, "%8llu  %llu.%06llu s  gpu %u  %-14s", (unsigned long long)event->seq,
                  (unsigned long long)(t_ns / 1000000000),
                  (unsigned long long)(t_ns / 1000 % 1000000), event->device,
                  mt_event_kind_name(event->kind));
    text_details(dump, event);
    if (stack != MT_NO_ID && !dump->stacks)
        text_frame(dump, stack, "  ");
    mt_buf_add_char(&dump->out, '\n');
    for (int lines = 0; dump->stacks && stack != MT_NO_ID && lines < MAX_STACK_LINES; lines++) {
        text_frame(dump, stack, "              ");
        mt_buf_add_char(&dump->out, '\n');
        stack = symbols->stacks[stack].parent;
    }
}

/* Returns -1 before the instant, 0 at it, 1 after it. */
static int compare(const struct dump *dump, const struct mt_event *event,
                   const struct mt_instant_option *instant)
{
    uint64_t value = event->seq;

    if (instant->by_time)
        value = event->t_ns - mt_min_u64(event->t_ns, dump->start_t_ns);
    return value < instant->value ? -1 : value > instant->value;
}

/* Prints the lines so far. Lines that a person may see end the progress, which would mix with them
 * on the terminal. Lines in a file do not. */
static void flush(struct dump *dump)
{
    struct stat info;

    if (fstat(STDOUT_FILENO, &info) != 0 || !S_ISREG(info.st_mode))
        mt_reading_end(&dump->reading);
    dump->exit_code = mt_print_answer(&dump->out, dump->common.json);
    mt_buf_reset(&dump->out);
}

/* For a pipe. Printing to it is not an error (mt_print), but is useless. */
static bool reader_has_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Prints a batch. Returns true if more events may follow. */
static bool dump_batch(struct dump *dump, const struct mt_event_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct mt_event *event = &batch->events[i];
        if (dump->from.given && compare(dump, event, &dump->from) < 0)
            continue;
        if (dump->to.given && compare(dump, event, &dump->to) > 0)
            return false;
        if (dump->common.json)
            json_event(dump, event);
        else
            text_event(dump, event);
        if (dump->out.length < FLUSH_BYTES)
            continue;
        flush(dump);
        if (dump->exit_code != MT_EXIT_OK || reader_has_left())
            return false;
    }
    return true;
}

/* Reads the first event, because times count from it, and seeks to --from. */
static enum mt_status go_to_start(struct dump *dump, struct mt_error *error)
{
    struct mt_source *source = dump->source;
    struct mt_event_batch batch;
    enum mt_status status = mt_source_next(source, &batch, error);
    uint64_t target = dump->from.value;

    if (status == MT_END)
        return mt_source_rewind(source, error);
    if (status != MT_OK)
        return status;
    dump->start_t_ns = batch.events[0].t_ns;
    if (!dump->from.given || !source->ops->seek)
        return mt_source_rewind(source, error);
    if (dump->from.by_time && !mt_add_ok(target, dump->start_t_ns, &target))
        target = UINT64_MAX;
    return source->ops->seek(source, target, dump->from.by_time, error);
}

static int dump_source(struct dump *dump, const char *path)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_event_batch batch;
    bool more = true;
    enum mt_status status = go_to_start(dump, &error);

    /* after go_to_start, which reads the first batch: passes are counted from here */
    mt_reading_start(&dump->reading, dump->source, "printing", dump->common.quiet);
    while (status == MT_OK && more) {
        status = mt_source_next(dump->source, &batch, &error);
        more = status == MT_OK && dump_batch(dump, &batch);
    }
    if (dump->exit_code == MT_EXIT_OK)
        flush(dump);
    mt_reading_end(&dump->reading);
    if (dump->exit_code != MT_EXIT_OK)
        return dump->exit_code;
    if (status != MT_OK && status != MT_END)
        return mt_report_error(path, &error);
    return mt_input_verdict(dump->source, path, &dump->common);
}

/* Sets *instant to the first event of the phases with that path, or to the last one. Otherwise
 * prints that there is no such phase and returns the exit code. */
static int find_phase(const struct mt_question_report *asked, bool is_end,
                      struct mt_instant_option *instant)
{
    bool found = false;

    for (uint32_t i = 0; instant->phase && i < asked->report->phase_count; i++) {
        const struct mt_phase *phase = &asked->report->phases[i];

        if (!mt_phase_path_matches(phase->path, instant->phase))
            continue;
        if (is_end)
            instant->value = mt_max_u64(instant->value, phase->end_event);
        else
            instant->value =
                found ? mt_min_u64(instant->value, phase->begin_event) : phase->begin_event;
        found = true;
    }
    return found || !instant->phase ? -1 : mt_question_print_no_phase(asked, instant->phase);
}

/* A trace has only ranges. Phases and steps result from an analysis. */
static int find_phases(struct dump *dump, const char *path)
{
    const struct mt_question question = {.at = MT_AT_END};
    struct mt_question_report asked;

    if (!dump->from.phase && !dump->to.phase)
        return -1;
    if (strcmp(path, "-") == 0) {
        mt_message(
            "dump: --from and --to cannot be phases if the trace is standard input, which can "
            "be read only once; name a file");
        return MT_EXIT_USAGE;
    }
    int code = mt_question_run(path, &dump->common, &question, &asked);
    if (code < 0)
        code = find_phase(&asked, false, &dump->from);
    if (code < 0)
        code = find_phase(&asked, true, &dump->to);
    mt_question_close(&asked);
    return code;
}

/* An event number and a time can be compared only while events are read. */
static bool range_is_valid(const struct mt_instant_option *from, const struct mt_instant_option *to)
{
    if (!from->given || !to->given || from->by_time != to->by_time || from->value <= to->value)
        return true;
    mt_message("dump: --from is after --to, so there is nothing to print");
    return false;
}

int mt_cmd_dump(const struct mt_command *command, int argc, char **argv)
{
    struct dump dump = {0};
    const char *from = NULL, *to = NULL;
    const struct mt_option options[] = {
        {"from", 0, MT_OPTION_TEXT, "INSTANT",
         "start at this event, time or phase (1200, 1.5s, step#3, phase:PATH)", &from},
        {"to", 0, MT_OPTION_TEXT, "INSTANT", "stop after this event, time or phase", &to},
        {"stacks", 0, MT_OPTION_FLAG, NULL, "print complete stacks, innermost frame first",
         &dump.stacks},
        MT_COMMON_OPTIONS_WITH(dump.common, "print one JSON object per line",
                               "exit with 5 if the trace is incomplete"),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    char **arguments;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 1, &arguments, &count);

    if (code >= 0)
        return code;
    if (!mt_instant_option_read(from, &dump.from) || !mt_instant_option_read(to, &dump.to))
        return MT_EXIT_USAGE;
    code = find_phases(&dump, arguments[0]);
    if (code >= 0)
        return code;
    if (!range_is_valid(&dump.from, &dump.to))
        return MT_EXIT_USAGE;
    dump.source = mt_open_input(arguments[0], &dump.common, &code);
    if (!dump.source)
        return code;
    if (dump.source->header.dry_run && (dump.from.by_time || dump.to.by_time))
        code = mt_instant_option_print_no_times(arguments[0]);
    else
        code = dump_source(&dump, arguments[0]);
    mt_source_close(dump.source);
    mt_buf_release(&dump.out);
    return code;
}
