/* memtrace oom: what an error message about memory proves, without a trace. */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "memory_limit.h"
#include "oom_text.h"
#include "units.h"
#include "util.h"

enum { NAME_COLUMNS = 56, INDENT = 4, MAX_LINES = 12 };

struct explained {
    struct mt_oom_message message;
    struct mt_oom_verdict verdict;
};

static void add_row(struct mt_buf *out, int indent, const char *what, uint64_t mib)
{
    char count[MT_UNITS_TEXT];

    mt_buf_printf(out, "%*s%-*s %11s MiB\n", indent, "", NAME_COLUMNS - indent, what,
                  mt_format_count(count, mib));
}

/* Breaks a paragraph at spaces. */
static void add_wrapped(struct mt_buf *out, const char *text)
{
    const size_t columns = MT_TEXT_COLUMNS - 2;
    struct mt_buf safe = {0};
    const char *at, *end;

    mt_buf_add_printable_text(&safe, text);
    for (at = safe.data, end = at + safe.length; (size_t)(end - at) > columns;) {
        const char *stop = at + columns;

        while (stop > at && *stop != ' ')
            stop--;
        if (stop == at)
            break;
        mt_buf_add(out, at, (size_t)(stop - at));
        mt_buf_add_text(out, "\n  ");
        at = stop + 1;
    }
    mt_buf_add(out, at, (size_t)(end - at));
    mt_buf_add_char(out, '\n');
    mt_buf_release(&safe);
}

/* At most `rows` rows, without parts of 0: the smallest ones become one row if there are more. */
static void add_parts(struct mt_buf *out, const struct mt_oom_verdict *verdict, size_t rows)
{
    uint64_t amounts[MT_OOM_MAX_PARTS], merged = 0;
    size_t count = 0;

    if (!verdict->whole)
        return;
    add_row(out, 2, verdict->whole, mt_oom_verdict_parts(verdict, MT_MIB, amounts));
    for (size_t i = 0; i < verdict->part_count; i++)
        count += amounts[i] > 0;
    for (size_t most = count > rows ? rows - 1 : count; count > most; count--) {
        size_t least = 0;

        for (size_t i = 0; i < verdict->part_count; i++)
            if (amounts[i] && (!amounts[least] || amounts[i] < amounts[least]))
                least = i;
        merged += amounts[least];
        amounts[least] = 0;
    }
    for (size_t i = 0; i < verdict->part_count; i++)
        if (amounts[i])
            add_row(out, INDENT, verdict->parts[i].what, amounts[i]);
    if (merged)
        add_row(out, INDENT, "smaller parts", merged);
}

/* What follows the parts. */
static void add_end(struct mt_buf *out, const struct explained *explained)
{
    const struct mt_oom_verdict *verdict = &explained->verdict;
    const struct mt_oom_message *message = &explained->message;
    struct mt_buf line = {0};

    mt_buf_add_text(&line, "Cannot tell ");
    for (size_t i = 0; i < verdict->unknown_count; i++) {
        mt_buf_add_text(&line, i ? "; " : "");
        mt_buf_add(&line, verdict->unknown[i].data, verdict->unknown[i].length);
    }
    if (verdict->unknown_count)
        add_wrapped(out, line.data);
    if (message->count > 1) {
        mt_buf_printf(out, "This is the last of %llu messages about memory: line %llu",
                      (unsigned long long)message->count, (unsigned long long)message->line);
        if (message->rank != MT_OOM_NO_NUMBER)
            mt_buf_printf(out, ", rank %lld", (long long)message->rank);
        mt_buf_add_char(out, '\n');
    }
    mt_buf_add_text(out, "Next: ");
    mt_buf_add(out, verdict->next.data, verdict->next.length);
    mt_buf_add_char(out, '\n');
    mt_buf_release(&line);
}

static void add_text(struct mt_buf *out, const struct explained *explained)
{
    struct mt_buf end = {0};

    add_wrapped(out, explained->verdict.headline.data);
    add_end(&end, explained);
    uint64_t others = 1 + mt_buf_count_lines(out) + mt_buf_count_lines(&end);
    add_parts(out, &explained->verdict, mt_max_u64(mt_sub_or_0_u64(MAX_LINES, others), 1));
    mt_buf_add(out, end.data, end.length);
    mt_buf_release(&end);
}

static void json_number(struct mt_json *json, const char *key, const struct explained *explained,
                        enum mt_oom_number number)
{
    const struct mt_oom_value *value = &explained->message.numbers[number];

    mt_json_u64_or_null(json, key, value->is_known && !value->is_negative, value->value);
}

static void json_id(struct mt_json *json, const char *key, int64_t id)
{
    mt_json_u64_or_null(json, key, id != MT_OOM_NO_NUMBER, (uint64_t)id);
}

static void json_parts(struct mt_json *json, const struct mt_oom_verdict *verdict)
{
    uint64_t amounts[MT_OOM_MAX_PARTS];

    mt_json_u64_or_null(json, "whole_bytes", verdict->whole,
                        mt_oom_verdict_parts(verdict, 1, amounts));
    mt_json_array_begin(json, "parts");
    for (size_t i = 0; i < verdict->part_count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "what", verdict->parts[i].what);
        mt_json_u64(json, "bytes", amounts[i]);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void add_json(struct mt_buf *out, const struct explained *explained)
{
    const struct mt_oom_verdict *verdict = &explained->verdict;
    const struct mt_oom_message *message = &explained->message;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.oom/1", false);
    mt_json_text(&json, "cause", mt_oom_cause_name(verdict->cause));
    mt_json_bool(&json, "proved", verdict->is_proved);
    mt_json_text(&json, "headline", verdict->headline.data);
    mt_json_text(&json, "software", message->software);
    mt_json_u64(&json, "line", message->line);
    mt_json_u64(&json, "messages", message->count);
    json_id(&json, "rank", message->rank);
    json_id(&json, "device", message->device);
    json_number(&json, "request_bytes", explained, MT_OOM_REQUEST);
    json_number(&json, "capacity_bytes", explained, MT_OOM_CAPACITY);
    json_number(&json, "free_bytes", explained, MT_OOM_FREE);
    json_number(&json, "this_process_bytes", explained, MT_OOM_THIS_PROCESS);
    json_number(&json, "allocated_bytes", explained, MT_OOM_ALLOCATED);
    json_number(&json, "limit_bytes", explained, MT_OOM_LIMIT);
    mt_json_text(&json, "whole", verdict->whole);
    json_parts(&json, verdict);
    mt_json_array_begin(&json, "cannot_tell");
    for (size_t i = 0; i < verdict->unknown_count; i++)
        mt_json_text(&json, NULL, verdict->unknown[i].data);
    mt_json_array_end(&json);
    mt_json_text(&json, "later_error", message->later_error[0] ? message->later_error : NULL);
    mt_json_text(&json, "next", verdict->next.data);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

static int explain(const char *path, const struct mt_buf *text, uint64_t lines_cut,
                   const struct mt_common *common)
{
    struct explained explained;
    struct mt_buf out = {0};
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!mt_oom_find(text->data ? text->data : "", text->length, &explained.message)) {
        mt_oom_message_release(&explained.message);
        (void)mt_fail(&error, MT_ERR_FORMAT, MT_NO_OFFSET,
                      "it has no message about memory that memtrace knows");
        return mt_report_error(path, &error);
    }
    explained.message.line += lines_cut;
    mt_oom_judge(&explained.message, &explained.verdict);
    if (common->json)
        add_json(&out, &explained);
    else
        add_text(&out, &explained);
    int code = mt_print_answer_and_release(&out, common->json);
    mt_oom_verdict_release(&explained.verdict);
    mt_oom_message_release(&explained.message);
    return code;
}

int mt_cmd_oom(const struct mt_command *command, int argc, char **argv)
{
    struct mt_common common = {0};
    const struct mt_option options[] = {MT_COMMON_OPTIONS(common),
                                        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf text = {0};
    uint64_t lines_cut;
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 0, 1, &paths, &count);

    if (code >= 0)
        return code;
    const char *path = count ? paths[0] : "-";
    mt_memory_input_set(path);
    if (strcmp(path, "-") == 0 && isatty(STDIN_FILENO) && !common.quiet)
        mt_message("paste the message, then press Ctrl-D");
    code = mt_oom_read(path, MT_OOM_KEPT_BYTES, &text, &lines_cut, &error) == MT_OK
               ? explain(path, &text, lines_cut, &common)
               : mt_report_error(path, &error);
    mt_buf_release(&text);
    return code;
}
