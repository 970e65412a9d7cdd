/* memtrace dry-run of several settings or ranks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "dry_run_sweep.h"
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

enum { SHOWN_LOGS = 3 }; /* the last lines of this many failed runs are printed */

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

static int run(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
               const struct mt_rank *ranks, const char *folder);

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

static struct mt_dry_run_answer answer_of(const struct mt_sweep_request *request,
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
    answer = answer_of(request, &run->result);
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

static int run(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
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

int mt_dry_run_sweep(const struct mt_sweep_arguments *arguments)
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
        code = run(arguments, plan, ranks, output ? output : folder.path);
    mt_temporary_folder_remove(&folder);
    mt_sweep_plan_release(plan);
    free(plan);
    return code;
}

_Static_assert((int)MT_MAX_RANKS == (int)MT_MAX_SWEEP_RUNS, "a run for each rank");
