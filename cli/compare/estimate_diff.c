/* memtrace diff RUN --estimate FILE: an estimate compared with what the run measured. The rows sum
 * to the allocated bytes. What is beyond these follows: memory that the allocator holds, and memory
 * outside of PyTorch. */
#include <string.h>

#include "card_use.h"
#include "diff_output.h"
#include "estimate.h"
#include "gate_run.h"
#include "json.h"
#include "live_output.h"
#include "report_json.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

/* A part of the memory of the card. A sum: of all parts before it. */
struct part {
    const char *what, *label; /* for JSON, for people */
    bool is_sum;
    uint64_t bytes;
};

struct measured {
    struct part parts[7];
    uint32_t count;
    const struct part *levels[MT_ESTIMATE_CARD + 1]; /* NULL: unknown */
    const char *cuda_from; /* mt_card_cuda_name; NULL: `parts` has no memory of CUDA */
    const char *why_more;  /* the measured peaks may be too small: why; or NULL */
};

struct comparison {
    const struct mt_estimate_request *request;
    const struct mt_estimate *estimate;
    const struct mt_question *question;
    const struct mt_report *report;
    struct mt_arena *arena;
    bool all;
};

/* One device. */
struct device_comparison {
    const struct mt_device_report *device;
    struct measured measured;
    const struct part *level; /* what the total is compared with */
    struct mt_estimate_table roles, modules;
};

static const struct part *add_part(struct measured *measured, struct part part)
{
    for (uint32_t i = measured->count; part.is_sum && i-- > 0;) {
        part.bytes += measured->parts[i].bytes;
        if (measured->parts[i].is_sum)
            break;
    }
    measured->parts[measured->count] = part;
    return &measured->parts[measured->count++];
}

static void add_reserved(struct measured *measured, const struct mt_answer *answer)
{
    if (answer->waiting_bytes)
        add_part(measured,
                 (struct part){"waiting", "freed, but possibly still in use on other streams",
                               false, answer->waiting_bytes});
    add_part(measured, (struct part){"unused", "unused, but held by the allocator", false,
                                     mt_unused_bytes(answer)});
    measured->levels[MT_ESTIMATE_RESERVED] =
        add_part(measured, (struct part){"reserved", "reserved", true, 0});
}

/* Memory of CUDA that is only assumed counts if the estimate is about the card. */
static void add_card(const struct comparison *comparison, const struct mt_card_use *use,
                     struct measured *measured)
{
    const bool is_known = use->cuda_from == MT_CUDA_MEASURED || use->cuda_from == MT_CUDA_TABLE,
               has_cuda = is_known || comparison->estimate->compared_with == MT_ESTIMATE_CARD;
    const char *cuda = use->cuda_from == MT_CUDA_MEASURED ? "CUDA itself, measured by NVML"
                       : is_known                         ? "CUDA itself, from a table"
                       : use->libraries_bytes             ? "CUDA itself, assumed"
                                                          : "CUDA and libraries, assumed";

    if (use->libraries_bytes)
        add_part(measured, (struct part){"libraries",
                                         comparison->question->at == MT_AT_PEAK
                                             ? "other libraries"
                                             : "other libraries, at the allocated peak",
                                         false, use->libraries_bytes});
    if (has_cuda) {
        measured->cuda_from = mt_card_cuda_name(use->cuda_from);
        add_part(measured, (struct part){"cuda", cuda, false, use->cuda_bytes});
        measured->levels[MT_ESTIMATE_CARD] =
            add_part(measured, (struct part){"card", "used of the card", true, 0});
    } else if (use->libraries_bytes) {
        add_part(measured, (struct part){"card_without_cuda",
                                         "used of the card, without CUDA itself", true, 0});
    }
}

static void measure(const struct comparison *comparison, const struct mt_device_report *device,
                    struct measured *measured)
{
    const struct mt_answer *answer = device->answer;
    struct mt_card_use use;

    measured->levels[MT_ESTIMATE_ALLOCATED] = add_part(
        measured, (struct part){"allocated", "allocated", true, answer->instant.bytes.allocated});
    if (mt_knows_reserved(comparison->report))
        add_reserved(measured, answer);
    measured->why_more = mt_peaks_doubt(comparison->report, device);
    if (mt_card_use_of(comparison->report, device, &use)) {
        add_card(comparison, &use, measured);
        measured->why_more = use.why_more;
    }
}

static void compare(const struct comparison *comparison, const struct mt_device_report *device,
                    struct device_comparison *one)
{
    int level = (int)comparison->estimate->compared_with;

    *one = (struct device_comparison){.device = device};
    measure(comparison, device, &one->measured);
    while (!one->measured.levels[level])
        level--;
    one->level = one->measured.levels[level];
    mt_estimate_by_role(comparison->arena, comparison->estimate, device->answer, &one->roles);
    if (comparison->estimate->module_count)
        mt_estimate_by_module(comparison->arena, comparison->estimate, device->answer,
                              &one->modules);
}

static bool is_compared(const struct comparison *comparison, const struct mt_device_report *device)
{
    const uint64_t only = comparison->request->device;

    return !device->answer->missing && (only == MT_EVERY_DEVICE || only == device->device);
}

static bool has_role_rows(const struct comparison *comparison)
{
    return comparison->estimate->row_count > comparison->estimate->module_count;
}

/* JSON. */

static void add_roles(struct mt_json *json, unsigned roles)
{
    mt_json_array_begin(json, "roles");
    for (unsigned role = 0; role < MT_ROLE_COUNT; role++)
        if (roles >> role & 1)
            mt_json_text(json, NULL, mt_role_name((enum mt_role)role));
    mt_json_array_end(json);
}

static void add_lines(struct mt_json *json, const char *key, const struct mt_estimate_table *table)
{
    for (struct mt_json_list list = mt_json_lines(json, key, table->count); mt_json_next(&list);) {
        const struct mt_estimate_line *line = &table->lines[list.i];

        if (line->roles)
            add_roles(json, line->roles);
        else
            mt_json_text(json, "module", line->name);
        mt_json_u64_or_null(json, "estimated_bytes", line->is_estimated, line->estimated_bytes);
        mt_json_u64(json, "measured_bytes", line->measured_bytes);
        mt_json_i64(json, "difference", mt_estimate_difference(line));
    }
}

static void add_device(struct mt_json *json, const struct comparison *comparison,
                       const struct mt_device_report *device)
{
    struct device_comparison one;

    compare(comparison, device, &one);
    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    mt_json_answer(json, comparison->report, device->answer);
    mt_json_text(json, "compared_with", one.level->what);
    mt_json_i64(json, "difference",
                (int64_t)(one.level->bytes - comparison->estimate->total_bytes));
    mt_json_array_begin(json, "totals");
    for (uint32_t i = 0; i < one.measured.count; i++) {
        mt_json_row_begin(json);
        mt_json_text(json, "what", one.measured.parts[i].what);
        mt_json_u64(json, "measured_bytes", one.measured.parts[i].bytes);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
    mt_json_text(json, "cuda_from", one.measured.cuda_from);
    mt_json_text(json, "why_more", one.measured.why_more);
    add_lines(json, "roles", &one.roles);
    mt_json_u64(json, "in_no_role_bytes", one.roles.rest_bytes);
    if (comparison->estimate->module_count)
        add_lines(json, "modules", &one.modules);
    else
        mt_json_null(json, "modules");
}

/* Appends a document "memtrace.estimate-diff/1". */
static void estimate_json(struct mt_buf *out, const struct comparison *comparison)
{
    const struct mt_report *report = comparison->report;
    const struct mt_estimate *estimate = comparison->estimate;
    struct mt_json json;
    struct mt_json_list list;

    mt_json_document(&json, out, "memtrace.estimate-diff/1", comparison->all);
    mt_json_object_begin(&json, "estimate");
    mt_json_text(&json, "path", comparison->request->estimate);
    mt_json_text(&json, "source", estimate->source);
    mt_json_text(&json, "compared_with", mt_estimate_level_name(estimate->compared_with));
    mt_json_u64(&json, "total_bytes", estimate->total_bytes);
    mt_json_object_end(&json);
    mt_json_input(&json, report);
    mt_json_text(&json, "policy", report->policy);
    mt_json_bool(&json, "roles_inferred", report->roles_inferred);
    mt_json_question(&json, comparison->question);
    mt_json_objects_begin(&list, &json, "devices", report->device_count);
    for (uint32_t i = 0; i < report->device_count; i++)
        if (is_compared(comparison, &report->devices[i]) && mt_json_list_takes(&list)) {
            mt_json_object_begin(&json, NULL);
            add_device(&json, comparison, &report->devices[i]);
            mt_json_object_end(&json);
        }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

/* Text. */

/* Adds "the allocated peak of 12.2 GiB". */
static void add_level(struct mt_buf *line, const struct device_comparison *one)
{
    const struct mt_device_report *device = one->device;
    const bool is_peak =
        one->level->bytes == (one->level == one->measured.levels[MT_ESTIMATE_ALLOCATED]
                                  ? device->allocated_peak.bytes
                                  : device->reserved_peak.bytes);
    char bytes[MT_UNITS_TEXT];

    mt_format_bytes(bytes, one->level->bytes);
    if (one->level == one->measured.levels[MT_ESTIMATE_CARD])
        mt_buf_printf(line, "the %s that the run uses of the card", bytes);
    else if (is_peak)
        mt_buf_printf(line, "the %s peak of %s", one->level->what, bytes);
    else
        mt_buf_printf(line, "the %s that are %s at this instant", bytes, one->level->what);
}

/* The row, or the part beyond these, that moves the estimate most in the direction of the whole
 * difference. */
static struct mt_estimate_line largest_cause(const struct device_comparison *one,
                                             const struct mt_estimate_table *table, bool is_below)
{
    struct mt_estimate_line largest = {0};

    for (uint32_t i = 0; i < table->count; i++) {
        const struct mt_estimate_line *line = &table->lines[i];

        if (is_below ? mt_estimate_difference(line) > mt_estimate_difference(&largest)
                     : mt_estimate_difference(line) < mt_estimate_difference(&largest))
            largest = *line;
    }
    for (const struct part *part = one->measured.parts; is_below && part < one->level; part++)
        if (!part->is_sum && (int64_t)part->bytes > mt_estimate_difference(&largest))
            largest = (struct mt_estimate_line){.name = part->label, .measured_bytes = part->bytes};
    return largest;
}

static uint64_t size_of(int64_t difference)
{
    return (uint64_t)(difference < 0 ? -difference : difference);
}

/* Adds "; 2.90 GiB of that are activations", or nothing. */
static void add_cause(struct mt_buf *line, const struct comparison *comparison,
                      const struct device_comparison *one, int64_t difference)
{
    const struct mt_estimate_table *table = has_role_rows(comparison) ? &one->roles : &one->modules;
    const struct mt_estimate_line cause = largest_cause(one, table, difference > 0);
    const uint64_t bytes = size_of(mt_estimate_difference(&cause));
    char text[MT_UNITS_TEXT];

    if (!comparison->estimate->row_count || !difference || !bytes)
        return;
    if (difference < 0 && table->rest_bytes > bytes)
        return; /* most of it is in no row */
    mt_format_bytes(text, bytes);
    if (bytes <= size_of(difference))
        mt_buf_printf(line, "; %s of that are %s", text, cause.name);
    else
        mt_buf_printf(line, "; %s alone: %s %s", cause.name, text,
                      difference > 0 ? "below" : "above");
}

static void report_headline(const struct mt_reporter *reporter, const struct comparison *comparison,
                            const struct device_comparison *one)
{
    const int64_t difference = (int64_t)(one->level->bytes - comparison->estimate->total_bytes);
    char bytes[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (comparison->report->device_count > 1)
        mt_buf_printf(&line, "Device %u: the estimate is ", one->device->device);
    else
        mt_buf_add_text(&line, "The estimate is ");
    if (difference)
        mt_buf_printf(&line, "%s %s ", mt_format_bytes(bytes, size_of(difference)),
                      difference > 0 ? "below" : "above");
    else
        mt_buf_add_text(&line, "exactly ");
    add_level(&line, one);
    add_cause(&line, comparison, one, difference);
    mt_reporter_headline(reporter, &line);
}

static void add_exact(struct mt_table *table, const char *sign, uint64_t estimated,
                      uint64_t measured)
{
    char text[MT_UNITS_TEXT + 4];

    MT_CELLS(table, MT_TEXT(sign), MT_COUNT(estimated), MT_COUNT(measured),
             MT_TEXT(mt_exact_change(text, estimated, measured)),
             MT_CHANGE((int64_t)(measured - estimated)));
}

/* "workspace, not in the estimate". Names of modules come last, because they are shortened. */
static const char *label_of(const struct comparison *comparison,
                            const struct mt_estimate_line *line, bool is_split)
{
    const char *where = !line->is_estimated     ? "not in the estimate"
                        : !line->measured_bytes ? "not in the run"
                                                : NULL;

    if (!is_split || !where)
        return line->name;
    return line->roles ? mt_arena_printf(comparison->arena, "%s, %s", line->name, where)
                       : mt_arena_printf(comparison->arena, "%s: %s", where, line->name);
}

/* `is_split`: the estimate has rows of this kind. Otherwise all rows are parts of its total. */
static void add_line(const struct comparison *comparison, struct mt_table *table,
                     const struct mt_estimate_line *line, bool is_split)
{
    const char *sign = mt_table_rows(table) ? "+" : "";

    if (line->is_estimated) {
        add_exact(table, sign, line->estimated_bytes, line->measured_bytes);
    } else {
        MT_CELLS(table, MT_TEXT(sign), MT_TEXT(""), MT_COUNT(line->measured_bytes));
        if (is_split)
            MT_CELLS(table, MT_TEXT(""), MT_CHANGE(mt_estimate_difference(line)));
        else
            mt_table_skip(table, 2);
    }
    MT_CELLS(table, MT_SITE(label_of(comparison, line, is_split)));
}

/* Rows of an estimate always have a line of their own. */
static void add_lines_of(const struct comparison *comparison, struct mt_table *out,
                         const struct mt_estimate_table *table, bool is_split)
{
    enum { MAX_LINES = 16 };
    struct mt_estimate_line others = {.name = "all others together"};
    uint32_t other_count = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct mt_estimate_line *line = &table->lines[i];

        if (comparison->all || i < MAX_LINES || line->is_estimated) {
            add_line(comparison, out, line, is_split);
            continue;
        }
        others.measured_bytes += line->measured_bytes;
        other_count++;
    }
    if (other_count)
        add_line(comparison, out, &others, is_split);
    if (is_split && table->rest_bytes) {
        add_exact(out, "+", table->rest_bytes, 0);
        MT_CELLS(out, MT_TEXT("only in the total of the estimate"));
    }
}

/* The parts beyond the rows. A sum is compared with the total of the estimate. */
static void add_parts(struct mt_table *table, const struct comparison *comparison,
                      const struct part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].is_sum) {
            add_exact(table, "=", comparison->estimate->total_bytes, parts[i].bytes);
        } else {
            MT_CELLS(table, MT_TEXT("+"), MT_TEXT(""), MT_COUNT(parts[i].bytes), MT_TEXT(""),
                     MT_CHANGE((int64_t)parts[i].bytes));
        }
        MT_CELLS(table, MT_TEXT(parts[i].label));
    }
}

static void report_table(const struct mt_reporter *reporter, const struct comparison *comparison,
                         const struct device_comparison *one, bool by_role)
{
    const bool is_split = !by_role || has_role_rows(comparison);
    struct mt_table table;

    mt_reporter_heading(reporter, by_role ? "By role, in bytes" : "By module, in bytes");
    mt_table_begin(&table, "|#estimated|#measured|#difference|#|~");
    add_lines_of(comparison, &table, by_role ? &one->roles : &one->modules, is_split);
    /* of two tables, the first also has what is beyond the allocated bytes */
    add_parts(&table, comparison, one->measured.parts,
              by_role || !has_role_rows(comparison) ? one->measured.count : 1);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_doubts(const struct mt_reporter *reporter, const struct comparison *comparison,
                          const struct device_comparison *one)
{
    if (strcmp(one->level->what, mt_estimate_level_name(comparison->estimate->compared_with)) != 0)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "The estimate is to be compared with '%s', which the "
                               "recording does not show.",
                               mt_estimate_level_name(comparison->estimate->compared_with)));
    if (one->measured.why_more)
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter, "The run may need more than this: %s.",
                                            one->measured.why_more));
}

static void report_device(const struct mt_reporter *reporter, const struct comparison *comparison)
{
    const bool is_first = !reporter->out->length;
    const char *source = comparison->estimate->source;
    struct device_comparison one;
    struct mt_buf line = {0};

    compare(comparison, reporter->device, &one);
    report_headline(reporter, comparison, &one);
    if (is_first)
        mt_reporter_title(reporter, 2, "");
    mt_live_add_instant(&line, reporter, comparison->question);
    mt_reporter_line(reporter, 2, line.data ? line.data : "");
    mt_buf_release(&line);
    if (is_first)
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter, "the estimate: %s%s%s",
                                            comparison->request->estimate, source ? ", from " : "",
                                            source ? source : ""));
    report_doubts(reporter, comparison, &one);
    if (has_role_rows(comparison) || !comparison->estimate->module_count)
        report_table(reporter, comparison, &one, true);
    if (comparison->estimate->module_count)
        report_table(reporter, comparison, &one, false);
}

static void estimate_text(struct mt_buf *out, const struct comparison *comparison,
                          const struct mt_style *style)
{
    const struct mt_report *report = comparison->report;
    struct mt_reporter reporter = {out, report, NULL, style, comparison->arena, NULL};

    if (!report->device_count)
        mt_buf_add_text(out, "No memory events: nothing was allocated on any device.\n");
    for (uint32_t i = 0; i < report->device_count; i++)
        if (is_compared(comparison, &report->devices[i])) {
            if (out->length)
                mt_buf_add_char(out, '\n');
            reporter.device = &report->devices[i];
            report_device(&reporter, comparison);
        }
}

/* The command. */

static int print(const struct mt_question_report *asked, const struct mt_estimate_request *request,
                 const struct mt_common *common, const struct comparison *comparison)
{
    struct mt_buf out = {0};
    int code = mt_question_check(asked, comparison->question, request->device);

    if (code >= 0)
        return code;
    if (common->json)
        estimate_json(&out, comparison);
    else
        estimate_text(&out, comparison, mt_stdout_style());
    return mt_print_answer_and_release(&out, common->json);
}

static int read_estimate(const char *path, struct mt_estimate *estimate)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_settings settings;
    enum mt_status status =
        mt_settings_read_file(path, mt_settings_parse_members, &settings, &error);

    memset(estimate, 0, sizeof *estimate);
    if (!status)
        status = mt_estimate_read(estimate, &settings, &error);
    mt_settings_release(&settings);
    return status ? mt_report_error(path, &error) : MT_EXIT_OK;
}

/* An estimate of reserved memory, or of a card, is about the instant that needs most of these. */
static struct mt_question question_of(const struct mt_estimate_request *request,
                                      const struct mt_estimate *estimate)
{
    struct mt_question question = {.at = MT_AT_PEAK};

    if (request->at)
        question = *request->at;
    else if (estimate->compared_with != MT_ESTIMATE_ALLOCATED)
        question.at = MT_AT_RESERVED_PEAK;
    question.by = estimate->module_count ? MT_BY_MODULE : MT_BY_ROLE;
    question.all = true;
    return question;
}

int mt_estimate_diff(const struct mt_estimate_request *request, const struct mt_common *common)
{
    struct mt_estimate estimate;
    struct mt_question_report asked = {0};
    struct mt_arena arena = {0};
    int code = read_estimate(request->estimate, &estimate);

    if (code) {
        mt_estimate_release(&estimate);
        return code;
    }
    struct mt_question question = question_of(request, &estimate);
    code = mt_question_run_with(
        request->run, common,
        &(struct mt_analyze_options){.path = request->run, .question = &question, .driver = true},
        &asked);
    if (code < 0) {
        const struct comparison comparison = {request,      &estimate, &question,
                                              asked.report, &arena,    common->all};

        code = print(&asked, request, common, &comparison);
        code = mt_answer_verdict(code, asked.source, asked.path, common);
    }
    mt_question_close(&asked);
    mt_arena_release(&arena);
    mt_estimate_release(&estimate);
    return code;
}
