/* The text of live: the instant, the holders of memory, and exact totals. */
#include "live_output.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

#include <string.h>

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
        question->at == MT_AT_TIME && strcmp(when, mt_format_duration(asked, question->value)) != 0;

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
                                     [MT_BY_MODULE] = NULL}; /* report_modules prints these rows */
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

static void report_rows(const struct mt_reporter *reporter, enum mt_group_by by)
{
    const struct mt_answer *answer = reporter->device->answer;
    struct mt_live_row rest = rest_of(answer);
    struct mt_table table;

    mt_table_begin(&table, titles[by]);
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

    mt_buf_printf(&line, "%s (%s), %s block%s", mt_format_bytes(bytes, row->bytes),
                  mt_format_percent(share, (double)row->bytes / (double)instant->bytes.allocated),
                  mt_format_count(blocks, row->blocks), row->blocks == 1 ? "" : "s");
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
    if (!reporter->report->is_driver_level) {
        if (bytes->active != bytes->allocated) {
            add_total(&table, "+", bytes->active - bytes->allocated,
                      "freed, but possibly still in use on other streams");
            add_total(&table, "=", bytes->active, "active");
        }
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
        report_rows(reporter, question->by);
    report_totals(reporter);
}

void mt_live_text(struct mt_buf *out, const struct mt_live_output *live,
                  const struct mt_style *style)
{
    struct mt_arena arena = {0};
    struct mt_reporter reporter = {out, live->report, NULL, style, &arena, &mt_detail_all, NULL};

    mt_reporter_title(&reporter, 0, "");
    if (live->report->device_count == 0)
        mt_buf_add_text(out, live->report->devices_left_out
                                 ? "No memory events of devices 0 to 63.\n"
                                 : "No memory events: nothing was allocated on any device.\n");
    for (uint32_t i = 0; i < live->report->device_count; i++) {
        reporter.device = &live->report->devices[i];
        if (mt_live_shows_device(live, reporter.device))
            report_device(&reporter, live->question);
    }
    mt_arena_release(&arena);
}
