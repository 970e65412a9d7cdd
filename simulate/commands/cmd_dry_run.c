/* memtrace dry-run: runs a command on a simulated device and prints how much memory it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dry_run_annex.h"
#include "dry_run_answer.h"
#include "gate_run.h"
#include "outputs.h"
#include "process_memory.h"
#include "simulated_run.h"
#include "sweep_runs.h"
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
    return mt_dry_run_sweep(&dry_run->sweep);
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
    code = mt_simulated_run_finish(&dry_run->simulated);
    return code < 0 ? answer(dry_run) : code;
}

static int check_sweep(const struct mt_sweep_arguments *sweep)
{
    const char *wrong = NULL;

    if (sweep->jobs && !sweep->wishes.values.count && !sweep->wishes.ranks)
        wrong = "option '--jobs' needs --sweep or --ranks";
    else if (sweep->wishes.world && !sweep->wishes.ranks)
        wrong = "option '--world' needs --ranks";
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
