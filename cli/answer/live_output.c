/* The answer of `memtrace live` as text and as JSON: the instant, the holders of memory, and exact
 * totals. */
#include <string.h>

#include "analyze_output.h"
#include "json.h"
#include "live_output.h"
#include "question_report.h"
#include "report_json.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

static inline bool live_shows_device(const struct mt_live_output *live,
                                     const struct mt_device_report *device)
{
    return live->device == MT_EVERY_DEVICE || live->device == device->device;
}

/* Returns the name of the kind of instant in JSON: "peak", "time", ... */
static const char *question_at_name(enum mt_question_at at)
{
    static const char *const names[] = {"peak", "reserved-peak", "oom",  "end",
                                        "time", "event",         "phase"};

    return names[at];
}

static const char *missing_name(enum mt_no_answer missing)
{
    static const char *const names[] = {NULL, "no_oom", "no_such_phase", "not_in_history",
                                        "beyond_end"};

    return names[missing];
}

void mt_json_question(struct mt_json *json, const struct mt_question *question)
{
    struct mt_buf by = {0};

    mt_json_object_begin(json, "question");
    mt_json_text(json, "at", question_at_name(question->at));
    if (question->at == MT_AT_TIME || question->at == MT_AT_EVENT)
        mt_json_u64(json, "value", question->value);
    else
        mt_json_text(json, "value", question->at == MT_AT_PHASE ? question->phase : NULL);
    mt_buf_printf(&by, "%s%s%s", mt_group_by_name(question->by), question->member ? "." : "",
                  question->member ? question->member : "");
    mt_json_text(json, "by", by.data);
    mt_json_object_end(json);
    mt_buf_release(&by);
}

static void add_selected_phase(struct mt_json *json, const struct mt_report *report,
                               const struct mt_answer *answer)
{
    if (answer->selected_phase == MT_NO_PHASE) {
        mt_json_null(json, "asked_phase");
        return;
    }
    mt_json_object_begin(json, "asked_phase");
    mt_json_text(json, "path", report->phases[answer->selected_phase].path);
    mt_json_u64(json, "number", answer->selected_number);
    mt_json_u64(json, "count", answer->selected_count);
    mt_json_object_end(json);
}

static void add_rows(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                     const struct mt_answer *answer)
{
    for (struct mt_json_list list = mt_json_lines(json, "rows", answer->row_count);
         mt_json_next(&list);) {
        const struct mt_live_row *row = &answer->rows[list.i];

        mt_json_text(json, "group", row->label);
        mt_json_text(json, "site", row->site);
        mt_json_text(json, "operation", row->operation);
        mt_json_text(json, "phase", row->phase && *row->phase ? row->phase : NULL);
        mt_json_step(json, "step", row->step);
        mt_json_text(json, "role", row->several_roles ? NULL : mt_role_name(row->role));
        mt_json_u64_or_null(json, "block_bytes", row->block_bytes, row->block_bytes);
        mt_json_u64(json, "bytes", row->bytes);
        mt_json_u64(json, "requested_bytes", row->requested_bytes);
        mt_json_u64(json, "blocks", row->blocks);
        mt_json_stack(json, arena, report, row->stack);
        if (row->module) {
            mt_json_object_begin(json, "module");
            mt_json_module(json, row->module);
            mt_json_object_end(json);
        }
    }
}

void mt_json_answer(struct mt_json *json, const struct mt_report *report,
                    const struct mt_answer *answer)
{
    const struct mt_instant *instant = &answer->instant;

    mt_json_object_begin(json, "instant");
    mt_json_u64(json, "t_ns", instant->t_ns);
    mt_json_u64(json, "event", instant->event);
    mt_json_step(json, "step", instant->step);
    mt_json_text(json, "phase", mt_json_path_of(report, instant->phase));
    mt_json_object_end(json);
    add_selected_phase(json, report, answer);
    mt_json_bytes(json, "bytes", &instant->bytes);
    mt_json_object_begin(json, "waiting");
    mt_json_u64(json, "blocks", answer->waiting_blocks);
    mt_json_u64(json, "bytes", answer->waiting_bytes);
    mt_json_u64(json, "requested_bytes", answer->waiting_requested_bytes);
    mt_json_object_end(json);
}

static void add_device(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    mt_json_object_begin(json, NULL);
    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    mt_json_text(json, "missing", missing_name(device->answer->missing));
    if (!device->answer->missing) {
        mt_json_answer(json, report, device->answer);
        add_rows(json, arena, report, device->answer);
    }
    mt_json_object_end(json);
}

void mt_live_json(struct mt_buf *out, const struct mt_live_output *live)
{
    const struct mt_report *report = live->report;
    struct mt_arena arena = {0};
    struct mt_json json;
    struct mt_json_list list;

    mt_json_document(&json, out, "memtrace.live/1", live->all);
    mt_json_input(&json, report);
    mt_json_text(&json, "policy", report->policy);
    mt_json_bool(&json, "roles_inferred", report->roles_inferred);
    mt_json_question(&json, live->question);
    mt_json_objects_begin(&list, &json, "devices", report->device_count);
    for (uint32_t i = 0; i < report->device_count; i++)
        if (live_shows_device(live, &report->devices[i]) && mt_json_list_takes(&list))
            add_device(&json, &arena, report, &report->devices[i]);
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
    mt_arena_release(&arena);
}

/* Adds the question: "the allocated peak", "the peak within step#2/backward". */
static void add_question(struct mt_buf *out, const struct mt_question *question,
                         const struct mt_report *report, const struct mt_answer *answer)
{
    char text[MT_UNITS_TEXT];

    switch (question->at) {
    case MT_AT_PEAK: mt_buf_add_text(out, "the allocated peak"); return;
    case MT_AT_RESERVED_PEAK: mt_buf_add_text(out, "the reserved peak"); return;
    case MT_AT_OOM: mt_buf_add_text(out, "the OOM"); return;
    case MT_AT_END: mt_buf_add_text(out, "the end"); return;
    case MT_AT_TIME: mt_buf_add_text(out, mt_format_duration(text, question->value)); return;
    case MT_AT_EVENT: mt_buf_printf(out, "event %llu", (unsigned long long)question->value); return;
    case MT_AT_PHASE: break;
    }
    mt_buf_printf(out, "the peak within %s",
                  answer->selected_phase == MT_NO_PHASE
                      ? question->phase
                      : report->phases[answer->selected_phase].path);
    if (answer->selected_count > 1)
        mt_buf_printf(out, ", the highest of %s such phases",
                      mt_format_count(text, answer->selected_count));
}

void mt_live_add_instant(struct mt_buf *line, const struct mt_reporter *reporter,
                         const struct mt_question *question)
{
    const struct mt_answer *answer = reporter->device->answer;
    const struct mt_instant *instant = &answer->instant;
    const char *in = mt_reporter_in(reporter, instant->phase, instant->step);
    const char *when = mt_reporter_when(reporter, instant->t_ns);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], asked[MT_UNITS_TEXT];
    bool is_earlier =
        question->at == MT_AT_TIME &&
        strcmp(when, mt_format_duration(asked, question->value)) != 0 &&
        instant->t_ns - reporter->report->first_t_ns + question->half_ns < question->value;

    add_question(line, question, reporter->report, answer);
    mt_buf_printf(line, ": %s allocated (%s B)%s%s, %s ",
                  mt_format_bytes(bytes, instant->bytes.allocated),
                  mt_format_count(exact, instant->bytes.allocated), *in ? " " : "", in,
                  is_earlier ? "unchanged since" : "at");
    if (mt_report_has_times(reporter->report))
        mt_buf_printf(line, "%s, ", when);
    mt_buf_printf(line, "event %llu", (unsigned long long)instant->event);
}

static void report_instant(const struct mt_reporter *reporter, const struct mt_question *question)
{
    struct mt_buf line = {0};

    mt_buf_add_text(&line, "Alive at ");
    mt_live_add_instant(&line, reporter, question);
    mt_reporter_headline(reporter, &line);
}

static const char *const titles[] = {[MT_BY_SITE] = "#bytes|#share|#blocks|role|allocated in|~site",
                                     [MT_BY_ROLE] = "#bytes|#share|#blocks|~role",
                                     [MT_BY_PHASE] = "#bytes|#share|#blocks|role|~allocated in",
                                     [MT_BY_SIZE] =
                                         "#bytes|#share|#blocks|#each|role|~largest site",
                                     [MT_BY_MODULE] = NULL, /* report_modules prints these rows */
                                     [MT_BY_TAG] = "#bytes|#share|#blocks|role|~tag"};
_Static_assert(sizeof titles / sizeof *titles == MT_GROUP_BY_COUNT, "one entry for each");

static const char *birth(const struct mt_reporter *reporter, const struct mt_live_row *row,
                         int64_t spoken_of)
{
    const struct mt_contribution part = {.phase = row->phase, .step = row->step};

    return row->phase ? mt_reporter_birth(reporter, &part, spoken_of) : "several phases";
}

static void add_row(const struct mt_reporter *reporter, struct mt_table *table,
                    const struct mt_live_row *row, enum mt_group_by by)
{
    const struct mt_instant *instant = &reporter->device->answer->instant;
    const char *site = by == MT_BY_SIZE ? row->site : row->label;
    const char *role = row->several_roles ? "several" : mt_role_name(row->role);

    MT_CELLS(table, MT_BYTES(row->bytes), MT_SHARE(row->bytes, instant->bytes.allocated),
             MT_COUNT(row->blocks));
    if (by == MT_BY_SIZE)
        MT_CELLS(table, MT_TEXT(row->label ? row->label : ""));
    if (by != MT_BY_ROLE)
        MT_CELLS(table, MT_TEXT(row->label ? role : ""));
    if (by == MT_BY_SITE)
        MT_CELLS(table, MT_TEXT(row->label ? birth(reporter, row, instant->step) : ""));
    MT_CELLS(table, MT_SITE(row->label ? site : "all others together"));
}

static struct mt_live_row rest_of(const struct mt_answer *answer)
{
    struct mt_live_row rest = {0};

    for (uint32_t i = answer->told_count; i < answer->row_count; i++) {
        rest.bytes += answer->rows[i].bytes;
        rest.blocks += answer->rows[i].blocks;
    }
    return rest;
}

static const char *titles_of(const struct mt_reporter *reporter, const struct mt_question *question)
{
    if (!question->member || strchr(question->member, '|'))
        return titles[question->by];
    return mt_reporter_format(reporter, "%s.%s", titles[question->by], question->member);
}

static void report_rows(const struct mt_reporter *reporter, const struct mt_question *question)
{
    const struct mt_answer *answer = reporter->device->answer;
    struct mt_live_row rest = rest_of(answer);
    enum mt_group_by by = question->by;
    struct mt_table table;

    mt_table_begin(&table, titles_of(reporter, question));
    for (uint32_t i = 0; i < answer->told_count; i++)
        add_row(reporter, &table, &answer->rows[i], by);
    if (rest.blocks)
        add_row(reporter, &table, &rest, by);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* Adds "325 MiB (62.6%), 144 blocks, parameters, allocated in forward", and the stack on the
 * following lines, because a stack is too long for a column. */
static void report_stack_row(const struct mt_reporter *reporter, const struct mt_live_row *row)
{
    const struct mt_instant *instant = &reporter->device->answer->instant;
    char bytes[MT_UNITS_TEXT], share[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s (%s), %s", mt_format_bytes(bytes, row->bytes),
                  mt_format_percent(share, (double)row->bytes / (double)instant->bytes.allocated),
                  mt_format_counted(blocks, row->blocks, "block"));
    if (row->label) {
        mt_buf_printf(&line, ", %s",
                      row->several_roles ? "several roles" : mt_role_name(row->role));
        if (!row->phase || *row->phase)
            mt_buf_printf(&line, ", allocated in %s", birth(reporter, row, instant->step));
    }
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_add_text(reporter->out, "      ");
    mt_text_table_add_wrapped(reporter->out, row->label ? row->label : "all others together", 6, 8);
    mt_buf_add_char(reporter->out, '\n');
    mt_buf_release(&line);
}

static void report_stacks(const struct mt_reporter *reporter)
{
    const struct mt_answer *answer = reporter->device->answer;
    struct mt_live_row rest = rest_of(answer);

    for (uint32_t i = 0; i < answer->told_count; i++)
        report_stack_row(reporter, &answer->rows[i]);
    if (rest.blocks)
        report_stack_row(reporter, &rest);
}

static void add_total(struct mt_table *table, const char *sign, uint64_t bytes, const char *what)
{
    MT_CELLS(table, MT_TEXT(sign), MT_COUNT(bytes), MT_BYTES(bytes), MT_TEXT(what));
}

static void report_totals(const struct mt_reporter *reporter)
{
    const struct mt_answer *answer = reporter->device->answer;
    const struct mt_bytes *bytes = &answer->instant.bytes;
    uint64_t requested = mt_requested_bytes(answer);
    struct mt_table table;

    mt_reporter_heading(reporter, "Total");
    mt_table_begin(&table, "|#bytes|#|~");
    add_total(&table, "", requested, "requested");
    if (bytes->allocated != requested)
        add_total(&table, "+", bytes->allocated - requested,
                  "rounding and remainders that were not split off");
    add_total(&table, "=", bytes->allocated, "allocated: sum of the rows above");
    if (!reporter->report->is_driver_level && bytes->active != bytes->allocated) {
        add_total(&table, "+", bytes->active - bytes->allocated,
                  "freed, but possibly still in use on other streams");
        add_total(&table, "=", bytes->active, "active");
    }
    if (!reporter->report->is_driver_level && mt_knows_reserved(reporter->report)) {
        add_total(&table, "+", bytes->reserved - bytes->active,
                  "unused, but held by the allocator");
        add_total(&table, "=", bytes->reserved, "reserved");
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_device(const struct mt_reporter *reporter, const struct mt_question *question)
{
    const struct mt_device_report *device = reporter->device;

    if (reporter->report->device_count > 1)
        mt_reporter_device_title(reporter);
    if (device->answer->missing) {
        mt_reporter_line(reporter, 0,
                         mt_reporter_format(reporter, "Nothing to show: %s.",
                                            mt_question_no_answer_text(device->answer->missing)));
        return;
    }
    if (mt_lacks_requests(device))
        mt_reporter_missing_requests(reporter);
    report_instant(reporter, question);
    if (question->by == MT_BY_STACK)
        report_stacks(reporter);
    else if (question->by == MT_BY_MODULE)
        mt_reporter_modules(reporter);
    else
        report_rows(reporter, question);
    report_totals(reporter);
}

void mt_live_text(struct mt_buf *out, const struct mt_live_output *live,
                  const struct mt_style *style)
{
    struct mt_arena arena = {0};
    struct mt_reporter reporter = {out, live->report, NULL, style, &arena, NULL};

    mt_reporter_title(&reporter, 0, "");
    if (live->report->device_count == 0)
        mt_buf_add_text(out, live->report->devices_left_out
                                 ? "No memory events of devices 0 to 63.\n"
                                 : "No memory events: nothing was allocated on any device.\n");
    for (uint32_t i = 0; i < live->report->device_count; i++) {
        reporter.device = &live->report->devices[i];
        if (live_shows_device(live, reporter.device))
            report_device(&reporter, live->question);
    }
    mt_arena_release(&arena);
}
