/* memtrace dry-run: runs a command on a simulated device, and says what it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector_library.h"
#include "dry_run.h"
#include "dry_run_answer.h"
#include "card_costs.h"
#include "memory_limit.h"
#include "process_tree.h"
#include "recording.h"
#include "simulated_site.h"
#include "units.h"
#include "util.h"

/* Beside the program, or in the lib folder beside its own (collector_library.h). */
#define SIMULATED_LIBRARY "libmemtrace-simulated-cuda.so"
#define PYTHON_SHIM       "memtrace-python"

enum { MAX_DEVICES = 8 }; /* as simulate/driver/simulated_driver.h */

struct dry_run {
    struct mt_recording recording;
    struct mt_common common;
    struct mt_gate_options gates;
    struct mt_gate_run gate_run;
    struct mt_outputs outputs;
    const char *device, *timeout;
    uint64_t devices, limit_bytes;
    const struct mt_card *card;
    struct mt_site site;
    struct mt_dry_run_notes notes;
    char *notes_path;
    struct mt_buf fact; /* of the trace's header */
    struct mt_dry_run_trace *traces;
    size_t trace_count;
    bool failed; /* no memory */
};

static int choose_card(const struct mt_command *command, struct dry_run *dry_run)
{
    const char *near;

    dry_run->card = mt_card_find(dry_run->device ? dry_run->device : "H200", &near);
    if (dry_run->card)
        return -1;
    if (near)
        mt_say("option '--device': no card, or more than one, is called '%s'; did you mean '%s'?",
               dry_run->device, near);
    else
        mt_say("option '--device': no card is called '%s'; 'memtrace %s --help' lists them",
               dry_run->device, command->name);
    return MT_EXIT_USAGE;
}

/* "90", "90s", "10m", "2h"; -1 or an exit code. */
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
            mt_mul_ok(number, units[i].ms, &dry_run->recording.timeout_ms))
            return -1;
    mt_say("option '--timeout' wants seconds, or a time such as 90s, 10m or 2h, not '%s'",
           dry_run->timeout);
    return MT_EXIT_USAGE;
}

static int check_options(const struct mt_command *command, struct dry_run *dry_run)
{
    struct mt_recording *recording = &dry_run->recording;
    int code = choose_card(command, dry_run);

    if (code < 0)
        code = read_timeout(dry_run);
    if (code < 0 && dry_run->devices > MAX_DEVICES) {
        mt_say("option '--devices' goes up to %d", MAX_DEVICES);
        code = MT_EXIT_USAGE;
    }
    if (!dry_run->devices)
        dry_run->devices = 1;
    recording->quiet = dry_run->common.quiet;
    recording->json = dry_run->common.json;
    recording->is_simulated = true;
    recording->settings.auto_stacks = true;
    recording->settings.phases = "nvtx,torch";
    recording->settings.follow = true;
    recording->settings.quiet = dry_run->common.quiet;
    return code;
}

static int parse(const struct mt_command *command, struct dry_run *dry_run, int argc, char **argv)
{
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE|DIR", "write the trace, or one a process, here",
         &dry_run->recording.output},
        {"device", 0, MT_OPTION_TEXT, "NAME", "the card to simulate (default: H200)",
         &dry_run->device},
        {"devices", 0, MT_OPTION_POSITIVE, "N", "how many of them (default: 1)", &dry_run->devices},
        {"limit", 0, MT_OPTION_BYTES, "BYTES",
         "memory of each device; exit with 1 if the run does not fit", &dry_run->limit_bytes},
        {"timeout", 0, MT_OPTION_TEXT, "TIME",
         "end the command and all its processes after 90s, 10m, 2h; exit with 124",
         &dry_run->timeout},
        {"max-peak", 0, MT_OPTION_LIST, "METRIC=BYTES",
         "exit with 1 if a peak is larger: requested, allocated, active, reserved, device",
         &dry_run->gates.peaks},
        {"json", 0, MT_OPTION_FLAG, NULL,
         "print one JSON document; the command's output goes to standard error",
         &dry_run->common.json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "no notes", &dry_run->common.quiet},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    char **arguments;
    int end, count, start = mt_find_command(options, argc, argv, &end), code;

    code = mt_options_parse(command, options, end, argv, 0, 0, &arguments, &count);
    if (code >= 0)
        return code;
    if (start >= argc)
        return mt_missing_argument(command);
    dry_run->recording.command = argv + start;
    return check_options(command, dry_run);
}

/* The environment has simulated libraries already: of tests, and of an image that was made with
 * them. */
static bool has_own_site(void)
{
    const char *site = getenv("MEMTRACE_DRY_RUN_SITE");

    return site && !strcmp(site, "own");
}

static int prepare_site(struct dry_run *dry_run)
{
    char library[PATH_MAX], shim[PATH_MAX];
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const struct mt_site_request request = {.command = dry_run->recording.command,
                                            .simulated_library = library,
                                            .python_shim_folder = shim};

    if (has_own_site())
        return -1;
    /* without the shim programs take other branches: their peaks would be wrong */
    if (mt_collector_library(SIMULATED_LIBRARY, library, &error) == MT_OK &&
        mt_collector_library(PYTHON_SHIM, shim, &error) == MT_OK &&
        mt_site_prepare(&request, &dry_run->site, &error) == MT_OK)
        return -1;
    mt_say("no dry run: %s", error.text);
    return error.status == MT_ERR_OUTPUT ? MT_EXIT_OUTPUT : MT_EXIT_USAGE;
}

static uint64_t memory_bytes(const struct dry_run *dry_run)
{
    return dry_run->limit_bytes ? dry_run->limit_bytes : dry_run->card->memory_bytes;
}

static int prepare_fact(struct dry_run *dry_run)
{
    struct mt_dry_run fact = {.devices = dry_run->devices, .memory_bytes = memory_bytes(dry_run)};

    snprintf(fact.card, sizeof fact.card, "%s", dry_run->card->name);
    mt_dry_run_write(&fact, &dry_run->fact);
    return dry_run->fact.failed ? mt_say_no_memory("cannot run the command") : -1;
}

/* NULL: not measured; then the simulated driver has a value of its own. */
static const struct mt_card_cost *cost_of_context(const struct dry_run *dry_run)
{
    return mt_card_cost(dry_run->card->name,
                        (unsigned)strtoul(dry_run->site.cuda_version, NULL, 10), MT_COST_CUDA);
}

/* What was there goes on behind ours. */
static bool set_in_front(const char *name, const char *ours)
{
    const char *old = getenv(name);
    struct mt_buf value = {0};
    bool done;

    if (!*ours)
        return true;
    mt_buf_printf(&value, old && *old ? "%s:%s" : "%s", ours, old);
    done = value.data && !value.failed && !setenv(name, value.data, 1);
    mt_buf_release(&value);
    return done;
}

static bool set_number(const char *name, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return !setenv(name, text, 1);
}

static bool set_context(const struct dry_run *dry_run)
{
    const struct mt_card_cost *cost = cost_of_context(dry_run);

    return !cost || set_number("MEMTRACE_SIMULATED_CONTEXT", cost->most_bytes);
}

/* In the command's process. */
static bool set_environment(void *context)
{
    const struct dry_run *dry_run = context;
    const struct mt_site *site = &dry_run->site;

    if (dry_run->common.json)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return set_in_front("LD_PRELOAD", site->preload) &&
           set_in_front("PYTHONPATH", site->python_path) &&
           (!*site->cupti || !setenv("MEMTRACE_CUPTI", site->cupti, 1)) &&
           (!dry_run->notes_path || !setenv("MEMTRACE_DRY_RUN_NOTES", dry_run->notes_path, 1)) &&
           !setenv("MEMTRACE_DRY_RUN", "1", 1) &&
           !setenv("MEMTRACE_DRY_RUN_FACT", dry_run->fact.data, 1) &&
           !setenv("MEMTRACE_SIMULATED_DEVICE", dry_run->card->name, 1) && set_context(dry_run) &&
           set_number("MEMTRACE_SIMULATED_DEVICES", dry_run->devices) &&
           set_number("MEMTRACE_SIMULATED_MEMORY", memory_bytes(dry_run));
}

static void note_trace(void *context, const struct mt_trace_end *end)
{
    struct dry_run *dry_run = context;
    bool is_readable = end->state == MT_TRACE_WHOLE || end->state == MT_TRACE_RECOVERED ||
                       end->state == MT_TRACE_INCOMPLETE;
    struct mt_dry_run_trace *grown;

    if (!is_readable || !end->summary.events)
        return;
    grown = realloc(dry_run->traces, (dry_run->trace_count + 1) * sizeof *grown);
    if (!grown) {
        dry_run->failed = true;
        return;
    }
    dry_run->traces = grown;
    dry_run->traces[dry_run->trace_count++] =
        (struct mt_dry_run_trace){strdup(end->path), end->summary.reserved_peak_bytes};
    dry_run->failed |= !dry_run->traces[dry_run->trace_count - 1].path;
}

static int answer(struct dry_run *dry_run)
{
    const struct mt_launch *launch = &dry_run->recording.launch;
    const struct mt_dry_run_answer answer = {.card = dry_run->card,
                                             .devices = dry_run->devices,
                                             .memory_bytes = memory_bytes(dry_run),
                                             .has_limit = dry_run->limit_bytes,
                                             .exit_status = mt_launch_exit_code(launch),
                                             .timed_out = launch->timed_out,
                                             .notes = &dry_run->notes,
                                             .traces = dry_run->traces,
                                             .trace_count = dry_run->trace_count,
                                             .common = &dry_run->common,
                                             .gates = &dry_run->gates,
                                             .gate_run = &dry_run->gate_run};

    if (launch->timed_out)
        mt_say("'%s' did not end in %s and was ended", dry_run->recording.command[0],
               dry_run->timeout);
    if (dry_run->failed)
        return mt_say_no_memory("cannot list the traces");
    return mt_tell_dry_run_answer(&answer);
}

/* Less than CUDA itself takes: no context can be made. */
static bool is_hopeless(const struct dry_run *dry_run)
{
    const struct mt_card_cost *cost = cost_of_context(dry_run);
    char bytes[2][MT_UNITS_TEXT];

    if (!cost || memory_bytes(dry_run) > cost->least_bytes)
        return false;
    mt_say("OUT OF MEMORY on paper: %s is less than the %s that CUDA itself takes of an %s",
           mt_format_bytes(bytes[0], memory_bytes(dry_run)),
           mt_format_bytes(bytes[1], cost->least_bytes), dry_run->card->name);
    return true;
}

/* The command has its terminal, its signals and its standard input; -1 or an exit code. */
static int run(struct dry_run *dry_run)
{
    struct mt_recording *recording = &dry_run->recording;
    int code = mt_gate_run_open(&dry_run->gate_run, &dry_run->gates, &dry_run->common);

    if (code)
        return code;
    code = mt_recording_check_command(recording);
    if (code < 0)
        code = prepare_site(dry_run);
    if (code < 0 && is_hopeless(dry_run))
        code = MT_EXIT_BUDGET;
    if (code < 0)
        code = prepare_fact(dry_run);
    if (code < 0)
        code = mt_recording_prepare(recording);
    if (code >= 0)
        return code;
    mt_dry_run_notes_open(&dry_run->notes);
    dry_run->notes_path = mt_dry_run_notes_path(&dry_run->notes);
    if (recording->timeout_ms)
        mt_process_tree_keep();
    recording->before = set_environment;
    recording->context = dry_run;
    code = mt_recording_run(recording);
    if (code < 0)
        (void)mt_recording_finish(recording, note_trace, dry_run);
    mt_dry_run_notes_close(&dry_run->notes);
    return code < 0 ? answer(dry_run) : code;
}

static void release(struct dry_run *dry_run)
{
    for (size_t i = 0; i < dry_run->trace_count; i++)
        free(dry_run->traces[i].path);
    free(dry_run->traces);
    free(dry_run->notes_path);
    mt_buf_release(&dry_run->fact);
    mt_gate_run_release(&dry_run->gate_run);
    mt_recording_release(&dry_run->recording);
}

int mt_cmd_dry_run(const struct mt_command *command, int argc, char **argv)
{
    struct dry_run *dry_run = calloc(1, sizeof *dry_run);
    int code;

    if (!dry_run)
        return mt_say_no_memory("cannot run the command");
    dry_run->gates.outputs = &dry_run->outputs;
    mt_launch_init(&dry_run->recording.launch);
    code = parse(command, dry_run, argc, argv);
    if (code < 0) {
        code = run(dry_run);
        if (code == mt_launch_exit_code(&dry_run->recording.launch)) /* no status of our own */
            mt_launch_die_likewise(&dry_run->recording.launch);
    }
    release(dry_run);
    free(dry_run);
    return code;
}
