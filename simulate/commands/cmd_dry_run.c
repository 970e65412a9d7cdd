/* memtrace dry-run: runs a command on a simulated device and prints how much memory it needs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assumption.h"
#include "backends.h"
#include "dry_run_annex.h"
#include "dry_run_answer.h"
#include "foreign_text.h"
#include "gate_run.h"
#include "outputs.h"
#include "picture_option.h"
#include "process_memory.h"
#include "simulated_run.h"
#include "sweep_chart.h"
#include "sweep_output.h"
#include "sweep_runs.h"
#include "temporary_folder.h"
#include "util.h"

struct dry_run {
    struct mt_simulated_run simulated;
    struct mt_common common;
    struct mt_gate_options gates;
    struct mt_gate_run gate_run;
    struct mt_outputs outputs;
    struct mt_sweep_arguments sweep;
    const char *device, *timeout;
    struct mt_text_list changes;  /* of --apply */
    struct mt_buf apply, command; /* command: words for a shell */
};

/* Whether the text is a number such as 1, 1.3 or 12.25: the Python part reads it. */
static bool is_factor(const char *text)
{
    enum { MAX_DIGITS = 3 };
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;

    return whole >= 1 && whole <= MAX_DIGITS && part <= MAX_DIGITS && text[0] != '0' &&
           !text[whole + (part ? part + 1 : 0)];
}

static int check_imbalance(const struct dry_run *dry_run)
{
    const char *text = dry_run->simulated.imbalance;

    if (!text || is_factor(text))
        return -1;
    mt_message("option '--imbalance' needs a factor of at least 1, such as 1.3, not '%s'", text);
    return MT_EXIT_USAGE;
}

int mt_dry_run_find_card(const char *option, const char *name, const struct mt_card **card)
{
    const char *near;

    *card = mt_card_find(name, &near);
    if (*card)
        return -1;
    if (near)
        mt_message("option '--%s': '%s' does not name one card; did you mean '%s'?", option, name,
                   near);
    else
        mt_message("option '--%s': no card is called '%s'; 'memtrace dry-run --help' lists them",
                   option, name);
    return MT_EXIT_USAGE;
}

int mt_dry_run_read_timeout(const char *text, uint64_t *timeout_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const char *at = text;
    uint64_t number = 0;
    bool fits = true;

    if (!at)
        return -1;
    for (; *at >= '0' && *at <= '9' && fits; at++)
        fits = mt_mul_ok(number, 10, &number) && mt_add_ok(number, (uint64_t)(*at - '0'), &number);
    for (size_t i = 0; i < MT_ARRAY_LEN(units) && fits && number; i++)
        if (!strcmp(at, units[i].unit) && mt_mul_ok(number, units[i].ms, timeout_ms))
            return -1;
    mt_message("option '--timeout' needs seconds or a time such as 90s, 10m or 2h, not '%s'", text);
    return MT_EXIT_USAGE;
}

static void add_command(struct mt_buf *out, char **words)
{
    for (size_t i = 0; words[i]; i++) {
        mt_buf_add_text(out, i ? " " : "");
        mt_buf_add_shell_value(out, words[i]);
    }
}

static struct mt_dry_run_answer answer_of(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = mt_simulated_run_answer(&dry_run->simulated);

    answer.common = &dry_run->common;
    answer.gates = &dry_run->gates;
    answer.gate_run = &dry_run->gate_run;
    if (!dry_run->command.length)
        add_command(&dry_run->command, dry_run->simulated.recording.command);
    if (!dry_run->apply.length) /* a change replaces others */
        answer.command = dry_run->command.data;
    return answer;
}

static int answer(struct dry_run *dry_run)
{
    const struct mt_simulated_run *run = &dry_run->simulated;
    const struct mt_assuming assuming = {.first = run,
                                         .common = &dry_run->common,
                                         .tells = !dry_run->common.quiet && !dry_run->common.json};
    struct mt_dry_run_answer answer = answer_of(dry_run);
    struct mt_sweep_result measured;

    if (answer.timed_out)
        mt_message("'%s' was ended because it was still running after --timeout %s",
                   run->recording.command[0], dry_run->timeout);
    if (mt_assume_of_answer(&assuming, &answer, &measured))
        answer.measured = &measured;
    return mt_report_dry_run_answer(&answer);
}

/* Returns -1 or an exit code. */
static int refuse_hopeless(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = answer_of(dry_run);
    uint64_t least_bytes = mt_simulated_run_lacks(&dry_run->simulated);

    answer.was_not_run = true;
    return least_bytes ? mt_dry_run_print_too_small(&answer, least_bytes) : -1;
}

/* Prints what the user will look at: for minutes, nothing but the program's own output tells that
 * its kernels do nothing. And which Python was found, in case it is the wrong one. */
static void say_site(const struct dry_run *dry_run)
{
    const struct mt_simulated_site *site = mt_simulated_run_site(&dry_run->simulated);

    if (dry_run->common.quiet || dry_run->common.json || !site)
        return;
    mt_message("dry run on a simulated %s, whose kernels compute nothing",
               dry_run->simulated.card->name);
    mt_message("PyTorch %s of %s (from %s)", site->torch_version, site->python, site->python_from);
}

/* Also fills what the answer says about the simulated device. */
int mt_sweep_check_first(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                         struct mt_simulated_run *run)
{
    struct mt_sweep *sweep = &plan->sweep;

    sweep->card = arguments->each->card;
    sweep->devices = mt_sweep_devices(arguments, &sweep->runs[0]);
    sweep->memory_bytes = mt_simulated_memory_bytes(arguments->each);
    *run = *arguments->each;
    run->recording.command = mt_sweep_plan_command(plan, &plan->sweep.runs[0]);
    run->names_python = !arguments->common->quiet && !arguments->common->json;
    return mt_simulated_run_check(run);
}

static bool is_table(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.sweep/") ||
           mt_file_begins_json(start, length, "{\"schema\":\"memtrace.plan/");
}

static const struct mt_file_kind table_kind = {.name = "a table of dry runs by memtrace",
                                               .is_own = is_table};

static const struct {
    const char *ending;
    const struct mt_file_kind *kind;
} answer_files[] = {{"json", &table_kind}, {"svg", &mt_file_svg}, {"png", &mt_file_png}};

/* Path of "sweep.json" and so on in the folder of -o. */
static char *path_in(struct mt_sweep_plan *plan, const char *folder, size_t file)
{
    struct mt_buf path = {0};
    char *copy;

    mt_outputs_add_path(&path, folder, plan->wishes->stem);
    mt_buf_printf(&path, ".%s", answer_files[file].ending);
    copy = mt_arena_text(&plan->arena, path.data, path.length);
    mt_buf_release(&path);
    return copy;
}

static bool is_written(size_t file)
{
    return answer_files[file].kind != &mt_file_png || mt_png_available(NULL);
}

int mt_sweep_prepare_folder(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    const char *folder = arguments->each->recording.output;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_output_file_make_folders(folder, &error) != MT_OK)
        return mt_report_output_error(folder, &error);
    for (size_t i = 0; !code && i < MT_ARRAY_LEN(answer_files); i++)
        if (is_written(i))
            code = mt_output_precheck(path_in(plan, folder, i), arguments->outputs,
                                      answer_files[i].kind);
    return code ? code : mt_sweep_precheck_logs(plan, folder, arguments->outputs);
}

enum { SHOWN_LOGS = 3 }; /* the last lines of this many failed runs are printed */

static bool is_unexpected(const struct mt_sweep_result *result)
{
    return result->outcome == MT_SWEEP_FAILED || result->outcome == MT_SWEEP_NOT_RUN ||
           result->outcome == MT_SWEEP_TIMED_OUT;
}

void mt_sweep_show_failures(const struct mt_sweep_request *request)
{
    const struct mt_sweep *sweep = &request->plan->sweep;
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (is_unexpected(&run->result) && count++ < SHOWN_LOGS)
            mt_sweep_log_show(request, run);
    }
    if (count > SHOWN_LOGS)
        mt_message("%zu more run%s failed%s", count - SHOWN_LOGS,
                   count == SHOWN_LOGS + 1 ? "" : "s",
                   request->keeps_traces ? "" : "; to keep their output, use -o DIR");
}

/* Writes the picture as SVG, and as PNG if this memtrace can write PNGs. */
static int write_pictures(const struct mt_sweep_request *request, const struct mt_sweep *drawn)
{
    const struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;
    int code = MT_EXIT_OK;

    mt_sweep_draw(drawn, &options, &drawing);
    for (size_t i = 1; !code && i < MT_ARRAY_LEN(answer_files); i++) {
        struct mt_picture picture = {.output = path_in(request->plan, request->folder, i),
                                     .outputs = request->arguments->outputs,
                                     .is_png = answer_files[i].kind == &mt_file_png};
        size_t bytes;

        if (is_written(i))
            code = mt_picture_write(&picture, &drawing, &bytes);
    }
    mt_drawing_release(&drawing);
    return code;
}

int mt_sweep_write_files(const struct mt_sweep_request *request, const struct mt_buf *json,
                         const struct mt_sweep *drawn)
{
    const char *path = path_in(request->plan, request->folder, 0);
    int code = mt_outputs_write(path, request->arguments->outputs, answer_files[0].kind, json);

    return code ? code : write_pictures(request, drawn);
}

static struct mt_dry_run_answer dry_run_sweep_answer_of(const struct mt_sweep_request *request,
                                                        const struct mt_sweep_run *run)
{
    const struct mt_sweep_arguments *shared = request->arguments;
    const struct mt_sweep_result *result = &run->result;

    return (struct mt_dry_run_answer){.card = shared->each->card,
                                      .devices = mt_sweep_devices(shared, run),
                                      .memory_bytes = mt_simulated_memory_bytes(shared->each),
                                      .has_limit = shared->each->limit_bytes,
                                      .exit_status = result->exit_status,
                                      .signal = result->signal,
                                      .timed_out = result->outcome == MT_SWEEP_TIMED_OUT,
                                      .imbalance = shared->each->imbalance,
                                      .common = (struct mt_common *)shared->common,
                                      .gates = (struct mt_gate_options *)shared->gates};
}

/* Prints the full answer for the process with the largest reserved peak of all ranks. Call it after
 * the table is printed. Returns an exit code. The exit code of the rank is in its result. */
static int report_worst_rank(const struct mt_sweep_request *request)
{
    const struct mt_sweep_run *run = mt_sweep_worst(&request->plan->sweep);
    struct mt_dry_run_answer answer;
    struct mt_dry_run_trace trace = {.path = NULL};
    struct mt_dry_run_notes notes = {0};
    struct mt_gate_run unchecked = {.has_base = false}; /* printed already */

    if (!run)
        return MT_EXIT_OK;
    trace.path =
        mt_arena_printf(&request->plan->arena, "%s/%s", request->folder, run->result.trace);
    notes.fake_groups = run->result.fake_groups;
    notes.exchanged_counts = run->result.exchanged_counts;
    answer = dry_run_sweep_answer_of(request, run);
    answer.notes = &notes;
    answer.measured = &run->result;
    answer.traces = &trace;
    answer.trace_count = 1;
    answer.gate_run = &unchecked;
    (void)mt_report_dry_run_answer(&answer);
    return MT_EXIT_OK;
}

int mt_sweep_exit_code(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.exit_code)
            return sweep->runs[i].result.exit_code;
    return MT_EXIT_OK;
}

static int print_result(const struct mt_sweep_request *request)
{
    const struct mt_sweep_arguments *arguments = request->arguments;
    struct mt_sweep_plan *plan = request->plan;
    struct mt_buf out = {0};
    int code = MT_EXIT_OK, printed;

    mt_sweep_show_failures(request);
    if (request->keeps_traces) {
        mt_sweep_add_json(&out, plan, true);
        code = mt_sweep_write_files(request, &out, &plan->sweep);
        mt_buf_release(&out);
    }
    if (arguments->common->json)
        mt_sweep_add_json(&out, plan, request->keeps_traces);
    else
        mt_sweep_add_text(&out, &plan->sweep);
    printed = mt_print_answer_and_release(&out, arguments->common->json);
    if (!printed && plan->sweep.world && !arguments->common->json)
        printed = report_worst_rank(request);
    return code ? code : printed ? printed : mt_sweep_exit_code(&plan->sweep);
}

int mt_sweep_choose_folder(struct mt_sweep_request *request, struct mt_temporary_folder *temporary)
{
    const char *output = request->arguments->each->recording.output;

    request->keeps_traces = output;
    request->folder = output;
    if (output)
        return -1;
    if (!mt_temporary_folder_new(temporary, "memtrace-sweep")) {
        mt_message(
            "cannot create a folder for the traces in $TMPDIR: %s; to name a folder, use -o DIR",
            strerror(errno));
        return MT_EXIT_OUTPUT;
    }
    request->folder = temporary->path;
    return -1;
}

/* Returns -1 or an exit code. */
static int prepare(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    struct mt_simulated_run *first;
    int code = mt_sweep_plan_make(plan, &arguments->wishes);

    if (code < 0)
        code = mt_sweep_plan_add_all(plan);
    if (code >= 0)
        return code;
    first = mt_memory_new(sizeof *first); /* too large for a small stack */
    code = mt_sweep_check_first(arguments, plan, first);
    mt_simulated_run_release(first);
    free(first);
    return code < 0 && arguments->each->recording.output ? mt_sweep_prepare_folder(arguments, plan)
                                                         : code;
}

static int dry_run_sweep(struct mt_sweep_arguments *arguments)
{
    struct mt_sweep_plan plan;
    struct mt_sweep_request request = {.plan = &plan, .arguments = arguments};
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code;

    arguments->wishes.stem = "sweep";
    code = prepare(arguments, &plan);
    request.needs_traces = code < 0 && plan.sweep.world; /* for the answer about the worst rank */
    if (code < 0)
        code = mt_sweep_choose_folder(&request, &folder);
    if (code < 0)
        code = mt_sweep_run_all(&request);
    if (code < 0)
        code = print_result(&request);
    mt_temporary_folder_remove(&folder);
    mt_sweep_plan_release(&plan);
    return code;
}

static int sweep(struct dry_run *dry_run)
{
    dry_run->sweep.each = &dry_run->simulated;
    dry_run->sweep.gates = &dry_run->gates;
    dry_run->sweep.gate_run = &dry_run->gate_run;
    dry_run->sweep.common = &dry_run->common;
    dry_run->sweep.outputs = &dry_run->outputs;
    dry_run->sweep.wishes.option = "--sweep";
    dry_run->sweep.wishes.most_values = MT_MAX_SWEEP_RUNS;
    dry_run->sweep.wishes.command = dry_run->simulated.recording.command;
    dry_run->sweep.wishes.devices = dry_run->simulated.devices;
    return dry_run_sweep(&dry_run->sweep);
}

/* Returns an exit code. */
static int run(struct dry_run *dry_run)
{
    int code = mt_gate_run_open(&dry_run->gate_run, &dry_run->gates, &dry_run->common);

    if (code)
        return code;
    if (dry_run->sweep.wishes.values.count || dry_run->sweep.wishes.ranks)
        return sweep(dry_run);
    if (!dry_run->simulated.devices)
        dry_run->simulated.devices = 1;
    dry_run->simulated.names_python = !dry_run->common.quiet && !dry_run->common.json;
    code = mt_simulated_run_check(&dry_run->simulated);
    if (code < 0)
        code = refuse_hopeless(dry_run);
    if (code < 0)
        code = mt_simulated_run_prepare(&dry_run->simulated);
    if (code >= 0)
        return code;
    say_site(dry_run);
    code = mt_assumption_finish(&dry_run->simulated);
    return code < 0 ? answer(dry_run) : code;
}

static bool tries_changes(const struct mt_text_list *values)
{
    for (size_t i = 0; i < values->count; i++)
        if (!strncmp(values->items[i], MT_APPLY_NAME "=", strlen(MT_APPLY_NAME "=")))
            return true;
    return false;
}

static int check_sweep(const struct dry_run *dry_run)
{
    const struct mt_sweep_arguments *sweep = &dry_run->sweep;
    const char *wrong = NULL;

    if (sweep->jobs && !sweep->wishes.values.count && !sweep->wishes.ranks)
        wrong = "option '--jobs' needs --sweep or --ranks";
    else if (sweep->wishes.world && !sweep->wishes.ranks)
        wrong = "option '--world' needs --ranks";
    else if (dry_run->changes.count && tries_changes(&sweep->wishes.values))
        wrong = "option '--apply' cannot be combined with --sweep apply=...: name all changes "
                "there, with '+' between them";
    if (wrong)
        mt_message("%s", wrong);
    return wrong ? MT_EXIT_USAGE : -1;
}

static int check_options(struct dry_run *dry_run)
{
    struct mt_recording *recording = &dry_run->simulated.recording;
    int code = mt_dry_run_find_card("device", dry_run->device ? dry_run->device : "H200",
                                    &dry_run->simulated.card);

    if (code < 0)
        code = check_imbalance(dry_run);
    if (code < 0)
        code = mt_dry_run_read_timeout(dry_run->timeout, &recording->timeout_ms);
    if (code < 0 && dry_run->simulated.devices > MT_MAX_SIMULATED_DEVICES) {
        mt_message("option '--devices' must be at most %d", MT_MAX_SIMULATED_DEVICES);
        code = MT_EXIT_USAGE;
    }
    recording->quiet = dry_run->common.quiet;
    recording->json = dry_run->common.json;
    mt_simulated_run_init(&dry_run->simulated);
    if (code < 0)
        code = mt_applied_read(&dry_run->changes, &dry_run->apply);
    dry_run->simulated.apply = dry_run->apply.data;
    return code < 0 ? check_sweep(dry_run) : code;
}

static int parse(const struct mt_command *command, struct dry_run *dry_run, int argc, char **argv)
{
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE|DIR",
         "write the trace to FILE, or one trace per process to DIR",
         &dry_run->simulated.recording.output},
        {"device", 0, MT_OPTION_TEXT, "NAME", "the card to simulate (default: H200)",
         &dry_run->device},
        {"devices", 0, MT_OPTION_POSITIVE, "N", "number of devices (default: 1)",
         &dry_run->simulated.devices},
        MT_LIMIT_OPTION(&dry_run->simulated.limit_bytes,
                        "memory of each device; exit with 1 if the run does not fit"),
        {"timeout", 0, MT_OPTION_TEXT, "TIME",
         "end the command and its processes after this time (90s, 10m, 2h); exit with 124",
         &dry_run->timeout},
        {"max-peak", 0, MT_OPTION_LIST, "METRIC=BYTES",
         "exit with 1 if a peak is larger: requested, allocated, active, reserved, device",
         &dry_run->gates.peaks},
        {"strict", 0, MT_OPTION_FLAG, NULL,
         "with --max-peak: also exit with 1 if a peak may exceed it in another order of addresses",
         &dry_run->gates.strict},
        {"apply", 0, MT_OPTION_LIST, "CHANGE",
         "change the program on paper, such as checkpoint=CLASS; see the reference",
         &dry_run->changes},
        {"sweep", 0, MT_OPTION_LIST, "NAME=VALUES",
         "run once per value, such as batch=1,2,4 or batch=1..64*2; replaces {batch}",
         &dry_run->sweep.wishes.values},
        {"ranks", 0, MT_OPTION_TEXT, "LIST",
         "run these ranks of a distributed run, each alone: 0,1,7 or 0-3 or all",
         &dry_run->sweep.wishes.ranks},
        {"world", 0, MT_OPTION_POSITIVE, "N", "with --ranks: the total number of ranks",
         &dry_run->sweep.wishes.world},
        {"imbalance", 0, MT_OPTION_TEXT, "FACTOR",
         "mixture of experts: the rank receives FACTOR times its share of the tokens (default: 1)",
         &dry_run->simulated.imbalance},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N",
         "with --sweep or --ranks: at most N runs in parallel", &dry_run->sweep.jobs},
        {"once", 0, MT_OPTION_FLAG, NULL,
         "never run the command again to learn how its peaks depend on data and timing",
         &dry_run->simulated.runs_once},
        MT_FORCE_OPTION(dry_run->outputs),
        {"json", 0, MT_OPTION_FLAG, NULL,
         "print one JSON document; output of the command goes to standard error",
         &dry_run->common.json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no notes", &dry_run->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code =
        mt_parse_command(command, options, argc, argv, &dry_run->simulated.recording.command);

    return code < 0 ? check_options(dry_run) : code;
}

static void release(struct dry_run *dry_run)
{
    mt_gate_run_release(&dry_run->gate_run);
    mt_simulated_run_release(&dry_run->simulated);
    mt_buf_release(&dry_run->apply);
    mt_buf_release(&dry_run->command);
}

int mt_cmd_dry_run(const struct mt_command *command, int argc, char **argv)
{
    struct dry_run *dry_run = mt_memory_zeroed(1, sizeof *dry_run);
    int code;

    dry_run->gates.outputs = &dry_run->outputs;
    mt_launch_init(&dry_run->simulated.recording.launch);
    code = parse(command, dry_run, argc, argv);
    if (code < 0) {
        code = run(dry_run);
        if (code ==
            mt_launch_exit_code(&dry_run->simulated.recording.launch)) /* not one of memtrace */
            mt_launch_reraise(&dry_run->simulated.recording.launch);
    }
    release(dry_run);
    free(dry_run);
    return code;
}
