/* memtrace dry-run: runs a command on a simulated device and prints how much memory it needs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "dry_run_annex.h"
#include "dry_run_answer.h"
#include "gate_run.h"
#include "outputs.h"
#include "picture_option.h"
#include "process_memory.h"
#include "rank.h"
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
};

static int choose_card(const struct mt_command *command, struct dry_run *dry_run)
{
    const char *near;

    dry_run->simulated.card = mt_card_find(dry_run->device ? dry_run->device : "H200", &near);
    if (dry_run->simulated.card)
        return -1;
    if (near)
        mt_message("option '--device': '%s' does not name one card; did you mean '%s'?",
                   dry_run->device, near);
    else
        mt_message("option '--device': no card is called '%s'; 'memtrace %s --help' lists them",
                   dry_run->device, command->name);
    return MT_EXIT_USAGE;
}

/* Reads "90", "90s", "10m", "2h". Returns -1 or an exit code. */
static int read_timeout(struct dry_run *dry_run)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const char *at = dry_run->timeout;
    uint64_t number = 0;
    bool fits = true;

    if (!at)
        return -1;
    for (; *at >= '0' && *at <= '9' && fits; at++)
        fits = mt_mul_ok(number, 10, &number) && mt_add_ok(number, (uint64_t)(*at - '0'), &number);
    for (size_t i = 0; i < MT_ARRAY_LEN(units) && fits && number; i++)
        if (!strcmp(at, units[i].unit) &&
            mt_mul_ok(number, units[i].ms, &dry_run->simulated.recording.timeout_ms))
            return -1;
    mt_message("option '--timeout' needs seconds or a time such as 90s, 10m or 2h, not '%s'",
               dry_run->timeout);
    return MT_EXIT_USAGE;
}

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

static int sweep(struct dry_run *dry_run);

/* By default torchrun starts one process on one node. */
static int choose_world(struct mt_sweep *sweep, const struct mt_rank_arguments *arguments,
                        const struct mt_rank_command *command, uint64_t devices)
{
    uint64_t local = command->local_world, world = arguments->world;
    uint64_t nodes = command->nodes ? command->nodes : 1;

    if (!local)
        local = devices                ? devices
                : world                ? mt_min_u64(world, MT_MAX_SIMULATED_DEVICES)
                : command->is_launched ? 1
                                       : 0;
    if (!world && command->is_launched)
        world = nodes * local;
    if (!world || world > MT_MAX_WORLD) {
        mt_message("option '--ranks' needs '--world N', the total number of ranks, up to %llu",
                   (unsigned long long)MT_MAX_WORLD);
        return MT_EXIT_USAGE;
    }
    if (local > MT_MAX_SIMULATED_DEVICES) {
        mt_message("a node has at most %d simulated devices, not %llu", MT_MAX_SIMULATED_DEVICES,
                   (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    if (command->nodes && world != nodes * local) {
        mt_message(
            "option '--world': torchrun has %llu node%s of %llu rank%s, which are not %llu ranks",
            (unsigned long long)nodes, nodes == 1 ? "" : "s", (unsigned long long)local,
            local == 1 ? "" : "s", (unsigned long long)world);
        return MT_EXIT_USAGE;
    }
    if (world % local) {
        mt_message("option '--world': %llu ranks cannot be divided into nodes of %llu",
                   (unsigned long long)world, (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    sweep->world = world;
    sweep->local_world = local;
    return -1;
}

static int run(struct dry_run *dry_run);

static int answer(struct dry_run *dry_run);

static struct mt_dry_run_answer answer_of(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = mt_simulated_run_answer(&dry_run->simulated);

    answer.common = &dry_run->common;
    answer.gates = &dry_run->gates;
    answer.gate_run = &dry_run->gate_run;
    return answer;
}

static int answer(struct dry_run *dry_run)
{
    const struct mt_simulated_run *run = &dry_run->simulated;
    const struct mt_dry_run_answer answer = answer_of(dry_run);

    if (answer.timed_out)
        mt_message("'%s' was ended because it was still running after --timeout %s",
                   run->recording.command[0], dry_run->timeout);
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

/* Returns an exit code. */
static int run(struct dry_run *dry_run)
{
    int code = mt_gate_run_open(&dry_run->gate_run, &dry_run->gates, &dry_run->common);

    if (code)
        return code;
    if (dry_run->sweep.sweeps.count || dry_run->sweep.rank.ranks)
        return sweep(dry_run);
    dry_run->simulated.names_python = !dry_run->common.quiet && !dry_run->common.json;
    code = mt_simulated_run_check(&dry_run->simulated);
    if (code < 0)
        code = refuse_hopeless(dry_run);
    if (code < 0)
        code = mt_simulated_run_prepare(&dry_run->simulated);
    if (code >= 0)
        return code;
    say_site(dry_run);
    code = mt_simulated_run_finish(&dry_run->simulated);
    return code < 0 ? answer(dry_run) : code;
}

static void add_run(struct mt_sweep_plan *plan, const struct mt_rank *rank)
{
    struct mt_sweep_run *run = &plan->sweep.runs[plan->sweep.run_count++];

    run->values[0] = mt_arena_printf(&plan->arena, "%llu", (unsigned long long)rank->rank);
    run->label = mt_arena_printf(&plan->arena, "rank %s", run->values[0]);
}

/* Makes the runs of the plan, and sets ranks[i] for run i. If each->devices is 0, sets it to the
 * number of ranks of a node. Returns -1, or the exit code after an error message. Release the plan
 * in any case. */
static int rank_plan_make(struct mt_sweep_plan *plan, const struct mt_rank_arguments *arguments,
                          struct mt_simulated_run *each, struct mt_rank ranks[MT_MAX_RANKS])
{
    struct mt_sweep *sweep = &plan->sweep;
    uint64_t numbers[MT_MAX_RANKS];
    struct mt_rank_command command;
    size_t count = 0;
    int code;

    memset(plan, 0, sizeof *plan);
    sweep->names[sweep->name_count++] = "rank";
    code = mt_rank_command_read(&command, each->recording.command, &plan->arena);
    if (code < 0)
        code = choose_world(sweep, arguments, &command, each->devices);
    if (code < 0)
        code = mt_ranks_read(arguments->ranks, sweep->world, numbers, &count);
    if (code >= 0)
        return code;
    plan->command = command.words;
    if (!each->devices)
        each->devices = sweep->local_world;
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct mt_rank){.rank = numbers[i],
                                    .world = sweep->world,
                                    .local_world = sweep->local_world,
                                    .is_launched = command.is_launched};
        add_run(plan, &ranks[i]);
    }
    return -1;
}

/* Reports a fault that affects all runs once, before the first run. */
static int check_first(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    struct mt_simulated_run *run = mt_memory_new(sizeof *run); /* too large for a small stack */
    int code;

    *run = *arguments->each;
    run->recording.command = mt_sweep_plan_command(plan, &plan->sweep.runs[0]);
    run->names_python = !arguments->common->quiet && !arguments->common->json;
    code = mt_simulated_run_check(run);
    mt_simulated_run_release(run);
    free(run);
    return code;
}

static bool is_table(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.sweep/");
}

static const struct mt_file_kind table_kind = {.name = "a table of dry runs by memtrace",
                                               .is_own = is_table};

static const struct {
    const char *name;
    const struct mt_file_kind *kind;
} answer_files[] = {
    {"sweep.json", &table_kind}, {"sweep.svg", &mt_file_svg}, {"sweep.png", &mt_file_png}};

/* Path of one output file in the folder of -o. */
static char *path_in(struct mt_sweep_plan *plan, const char *folder, const char *name)
{
    struct mt_buf path = {0};
    char *copy;

    mt_outputs_add_path(&path, folder, name);
    copy = mt_arena_text(&plan->arena, path.data, path.length);
    mt_buf_release(&path);
    return copy;
}

static bool is_written(size_t file)
{
    return answer_files[file].kind != &mt_file_png || mt_png_available(NULL);
}

/* Creates the folder of -o and checks that its files may be written. Returns -1 or an exit code. */
static int prepare_folder(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    const char *folder = arguments->each->recording.output;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_output_file_make_folders(folder, &error) != MT_OK)
        return mt_report_output_error(folder, &error);
    for (size_t i = 0; !code && i < MT_ARRAY_LEN(answer_files); i++) {
        const char *path = path_in(plan, folder, answer_files[i].name);

        if (is_written(i))
            code = mt_output_precheck(path, arguments->outputs, answer_files[i].kind);
    }
    return code ? code : mt_sweep_precheck_logs(plan, folder, arguments->outputs);
}

/* Returns -1 or an exit code. */
static int prepare(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                   struct mt_rank ranks[MT_MAX_RANKS])
{
    struct mt_simulated_run *each = arguments->each;
    int code = arguments->rank.ranks
                   ? rank_plan_make(plan, &arguments->rank, each, ranks)
                   : mt_sweep_plan_make(plan, &arguments->sweeps, each->recording.command);

    plan->sweep.card = each->card;
    plan->sweep.devices = each->devices;
    plan->sweep.memory_bytes = mt_simulated_memory_bytes(each);
    if (code < 0)
        code = check_first(arguments, plan);
    if (code < 0 && each->recording.output)
        code = prepare_folder(arguments, plan);
    return code;
}

static int run_dry_run_sweep(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                             const struct mt_rank *ranks, const char *folder);

/* Runs all commands, writes the files and prints the answer. Returns the exit code. */
static int dry_run_sweep(const struct mt_sweep_arguments *arguments)
{
    struct mt_sweep_plan *plan = mt_memory_zeroed(1, sizeof *plan);
    const char *output = arguments->each->recording.output;
    struct mt_rank ranks[MT_MAX_RANKS];
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code;

    code = prepare(arguments, plan, ranks);
    if (code < 0 && !output && !mt_temporary_folder_new(&folder, "memtrace-sweep")) {
        mt_message(
            "cannot create a folder for the traces in $TMPDIR: %s; to name a folder, use -o DIR",
            strerror(errno));
        code = MT_EXIT_OUTPUT;
    }
    if (code < 0)
        code = run_dry_run_sweep(arguments, plan, ranks, output ? output : folder.path);
    mt_temporary_folder_remove(&folder);
    mt_sweep_plan_release(plan);
    free(plan);
    return code;
}

static int sweep(struct dry_run *dry_run)
{
    dry_run->sweep.each = &dry_run->simulated;
    dry_run->sweep.gates = &dry_run->gates;
    dry_run->sweep.gate_run = &dry_run->gate_run;
    dry_run->sweep.common = &dry_run->common;
    dry_run->sweep.outputs = &dry_run->outputs;
    return dry_run_sweep(&dry_run->sweep);
}

static int check_sweep(const struct mt_sweep_arguments *sweep)
{
    const char *wrong = NULL;

    if (sweep->jobs && !sweep->sweeps.count && !sweep->rank.ranks)
        wrong = "option '--jobs' needs --sweep or --ranks";
    else if (sweep->rank.world && !sweep->rank.ranks)
        wrong = "option '--world' needs --ranks";
    else if (sweep->rank.ranks && sweep->sweeps.count)
        wrong = "options '--ranks' and '--sweep' cannot be combined";
    if (wrong)
        mt_message("%s", wrong);
    return wrong ? MT_EXIT_USAGE : -1;
}

static int check_options(const struct mt_command *command, struct dry_run *dry_run)
{
    struct mt_recording *recording = &dry_run->simulated.recording;
    int code = choose_card(command, dry_run);

    if (code < 0)
        code = read_timeout(dry_run);
    if (code < 0)
        code = check_imbalance(dry_run);
    if (code < 0 && dry_run->simulated.devices > MT_MAX_SIMULATED_DEVICES) {
        mt_message("option '--devices' must be at most %d", MT_MAX_SIMULATED_DEVICES);
        code = MT_EXIT_USAGE;
    }
    if (!dry_run->simulated.devices && !dry_run->sweep.rank.ranks)
        dry_run->simulated.devices = 1;
    recording->quiet = dry_run->common.quiet;
    recording->json = dry_run->common.json;
    mt_simulated_run_init(&dry_run->simulated);
    return code < 0 ? check_sweep(&dry_run->sweep) : code;
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
        {"sweep", 0, MT_OPTION_LIST, "NAME=VALUES",
         "run once per value, such as batch=1,2,4 or batch=1..64*2; replaces {batch}",
         &dry_run->sweep.sweeps},
        {"ranks", 0, MT_OPTION_TEXT, "LIST",
         "run these ranks of a distributed run, each alone: 0,1,7 or 0-3 or all",
         &dry_run->sweep.rank.ranks},
        {"world", 0, MT_OPTION_POSITIVE, "N", "with --ranks: the total number of ranks",
         &dry_run->sweep.rank.world},
        {"imbalance", 0, MT_OPTION_TEXT, "FACTOR",
         "mixture of experts: the rank receives FACTOR times its share of the tokens (default: 1)",
         &dry_run->simulated.imbalance},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N",
         "with --sweep or --ranks: at most N runs in parallel", &dry_run->sweep.jobs},
        MT_FORCE_OPTION(dry_run->outputs),
        {"json", 0, MT_OPTION_FLAG, NULL,
         "print one JSON document; output of the command goes to standard error",
         &dry_run->common.json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no notes", &dry_run->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code =
        mt_parse_command(command, options, argc, argv, &dry_run->simulated.recording.command);

    return code < 0 ? check_options(command, dry_run) : code;
}

static void release(struct dry_run *dry_run)
{
    mt_gate_run_release(&dry_run->gate_run);
    mt_simulated_run_release(&dry_run->simulated);
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

/* Runs memtrace dry-run --sweep after the options are parsed.
 *
 * Memtrace dry-run of several settings or ranks. */

enum { SHOWN_LOGS = 3 }; /* the last lines of this many failed runs are printed */

static bool is_unexpected(const struct mt_sweep_result *result)
{
    return result->outcome == MT_SWEEP_FAILED || result->outcome == MT_SWEEP_NOT_RUN ||
           result->outcome == MT_SWEEP_TIMED_OUT;
}

/* Without -o, the output of these runs is kept nowhere else. */
static void show_failures(const struct mt_sweep_request *request)
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

static int write_json(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    const char *path = path_in(plan, arguments->each->recording.output, answer_files[0].name);
    struct mt_buf out = {0};
    int code;

    mt_sweep_add_json(&out, plan, true);
    code = mt_outputs_write(path, arguments->outputs, answer_files[0].kind, &out);
    mt_buf_release(&out);
    return code;
}

/* Writes sweep.svg, and sweep.png if this memtrace can write PNGs. */
static int write_pictures(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan)
{
    const struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;
    int code = MT_EXIT_OK;

    mt_sweep_draw(&plan->sweep, &options, &drawing);
    for (size_t i = 1; !code && i < MT_ARRAY_LEN(answer_files); i++) {
        struct mt_picture picture = {
            .output = path_in(plan, arguments->each->recording.output, answer_files[i].name),
            .outputs = arguments->outputs,
            .is_png = answer_files[i].kind == &mt_file_png};
        size_t bytes;

        if (is_written(i))
            code = mt_picture_write(&picture, &drawing, &bytes);
    }
    mt_drawing_release(&drawing);
    return code;
}

static char *path_of_trace(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    return mt_arena_printf(&request->plan->arena, "%s/%s", request->folder, run->result.trace);
}

static struct mt_dry_run_answer dry_run_sweep_answer_of(const struct mt_sweep_request *request,
                                                        const struct mt_sweep_result *result)
{
    const struct mt_sweep_arguments *shared = request->arguments;

    return (struct mt_dry_run_answer){.card = shared->each->card,
                                      .devices = shared->each->devices,
                                      .memory_bytes = mt_simulated_memory_bytes(shared->each),
                                      .has_limit = shared->each->limit_bytes,
                                      .exit_status = result->exit_status,
                                      .signal = result->signal,
                                      .timed_out = result->outcome == MT_SWEEP_TIMED_OUT,
                                      .common = (struct mt_common *)shared->common,
                                      .gates = (struct mt_gate_options *)shared->gates};
}

/* Prints the full answer for the process with the largest reserved peak of all ranks. Call it after
 * the table is printed. Returns an exit code. The exit code of the rank is in its result. */
static int report_worst_rank(const struct mt_sweep_request *request)
{
    const struct mt_sweep_run *run = mt_sweep_worst(&request->plan->sweep);
    char *path = run ? path_of_trace(request, run) : NULL;
    struct mt_dry_run_answer answer;
    struct mt_dry_run_trace trace = {.path = path};
    struct mt_dry_run_notes notes = {0};
    struct mt_gate_run unchecked = {.has_base = false}; /* printed already */

    if (!run)
        return MT_EXIT_OK;
    notes.sizes = run->result.sizes_from_data;
    notes.decisions = run->result.decisions_from_data;
    answer = dry_run_sweep_answer_of(request, &run->result);
    answer.notes = &notes;
    answer.traces = &trace;
    answer.trace_count = 1;
    answer.gate_run = &unchecked;
    (void)mt_report_dry_run_answer(&answer);
    return MT_EXIT_OK;
}

/* Returns the exit code of the first run that failed, or MT_EXIT_OK. */
static int exit_code_of(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.exit_code)
            return sweep->runs[i].result.exit_code;
    return MT_EXIT_OK;
}

static int print_result(const struct mt_sweep_request *request)
{
    const struct mt_sweep_arguments *arguments = request->arguments;
    struct mt_buf out = {0};
    int code = MT_EXIT_OK, printed;

    show_failures(request);
    if (request->keeps_traces)
        code = write_json(arguments, request->plan);
    if (!code && request->keeps_traces)
        code = write_pictures(arguments, request->plan);
    if (arguments->common->json)
        mt_sweep_add_json(&out, request->plan, request->keeps_traces);
    else
        mt_sweep_add_text(&out, &request->plan->sweep);
    printed = mt_print_answer_and_release(&out, arguments->common->json);
    if (!printed && request->ranks && !arguments->common->json)
        printed = report_worst_rank(request);
    return code ? code : printed ? printed : exit_code_of(&request->plan->sweep);
}

static int run_dry_run_sweep(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                             const struct mt_rank *ranks, const char *folder)
{
    const struct mt_sweep_request request = {.plan = plan,
                                             .arguments = arguments,
                                             .folder = folder,
                                             .ranks = arguments->rank.ranks ? ranks : NULL,
                                             .keeps_traces = arguments->each->recording.output};
    int code = mt_sweep_run_all(&request);

    return code < 0 ? print_result(&request) : code;
}

_Static_assert((int)MT_MAX_RANKS == (int)MT_MAX_SWEEP_RUNS, "a run for each rank");
