/* memtrace diff: compares the memory of two runs. */
#include <string.h>
#include <sys/stat.h>

#include "diff_output.h"
#include "diff_run.h"
#include "instant_option.h"
#include "json.h"
#include "live_output.h"
#include "report_html.h"
#include "report_json.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

struct arguments {
    struct mt_common common;
    struct mt_question question;
    struct mt_picture picture;
    struct mt_outputs outputs;
    uint64_t device;
    const char *a, *b, *estimate;
    bool is_folder; /* -o names a folder, not a picture */
};

static int print(struct mt_diff_run *run, const struct arguments *arguments);
static int write_folder(struct mt_diff_run *run, const struct arguments *arguments);

/* The output is one JSON document, so no message announces the picture. */
static int draw(const struct mt_diff_run *run, const struct arguments *arguments)
{
    const struct mt_common no_options = {0};

    return mt_diff_picture(run, &arguments->question, &arguments->picture, &no_options);
}

static int diff(const struct arguments *arguments)
{
    const struct mt_diff_request request = {arguments->a, arguments->b, &arguments->question,
                                            arguments->device,
                                            arguments->is_folder ? mt_diff_html_models() : 0};
    struct mt_diff_run run;
    int code = mt_diff_run_open(&request, &arguments->common, &run);

    if (code < 0) {
        code = print(&run, arguments);
        if (code == MT_EXIT_OK && arguments->is_folder)
            code = write_folder(&run, arguments);
        else if (code == MT_EXIT_OK && arguments->picture.output)
            code = draw(&run, arguments);
        code = mt_diff_run_verdict(&run, &arguments->common, code);
    }
    mt_diff_run_close(&run);
    return code;
}

static void add_runs(struct mt_json *json, const struct mt_diff *diff)
{
    mt_json_array_begin(json, "run_differences");
    for (size_t i = 0; i < diff->run_count; i++) {
        mt_json_row_begin(json);
        mt_json_text(json, "what", diff->runs[i].what);
        mt_json_text(json, "a", diff->runs[i].a);
        mt_json_text(json, "b", diff->runs[i].b);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
}

static void add_side(struct mt_json *json, const char *key, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    mt_json_answer(json, report, device->answer);
    mt_json_object_end(json);
}

static void add_change(struct mt_json *json, uint64_t a, uint64_t b)
{
    mt_json_u64(json, "a_bytes", a);
    mt_json_u64(json, "b_bytes", b);
    mt_json_i64(json, "change", (int64_t)(b - a));
}

/* Parts of the reserved bytes. The parts of A plus the changes are the parts of B. */
static void add_totals(struct mt_json *json, const struct mt_device_diff *diff)
{
    const struct mt_answer *a = diff->a->answer, *b = diff->b->answer;
    const struct {
        const char *what;
        uint64_t a, b;
    } parts[] = {{"requested", mt_requested_bytes(a), mt_requested_bytes(b)},
                 {"rounding", a->instant.bytes.allocated - mt_requested_bytes(a),
                  b->instant.bytes.allocated - mt_requested_bytes(b)},
                 {"allocated", a->instant.bytes.allocated, b->instant.bytes.allocated},
                 {"waiting", a->waiting_bytes, b->waiting_bytes},
                 {"unused", mt_unused_bytes(a), mt_unused_bytes(b)},
                 {"reserved", a->instant.bytes.reserved, b->instant.bytes.reserved}};

    mt_json_array_begin(json, "totals");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        mt_json_row_begin(json);
        mt_json_text(json, "what", parts[i].what);
        add_change(json, parts[i].a, parts[i].b);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
}

/* Rows that changed, the largest first. The others and the unchanged rows have one line each. */
struct listed {
    uint32_t told;
    struct mt_diff_row others, same;
    uint32_t other_count, same_count;
};

enum { MAX_ROWS = 14 };

static void add_to(struct mt_diff_row *sum, const struct mt_diff_row *row)
{
    sum->a_bytes += row->a_bytes;
    sum->b_bytes += row->b_bytes;
    sum->a_blocks += row->a_blocks;
    sum->b_blocks += row->b_blocks;
}

static struct listed list(const struct mt_diff_rows *rows, bool all)
{
    struct listed listed = {.others = {.label = "all others together", .phase = ""},
                            .same = {.label = "unchanged", .phase = ""}};
    uint32_t changed = 0;

    while (changed < rows->count && mt_diff_change(&rows->rows[changed]))
        changed++;
    listed.told = all || changed <= MAX_ROWS ? changed : MAX_ROWS - 1;
    for (uint32_t i = listed.told; i < changed; i++, listed.other_count++)
        add_to(&listed.others, &rows->rows[i]);
    for (uint32_t i = changed; i < rows->count; i++, listed.same_count++)
        add_to(&listed.same, &rows->rows[i]);
    return listed;
}

static void add_row(struct mt_json *json, const char *key, const char *label,
                    const struct mt_diff_row *row)
{
    mt_json_text(json, key, label);
    add_change(json, row->a_bytes, row->b_bytes);
    mt_json_u64(json, "a_blocks", row->a_blocks);
    mt_json_u64(json, "b_blocks", row->b_blocks);
}

static void add_free_uses(struct mt_json *json, const struct mt_diff_rows *rows)
{
    for (struct mt_json_list list = mt_json_lines(json, "unused", rows->count);
         mt_json_next(&list);) {
        mt_json_text(json, "what", rows->rows[list.i].label);
        add_change(json, rows->rows[list.i].a_bytes, rows->rows[list.i].b_bytes);
        mt_json_u64(json, "a_segments", rows->rows[list.i].a_blocks);
        mt_json_u64(json, "b_segments", rows->rows[list.i].b_blocks);
    }
}

static void add_rows(struct mt_json *json, const struct mt_device_diff *diff)
{
    for (struct mt_json_list list = mt_json_lines(json, "roles", diff->roles.count);
         mt_json_next(&list);)
        add_row(json, "role", diff->roles.rows[list.i].label, &diff->roles.rows[list.i]);
    for (struct mt_json_list list = mt_json_lines(json, "phases", diff->phases.count);
         mt_json_next(&list);) {
        const char *phase = diff->phases.rows[list.i].label;

        add_row(json, "phase", *phase ? phase : NULL, &diff->phases.rows[list.i]);
    }
    for (struct mt_json_list list = mt_json_lines(json, "sites", diff->sites.count);
         mt_json_next(&list);) {
        const struct mt_diff_row *row = &diff->sites.rows[list.i];

        add_row(json, "site", row->label, row);
        mt_json_text(json, "site_in_a", row->label_a);
        mt_json_bool(json, "moved", row->moved);
        mt_json_text(json, "phase", *row->phase ? row->phase : NULL);
        mt_json_text(json, "role", row->several_roles ? NULL : mt_role_name(row->role));
        mt_json_text(json, "only_in", !row->a_blocks ? "b" : !row->b_blocks ? "a" : NULL);
    }
}

/* Appends a document "memtrace.diff/1". */
static void diff_json(struct mt_buf *out, const struct mt_diff_output *output)
{
    const struct mt_diff *diff = output->diff;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.diff/1", output->all);
    mt_json_object_begin(&json, "a");
    mt_json_input(&json, diff->a);
    mt_json_text(&json, "policy", diff->a->policy);
    mt_json_object_end(&json);
    mt_json_object_begin(&json, "b");
    mt_json_input(&json, diff->b);
    mt_json_text(&json, "policy", diff->b->policy);
    mt_json_object_end(&json);
    mt_json_bool(&json, "roles_inferred", diff->a->roles_inferred || diff->b->roles_inferred);
    mt_json_question(&json, output->question);
    add_runs(&json, diff);
    for (struct mt_json_list row = mt_json_objects(&json, "devices", diff->device_count);
         mt_json_next(&row);) {
        add_side(&json, "a", diff->a, diff->devices[row.i].a);
        add_side(&json, "b", diff->b, diff->devices[row.i].b);
        add_totals(&json, &diff->devices[row.i]);
        add_free_uses(&json, &diff->devices[row.i].free_uses);
        add_rows(&json, &diff->devices[row.i]);
    }
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

static void report_inputs(const struct mt_reporter *reporter, const struct mt_diff *diff)
{
    struct mt_reporter one = *reporter;

    mt_buf_add_text(reporter->out, "A  ");
    one.report = diff->a;
    mt_reporter_title(&one, 0, "");
    mt_buf_add_text(reporter->out, "B  ");
    one.report = diff->b;
    mt_reporter_title(&one, 0, "");
    for (size_t i = 0; i < diff->run_count; i++) {
        const struct mt_run_difference *run = &diff->runs[i];

        mt_reporter_line(reporter, 0,
                         mt_reporter_format(reporter, "The runs differ in %s: %s in A, %s in B.",
                                            run->what, run->a, run->b));
    }
}

static const char *why_left_out(const struct mt_diff *diff, const struct mt_device_report *device,
                                bool of_a)
{
    const struct mt_report *other = of_a ? diff->b : diff->a;

    if (device->answer->missing)
        return mt_question_no_answer_text(device->answer->missing);
    for (uint32_t i = 0; i < other->device_count; i++)
        if (other->devices[i].device == device->device)
            return of_a ? "the device of B has no such instant"
                        : "the device of A has no such instant";
    return of_a ? "B has no such device" : "A has no such device";
}

/* Prints the devices of one side that are not compared, and why. */
static void report_left_out(const struct mt_reporter *reporter, const struct mt_diff *diff,
                            bool of_a)
{
    const struct mt_report *report = of_a ? diff->a : diff->b;

    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];
        bool told = diff->only != MT_EVERY_DEVICE && diff->only != device->device;

        for (size_t j = 0; j < diff->device_count; j++)
            told |= (of_a ? diff->devices[j].a : diff->devices[j].b) == device;
        if (!told)
            mt_reporter_line(reporter, 0,
                             mt_reporter_format(reporter, "Device %u of %s is not compared: %s.",
                                                device->device, of_a ? "A" : "B",
                                                why_left_out(diff, device, of_a)));
    }
}

/* "+12.0 MiB allocated (+12,582,912 B), −1.00 GiB reserved (−1,073,741,824 B)" */
static void report_headline(const struct mt_reporter *reporter, const struct mt_device_diff *device,
                            bool has_reserved)
{
    const struct mt_bytes *a = &device->a->answer->instant.bytes;
    const struct mt_bytes *b = &device->b->answer->instant.bytes;
    char change[MT_UNITS_TEXT], exact[MT_UNITS_TEXT + 4];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "From A to B: %s allocated (%s B)",
                  mt_format_change(change, (int64_t)(b->allocated - a->allocated)),
                  mt_exact_change(exact, a->allocated, b->allocated));
    if (has_reserved)
        mt_buf_printf(&line, ", %s reserved (%s B)",
                      mt_format_change(change, (int64_t)(b->reserved - a->reserved)),
                      mt_exact_change(exact, a->reserved, b->reserved));
    mt_reporter_headline(reporter, &line);
}

static void report_instant(const struct mt_reporter *reporter, const char *side,
                           const struct mt_question *question, const struct mt_report *report,
                           const struct mt_device_report *device)
{
    struct mt_reporter one = *reporter;
    struct mt_buf line = {0};

    one.report = report;
    one.device = device;
    mt_buf_printf(&line, "%s: ", side);
    mt_live_add_instant(&line, &one, question);
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

static bool is_same(const struct mt_device_diff *device)
{
    const struct mt_answer *a = device->a->answer, *b = device->b->answer;

    return !memcmp(&a->instant.bytes, &b->instant.bytes, sizeof a->instant.bytes) &&
           (!device->roles.count || !mt_diff_change(&device->roles.rows[0])) &&
           (!device->phases.count || !mt_diff_change(&device->phases.rows[0])) &&
           (!device->sites.count || !mt_diff_change(&device->sites.rows[0])) &&
           (!device->free_uses.count || !mt_diff_change(&device->free_uses.rows[0]));
}

static void add_exact(struct mt_table *table, const char *sign, uint64_t a, uint64_t b)
{
    char text[MT_UNITS_TEXT + 4];

    MT_CELLS(table, MT_TEXT(sign), MT_COUNT(a), MT_TEXT(mt_exact_change(text, a, b)), MT_COUNT(b));
}

static void add_labeled(struct mt_table *table, const char *sign, uint64_t a, uint64_t b,
                        const char *label)
{
    add_exact(table, sign, a, b);
    MT_CELLS(table, MT_CHANGE((int64_t)(b - a)), MT_TEXT(label));
}

/* There are few roles, so all of them are printed. */
static void report_roles(const struct mt_reporter *reporter, const struct mt_device_diff *device)
{
    const struct mt_answer *a = device->a->answer, *b = device->b->answer;
    struct mt_table table;

    mt_reporter_heading(reporter, "By role, in bytes");
    mt_table_begin(&table, "|#A|#change|#B|#|~");
    for (uint32_t i = 0; i < device->roles.count; i++)
        add_labeled(&table, i ? "+" : "", device->roles.rows[i].a_bytes,
                    device->roles.rows[i].b_bytes, device->roles.rows[i].label);
    add_labeled(&table, "=", a->instant.bytes.allocated, b->instant.bytes.allocated, "allocated");
    add_labeled(&table, "", mt_requested_bytes(a), mt_requested_bytes(b), "  requested");
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* "36", "36 → 24" */
static const char *block_counts(const struct mt_reporter *reporter, const struct mt_diff_row *row)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT];

    mt_format_count(a, row->a_blocks);
    mt_format_count(b, row->b_blocks);
    return row->a_blocks == row->b_blocks ? mt_reporter_format(reporter, "%s", a)
                                          : mt_reporter_format(reporter, "%s → %s", a, b);
}

static void add_free_use(const struct mt_reporter *reporter, struct mt_table *table,
                         const struct mt_diff_row *row)
{
    add_exact(table, "+", row->a_bytes, row->b_bytes);
    MT_CELLS(table, MT_TEXT(block_counts(reporter, row)), MT_TEXT(row->label));
}

/* What the allocator holds: blocks, and free memory in segments. */
static void report_reserved(const struct mt_reporter *reporter, const struct mt_device_diff *device,
                            bool all)
{
    const struct mt_answer *a = device->a->answer, *b = device->b->answer;
    const struct mt_diff_rows *rows = &device->free_uses;
    const uint32_t shown = all || rows->count <= MAX_ROWS ? rows->count : MAX_ROWS - 1;
    struct mt_diff_row others = {.label = "all others together"};
    struct mt_table table;

    mt_reporter_heading(reporter, "Reserved, in bytes");
    mt_table_begin(&table, "|#A|#change|#B|#segments|~");
    add_exact(&table, "", a->instant.bytes.allocated, b->instant.bytes.allocated);
    MT_CELLS(&table, MT_TEXT(""), MT_TEXT("allocated"));
    if (a->waiting_bytes || b->waiting_bytes) {
        add_exact(&table, "+", a->waiting_bytes, b->waiting_bytes);
        MT_CELLS(&table, MT_TEXT(""), MT_TEXT("freed, but possibly still in use on other streams"));
    }
    for (uint32_t i = 0; i < shown; i++)
        add_free_use(reporter, &table, &rows->rows[i]);
    for (uint32_t i = shown; i < rows->count; i++)
        add_to(&others, &rows->rows[i]);
    if (shown < rows->count)
        add_free_use(reporter, &table, &others);
    add_exact(&table, "=", a->instant.bytes.reserved, b->instant.bytes.reserved);
    MT_CELLS(&table, MT_TEXT(""), MT_TEXT("reserved"));
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void add_amounts(const struct mt_reporter *reporter, struct mt_table *table,
                        const struct mt_diff_row *row)
{
    MT_CELLS(table, MT_CHANGE(mt_diff_change(row)), MT_BYTES(row->a_bytes), MT_BYTES(row->b_bytes),
             MT_TEXT(block_counts(reporter, row)));
}

static void report_phases(const struct mt_reporter *reporter, const struct mt_diff_rows *rows,
                          bool all)
{
    struct listed listed = list(rows, all);
    struct mt_table table;

    if (!listed.told)
        return;
    mt_reporter_heading(reporter, "By the phase in which blocks were allocated");
    mt_table_begin(&table, "#change|#A|#B|#blocks|~allocated in");
    for (uint32_t i = 0; i < listed.told; i++) {
        add_amounts(reporter, &table, &rows->rows[i]);
        MT_CELLS(&table, MT_TEXT(*rows->rows[i].label ? rows->rows[i].label : "no phase"));
    }
    if (listed.other_count) {
        add_amounts(reporter, &table, &listed.others);
        MT_CELLS(&table, MT_TEXT(listed.others.label));
    }
    if (listed.same_count) {
        add_amounts(reporter, &table, &listed.same);
        MT_CELLS(&table, MT_TEXT(listed.same.label));
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static const char *mark(const struct mt_diff_row *row)
{
    return !row->a_blocks ? "new" : !row->b_blocks ? "gone" : row->moved ? "moved" : "";
}

static void add_site(const struct mt_reporter *reporter, struct mt_table *table,
                     const struct mt_diff_row *row, bool is_sum)
{
    add_amounts(reporter, table, row);
    if (is_sum)
        mt_table_skip(table, 3);
    else
        MT_CELLS(table, MT_TEXT(mark(row)),
                 MT_TEXT(row->several_roles ? "several" : mt_role_name(row->role)),
                 MT_TEXT(*row->phase ? row->phase : "no phase"));
    MT_CELLS(table, MT_SITE(row->label));
}

static void report_sites(const struct mt_reporter *reporter, const struct mt_diff_rows *rows,
                         bool all)
{
    struct listed listed = list(rows, all);
    struct mt_table table;

    if (!listed.told)
        return;
    mt_reporter_heading(reporter, "By site");
    mt_table_begin(&table, "#change|#A|#B|#blocks||role|allocated in|~site");
    for (uint32_t i = 0; i < listed.told; i++)
        add_site(reporter, &table, &rows->rows[i], false);
    if (listed.other_count)
        add_site(reporter, &table, &listed.others, true);
    if (listed.same_count)
        add_site(reporter, &table, &listed.same, true);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_device(const struct mt_reporter *reporter, const struct mt_diff_output *output,
                          const struct mt_device_diff *device)
{
    const struct mt_diff *diff = output->diff;
    bool has_reserved = mt_knows_reserved(diff->a) && mt_knows_reserved(diff->b);

    if (diff->device_count > 1 || device->a->device != device->b->device)
        mt_buf_printf(reporter->out, "\n%sDevice %u of A, device %u of B%s\n",
                      reporter->style->bold, device->a->device, device->b->device,
                      reporter->style->reset);
    report_headline(reporter, device, has_reserved);
    report_instant(reporter, "A", output->question, diff->a, device->a);
    report_instant(reporter, "B", output->question, diff->b, device->b);
    if (is_same(device)) {
        mt_reporter_line(reporter, 0, "The two are equal.");
        return;
    }
    report_roles(reporter, device);
    if (has_reserved)
        report_reserved(reporter, device, output->all);
    report_phases(reporter, &device->phases, output->all);
    report_sites(reporter, &device->sites, output->all);
}

static void diff_text(struct mt_buf *out, const struct mt_diff_output *output,
                      const struct mt_style *style)
{
    const struct mt_diff *diff = output->diff;
    struct mt_reporter reporter = {out, diff->a, NULL, style, output->arena, NULL};

    report_inputs(&reporter, diff);
    if (!diff->device_count)
        mt_buf_add_text(out, "No device has memory events in both.\n");
    report_left_out(&reporter, diff, true);
    report_left_out(&reporter, diff, false);
    for (size_t i = 0; i < diff->device_count; i++)
        report_device(&reporter, output, &diff->devices[i]);
}

static int print(struct mt_diff_run *run, const struct arguments *arguments)
{
    const struct mt_diff_output output = {&run->diff, &arguments->question, &run->arena,
                                          arguments->common.all};
    struct mt_buf out = {0};

    if (arguments->common.json)
        diff_json(&out, &output);
    else
        diff_text(&out, &output, mt_stdout_style());
    return mt_print_answer_and_release(&out, arguments->common.json);
}

static struct mt_diff_folder folder_of(const struct arguments *arguments)
{
    return (struct mt_diff_folder){arguments->picture.output, &arguments->outputs};
}

/* Writes the folder, and prints the names of its files after the text answer. */
static int write_folder(struct mt_diff_run *run, const struct arguments *arguments)
{
    const struct mt_diff_output output = {&run->diff, &arguments->question, &run->arena,
                                          arguments->common.all};
    const struct mt_diff_folder folder = folder_of(arguments);
    struct mt_buf answer = {0}, names = {0};

    diff_text(&answer, &output, mt_plain_style());
    mt_buf_add_text(&names, "\nFiles\n");
    int code = mt_diff_folder_write(&folder, run, &arguments->question, answer.data, &names);
    if (!code && !arguments->common.json)
        code = mt_print_answer(&names, false);
    mt_buf_release(&answer);
    mt_buf_release(&names);
    return code;
}

/* A folder: its name ends in a slash, exists, or has no extension. */
static bool is_folder(const char *path)
{
    const char *name = strrchr(path, '/');
    struct stat found;

    if (stat(path, &found) == 0)
        return S_ISDIR(found.st_mode);
    name = name ? name + 1 : path;
    return !strchr(*name == '.' ? name + 1 : name, '.');
}

static bool check_picture(struct arguments *arguments)
{
    struct mt_picture *picture = &arguments->picture;

    if (!picture->output)
        return true;
    arguments->is_folder = strcmp(picture->output, "-") != 0 && is_folder(picture->output);
    if (arguments->is_folder)
        return true;
    if (strcmp(picture->output, "-") != 0)
        return mt_picture_read(picture, &arguments->common);
    mt_message("diff: -o needs the name of a file; to write to standard output use 'memtrace "
               "render diff A B -o -'");
    return false;
}

static int precheck(const struct arguments *arguments)
{
    const struct mt_diff_folder folder = folder_of(arguments);

    return arguments->is_folder ? mt_diff_folder_precheck(&folder)
                                : mt_picture_precheck(&arguments->picture);
}

static int diff_estimate(const struct arguments *arguments, const char *at)
{
    const struct mt_estimate_request request = {
        arguments->a, arguments->estimate, at ? &arguments->question : NULL, arguments->device};

    if (!arguments->b && !arguments->picture.output)
        return mt_estimate_diff(&request, &arguments->common);
    mt_message(arguments->b ? "diff: --estimate is compared with one run; leave out the second"
                            : "diff: --estimate and -o cannot be combined");
    return MT_EXIT_USAGE;
}

static int diff_runs(struct arguments *arguments)
{
    if (!check_picture(arguments))
        return MT_EXIT_USAGE;
    if (!strcmp(arguments->a, "-") && !strcmp(arguments->b, "-")) {
        mt_message("diff: only one of the two traces can be standard input");
        return MT_EXIT_USAGE;
    }
    arguments->picture.outputs = &arguments->outputs;
    mt_outputs_add_input(&arguments->outputs, arguments->a);
    mt_outputs_add_input(&arguments->outputs, arguments->b);
    int code = precheck(arguments);
    return code ? code : diff(arguments);
}

int mt_cmd_diff(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.device = MT_EVERY_DEVICE};
    const char *at = NULL;
    const struct mt_option options[] = {
        {"at", 0, MT_OPTION_TEXT, "INSTANT",
         "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH", &at},
        MT_DEVICE_OPTION(&arguments.device, "only this device"),
        {"estimate", 0, MT_OPTION_TEXT, "FILE",
         "compare one run with an estimate by role or by module, as JSON", &arguments.estimate},
        {"output", 'o', MT_OPTION_TEXT, "PATH",
         "also draw the difference: .svg or .png; or a folder for a page of both runs",
         &arguments.picture.output},
        MT_FORCE_OPTION(arguments.outputs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 2, &paths, &count);

    if (code >= 0)
        return code;
    if (!mt_question_option_read(at, NULL, &arguments.question))
        return MT_EXIT_USAGE;
    arguments.a = paths[0];
    arguments.b = count == 2 ? paths[1] : NULL;
    if (arguments.estimate)
        return diff_estimate(&arguments, at);
    return arguments.b ? diff_runs(&arguments) : mt_missing_argument(command);
}

/* Text and JSON of diff: the total change, then changes by role, of reserved memory, by phase and
 * site. In every table A's bytes plus the changes are B's bytes. */
