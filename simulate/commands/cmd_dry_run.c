/* memtrace dry-run: runs a command on a simulated device and prints how much memory it needs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assumption.h"
#include "dry_run_annex.h"
#include "dry_run_answer.h"
#include "dry_run_measure.h"
#include "foreign_text.h"
#include "gate_run.h"
#include "process_memory.h"
#include "sweep_output.h"
#include "sweep_runs.h"
#include "temporary_folder.h"

struct dry_run {
    struct mt_run_settings settings;
    struct mt_simulated_run simulated; /* without --sweep and --ranks */
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

static int check_imbalance(const char *text)
{
    if (!text || is_factor(text))
        return -1;
    mt_message("option '--imbalance' needs a factor of at least 1, such as 1.3, not '%s'", text);
    return MT_EXIT_USAGE;
}

static struct mt_dry_run_answer answer_of(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = mt_simulated_run_answer(&dry_run->simulated);

    answer.common = &dry_run->common;
    answer.gates = &dry_run->gates;
    answer.gate_run = &dry_run->gate_run;
    if (!dry_run->command.length)
        mt_buf_add_shell_words(&dry_run->command, (const char *const *)dry_run->settings.command);
    if (!dry_run->apply.length) /* a change replaces others */
        answer.command = dry_run->command.data;
    return answer;
}

static int answer(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = answer_of(dry_run);
    const struct mt_analyze_options options = {.models = MT_MODEL_MODULES,
                                               .command = answer.command};
    struct mt_dry_run_measured measured;

    if (answer.timed_out)
        mt_message("'%s' was ended because it was still running after --timeout %s",
                   dry_run->settings.command[0], dry_run->timeout);
    int code = mt_dry_run_measure(&answer, &options, &measured);
    if (!code) {
        const struct mt_assuming assuming = {.first = &dry_run->simulated,
                                             .common = &dry_run->common,
                                             .path = measured.trace ? measured.trace->path : NULL,
                                             .is_quiet =
                                                 dry_run->common.quiet || dry_run->common.json};

        mt_assume_others(&assuming, &measured.result);
        answer.measured = &measured.result;
        code = mt_dry_run_print_answer(&answer, &measured);
    }
    mt_dry_run_measured_release(&measured);
    return code;
}

/* Returns -1 or an exit code. */
static int refuse_hopeless(struct dry_run *dry_run)
{
    struct mt_dry_run_answer answer = answer_of(dry_run);
    uint64_t least_bytes = mt_simulated_run_lacks(&dry_run->simulated);

    answer.was_not_run = true;
    return least_bytes ? mt_dry_run_print_too_small(&answer, least_bytes) : -1;
}

/* For minutes, nothing but the output of the program is printed, and its kernels compute nothing.
 * The Python that was found may be the wrong one. */
static void say_site(const struct dry_run *dry_run)
{
    const struct mt_simulated_site *site = mt_simulated_run_site(&dry_run->simulated);

    if (dry_run->common.quiet || dry_run->common.json || !site)
        return;
    mt_message("dry run on a simulated %s, whose kernels compute nothing",
               dry_run->settings.card->name);
    mt_message("PyTorch %s of %s (from %s)", site->torch_version, site->python, site->python_from);
}

/* Prints the full answer for the process with the largest reserved peak of all ranks. Call it after
 * the table is printed. Returns an exit code. The exit code of the rank is in its result. */
static int report_worst_rank(const struct mt_sweep_request *request)
{
    const struct mt_sweep_arguments *shared = request->arguments;
    const struct mt_sweep_run *run = mt_sweep_worst(&request->plan->sweep);
    const struct mt_analyze_options options = {.models = MT_MODEL_MODULES};
    struct mt_dry_run_measured measured;
    struct mt_dry_run_trace trace = {.path = NULL};
    struct mt_dry_run_notes notes = {0};
    struct mt_gate_run unchecked = {.has_base = false}; /* printed already */

    if (!run)
        return MT_EXIT_OK;
    trace.path =
        mt_arena_printf(&request->plan->arena, "%s/%s", request->folder, run->result.trace);
    notes.fake_groups = run->result.fake_groups;
    notes.exchanged_counts = run->result.exchanged_counts;
    struct mt_run_settings settings = mt_sweep_settings(request, run);
    struct mt_dry_run_answer answer = mt_run_settings_answer(&settings);
    answer.exit_status = run->result.exit_status;
    answer.signal = run->result.signal;
    answer.timed_out = run->result.outcome == MT_SWEEP_TIMED_OUT;
    answer.notes = &notes;
    answer.measured = &run->result;
    answer.traces = &trace;
    answer.trace_count = 1;
    answer.common = (struct mt_common *)shared->common;
    answer.gates = (struct mt_gate_options *)shared->gates;
    answer.gate_run = &unchecked;
    if (mt_dry_run_measure(&answer, &options, &measured) == MT_EXIT_OK)
        (void)mt_dry_run_print_answer(&answer, &measured);
    mt_dry_run_measured_release(&measured);
    return MT_EXIT_OK;
}

static int print_result(const struct mt_sweep_request *request)
{
    const struct mt_sweep_arguments *arguments = request->arguments;
    struct mt_sweep_plan *plan = request->plan;
    struct mt_buf out = {0};
    int code = MT_EXIT_OK;

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
    int printed = mt_print_answer_and_release(&out, arguments->common->json);
    if (!printed && plan->sweep.world && !arguments->common->json)
        printed = report_worst_rank(request);
    return code ? code : printed ? printed : mt_sweep_exit_code(&plan->sweep);
}

/* Returns -1 or an exit code. */
static int check_first(const struct mt_sweep_request *request)
{
    struct mt_simulated_run *first = mt_memory_new(sizeof *first); /* too large for a small stack */
    int code = mt_sweep_check_first(request, first);

    mt_simulated_run_release(first);
    free(first);
    return code;
}

/* "0,1,7": the ranks of the point of runs[first], which are neighbors. *end: the next point. */
static const char *ranks_of_point(struct mt_sweep_plan *plan, size_t first, size_t *end)
{
    const struct mt_sweep *sweep = &plan->sweep;
    const char *ranks = "";

    for (*end = first;
         *end < sweep->run_count && sweep->runs[*end].point == sweep->runs[first].point; ++*end)
        ranks = mt_arena_printf(&plan->arena, "%s%s%llu", ranks, *end > first ? "," : "",
                                (unsigned long long)sweep->runs[*end].rank.rank);
    return ranks;
}

/* Ranks of a point leave objects to each other in files beside the traces, or in `folder` if these
 * are kept. Returns -1 or an exit code. */
static int connect_ranks(const struct mt_sweep_request *request, struct mt_temporary_folder *folder)
{
    struct mt_sweep *sweep = &request->plan->sweep;

    if (!sweep->world || sweep->run_count < 2)
        return -1;
    if (request->keeps_traces && !mt_temporary_folder_new(folder, "memtrace-ranks")) {
        mt_message("cannot create a folder for the ranks in $TMPDIR: %s", strerror(errno));
        return MT_EXIT_OUTPUT;
    }
    for (size_t first = 0, end; first < sweep->run_count; first = end) {
        const char *ranks = ranks_of_point(request->plan, first, &end);
        const char *objects = mt_arena_printf(
            &request->plan->arena, "%s/objects-%zu",
            request->keeps_traces ? folder->path : request->folder, sweep->runs[first].point);

        for (size_t i = first; i < end; i++) {
            sweep->runs[i].rank.objects = objects;
            sweep->runs[i].rank.companions = ranks;
        }
    }
    return -1;
}

static int dry_run_sweep(struct mt_sweep_arguments *arguments)
{
    struct mt_sweep_plan plan;
    struct mt_sweep_request request = {.plan = &plan, .arguments = arguments};
    struct mt_temporary_folder folder = MT_TEMPORARY_FOLDER_NONE;
    int code = mt_sweep_plan_make(&plan, &arguments->grid);

    if (code < 0)
        code = mt_sweep_plan_add_all(&plan);
    if (code < 0)
        code = check_first(&request);
    if (code < 0)
        code = mt_sweep_choose_folder(&request, &folder);
    request.needs_traces = plan.sweep.world; /* for the answer about the worst rank */
    if (code < 0)
        code = connect_ranks(&request, &folder);
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
    dry_run->sweep.settings = &dry_run->settings;
    dry_run->sweep.gates = &dry_run->gates;
    dry_run->sweep.gate_run = &dry_run->gate_run;
    dry_run->sweep.common = &dry_run->common;
    dry_run->sweep.outputs = &dry_run->outputs;
    dry_run->sweep.grid.option = "--sweep";
    dry_run->sweep.grid.stem = "sweep";
    dry_run->sweep.grid.most_values = MT_MAX_SWEEP_RUNS;
    dry_run->sweep.grid.command = dry_run->settings.command;
    dry_run->sweep.grid.devices = dry_run->settings.devices;
    return dry_run_sweep(&dry_run->sweep);
}

/* Returns an exit code. */
static int run(struct dry_run *dry_run)
{
    int code = mt_gate_run_open(&dry_run->gate_run, &dry_run->gates, &dry_run->common);

    if (code)
        return code;
    if (dry_run->sweep.grid.values.count || dry_run->sweep.grid.ranks)
        return sweep(dry_run);
    if (!dry_run->settings.devices)
        dry_run->settings.devices = 1;
    dry_run->settings.names_python = !dry_run->common.quiet && !dry_run->common.json;
    mt_simulated_run_init(&dry_run->simulated, &dry_run->settings);
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

    if (sweep->jobs && !sweep->grid.values.count && !sweep->grid.ranks)
        wrong = "option '--jobs' needs --sweep or --ranks";
    else if (sweep->grid.world && !sweep->grid.ranks)
        wrong = "option '--world' needs --ranks";
    else if (dry_run->changes.count && tries_changes(&sweep->grid.values))
        wrong = "option '--apply' cannot be combined with --sweep apply=...: name all changes "
                "there, with '+' between them";
    if (wrong)
        mt_message("%s", wrong);
    return wrong ? MT_EXIT_USAGE : -1;
}

static int check_options(struct dry_run *dry_run)
{
    struct mt_run_settings *settings = &dry_run->settings;
    int code =
        mt_dry_run_find_card("device", dry_run->device ? dry_run->device : "H200", &settings->card);

    if (code < 0)
        code = check_imbalance(settings->imbalance);
    if (code < 0)
        code = mt_record_read_time("timeout", dry_run->timeout, &settings->timeout_ms);
    if (code < 0 && settings->devices > MT_MAX_SIMULATED_DEVICES) {
        mt_message("option '--devices' must be at most %d", MT_MAX_SIMULATED_DEVICES);
        code = MT_EXIT_USAGE;
    }
    settings->quiet = dry_run->common.quiet;
    settings->json = dry_run->common.json;
    if (code < 0)
        code = mt_applied_read(&dry_run->changes, &dry_run->apply);
    settings->apply = dry_run->apply.data;
    return code < 0 ? check_sweep(dry_run) : code;
}

static int parse(const struct mt_command *command, struct dry_run *dry_run, int argc, char **argv)
{
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE|DIR",
         "write the trace to FILE, or one trace per process to DIR", &dry_run->settings.output},
        {"device", 0, MT_OPTION_TEXT, "NAME", "the card to simulate (default: H200)",
         &dry_run->device},
        {"devices", 0, MT_OPTION_POSITIVE, "N", "number of devices (default: 1)",
         &dry_run->settings.devices},
        MT_LIMIT_OPTION(&dry_run->settings.limit_bytes,
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
         &dry_run->sweep.grid.values},
        {"ranks", 0, MT_OPTION_TEXT, "LIST",
         "run these ranks of a distributed run, each alone: 0,1,7 or 0-3 or all",
         &dry_run->sweep.grid.ranks},
        {"world", 0, MT_OPTION_POSITIVE, "N", "with --ranks: the total number of ranks",
         &dry_run->sweep.grid.world},
        {"imbalance", 0, MT_OPTION_TEXT, "FACTOR",
         "mixture of experts: the rank receives FACTOR times its share of the tokens (default: 1)",
         &dry_run->settings.imbalance},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N",
         "with --sweep or --ranks: at most N runs in parallel", &dry_run->sweep.jobs},
        {"once", 0, MT_OPTION_FLAG, NULL,
         "never run the command again to learn how its peaks depend on data and timing",
         &dry_run->settings.runs_once},
        MT_FORCE_OPTION(dry_run->outputs),
        {"json", 0, MT_OPTION_FLAG, NULL,
         "print one JSON document; output of the command goes to standard error",
         &dry_run->common.json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no notes", &dry_run->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = mt_parse_command(command, options, argc, argv, &dry_run->settings.command);

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

    dry_run->gates.outputs = &dry_run->outputs;
    mt_run_settings_init(&dry_run->settings);
    int code = parse(command, dry_run, argc, argv);
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
