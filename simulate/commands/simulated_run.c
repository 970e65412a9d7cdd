#include "simulated_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cards.h"
#include "dry_run_annex.h"
#include "environment.h"
#include "header.h"
#include "io.h"
#include "launch.h"
#include "process_memory.h"
#include "python_of_command.h"
#include "record_output.h"

/* Each is next to the program, or in the program's private folder (environment.h). */
#define PYTHON_SHIM "memtrace-python"
#define CUDNN_ASKER "memtrace-ask-cudnn"

void mt_run_settings_init(struct mt_run_settings *settings)
{
    mt_launch_init(&settings->launch);
    settings->input_begin = lseek(STDIN_FILENO, 0, SEEK_CUR) + 1;
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

/* Returns a launch that begins now. What the command inherits is as at the start of memtrace. */
static struct mt_launch launch_now(const struct mt_launch *first)
{
    struct mt_launch launch;

    mt_launch_init(&launch);
    launch.pipe_action = first->pipe_action;
    launch.size_action = first->size_action;
    return launch;
}

void mt_simulated_run_init(struct mt_simulated_run *run, const struct mt_run_settings *settings)
{
    struct mt_recording *recording = &run->recording;

    memset(run, 0, sizeof *run);
    run->settings = *settings;
    recording->command = settings->command;
    recording->output = settings->output;
    recording->quiet = recording->settings.quiet = settings->quiet;
    recording->json = settings->json;
    recording->summarizes = settings->summarizes;
    recording->timeout_ms = settings->timeout_ms;
    recording->launch = launch_now(&settings->launch);
    recording->is_simulated = true;
    recording->settings.auto_stacks = true;
    recording->settings.phases = "nvtx,torch";
    recording->settings.follow = true;
}

void mt_simulated_run_renew(struct mt_simulated_run *run)
{
    const struct mt_run_settings settings = run->settings;

    mt_simulated_run_release(run);
    mt_simulated_run_init(run, &settings);
}

/* Refuses a program into which libraries cannot be loaded, because it and its children would use
 * the real GPU. Returns -1 or an exit code. */
static int refuse_program(const struct mt_recording *recording)
{
    const struct mt_program *program = &recording->program;

    if (program->kind != MT_PROGRAM_OTHER_MACHINE && program->kind != MT_PROGRAM_OTHER_LOADER &&
        program->kind != MT_PROGRAM_SECURE)
        return -1;
    mt_message("cannot do a dry run: '%s' would not get the simulated device: %s%s",
               recording->command[0], mt_program_reason(program),
               program->kind == MT_PROGRAM_SECURE
                   ? "; put memtrace dry-run after it"
                   : "; a dry run needs programs for x86-64 and the GNU C library");
    return MT_EXIT_USAGE;
}

/* Returns true if the environment already has simulated libraries, as in tests, or in a container
 * image that was built with them. */
static bool has_own_site(void)
{
    const char *site = getenv("MEMTRACE_DRY_RUN_SITE");

    return site && !strcmp(site, "own");
}

/* Reports that there are no simulated libraries. If the command does not name its Python (uv,
 * conda), memtrace may find a different Python than the command uses. */
static void say_no_site(const struct mt_simulated_run *run, const struct mt_error *error)
{
    const char *from = run->site.python_from;

    if (error->status != MT_ERR_OUTPUT && *from && strcmp(from, MT_PYTHON_FROM_COMMAND) != 0)
        mt_message(
            "cannot do a dry run: %s; this Python comes from %s; to use another one, activate "
            "its environment or name it in the command",
            error->text, from);
    else
        mt_message("cannot do a dry run: %s", error->text);
}

/* Finds the program that queries cuDNN. Without it, the answer is less exact, and counters show how
 * much. */
static void find_asker(struct mt_simulated_run *run)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_collector_library(CUDNN_ASKER, run->asker, &error))
        run->asker[0] = '\0';
}

/* Prints which Python memtrace itself runs, if that is not simply the first word of the command. */
static void say_python(void *context, const struct mt_python_choice *choice)
{
    const struct mt_simulated_run *run = context;

    if (run->settings.names_python && strcmp(choice->from, MT_PYTHON_FROM_COMMAND) != 0)
        mt_message("running %s (from %s) to find its PyTorch", choice->path, choice->from);
}

static int prepare_site(struct mt_simulated_run *run)
{
    char library[PATH_MAX], shim[PATH_MAX];
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const struct mt_simulated_site_request request = {.command = run->recording.command,
                                                      .simulated_library = library,
                                                      .python_shim_folder = shim,
                                                      .before_python = say_python,
                                                      .context = run};

    if (has_own_site())
        return -1;
    find_asker(run);
    /* without the shim, programs take other branches, and their peaks would be wrong */
    if (mt_collector_library(MT_SIMULATED_NAME, library, &error) == MT_OK &&
        mt_collector_library(PYTHON_SHIM, shim, &error) == MT_OK &&
        mt_simulated_site_prepare(&request, &run->site, &error) == MT_OK)
        return -1;
    say_no_site(run, &error);
    return error.status == MT_ERR_OUTPUT ? MT_EXIT_OUTPUT : MT_EXIT_USAGE;
}

uint64_t mt_run_settings_memory_bytes(const struct mt_run_settings *settings)
{
    return settings->limit_bytes ? settings->limit_bytes : settings->card->memory_bytes;
}

static int prepare_fact(struct mt_simulated_run *run)
{
    struct mt_dry_run fact = {.devices = run->settings.devices,
                              .memory_bytes = mt_run_settings_memory_bytes(&run->settings)};

    snprintf(fact.card, sizeof fact.card, "%s", run->settings.card->name);
    mt_dry_run_write(&fact, &run->fact);
    return -1;
}

/* Returns the cost of a context; NULL if it was not measured. The simulated driver then uses its
 * own value. */
static const struct mt_card_cost *cost_of_context(const struct mt_simulated_run *run)
{
    return mt_card_cost(run->settings.card->name,
                        (unsigned)strtoul(run->site.cuda_version, NULL, 10), MT_COST_CUDA);
}

/* Puts a value before the existing value of a variable. */
static bool set_in_front(const char *name, const char *ours)
{
    const char *old = getenv(name);
    struct mt_buf value = {0};

    if (!*ours)
        return true;
    mt_buf_printf(&value, old && *old ? "%s:%s" : "%s", ours, old);
    bool done = value.data && !setenv(name, value.data, 1);
    mt_buf_release(&value);
    return done;
}

/* Forbids Python to write bytecode. Otherwise it would write the bytecode of sitecustomize.py
 * before that file can forbid it. The file restores the permission for the program. */
static bool forbid_bytecode(void)
{
    const char *forbidden = getenv("PYTHONDONTWRITEBYTECODE");

    return (forbidden && *forbidden) || (!setenv("PYTHONDONTWRITEBYTECODE", "1", 1) &&
                                         !setenv("MEMTRACE_DRY_RUN_WRITES_BYTECODE", "1", 1));
}

static bool set_context(const struct mt_simulated_run *run)
{
    const struct mt_card_cost *cost = cost_of_context(run);

    return !cost || mt_setenv_number("MEMTRACE_SIMULATED_CONTEXT", cost->most_bytes);
}

/* Sets or removes the variables of the asker, because an outer dry run may have set them. Without
 * cuDNN there is nothing to query, and a rule determines the workspaces. */
static bool set_asker(const struct mt_simulated_run *run)
{
    bool is_there = *run->asker && *run->site.cudnn;

    return is_there ? !setenv("MEMTRACE_DRY_RUN_ASKER", run->asker, 1) &&
                          !setenv("MEMTRACE_DRY_RUN_CUDNN", run->site.cudnn, 1)
                    : !unsetenv("MEMTRACE_DRY_RUN_ASKER") && !unsetenv("MEMTRACE_DRY_RUN_CUDNN");
}

/* Removes variables that an outer dry run may have set. */
static bool set_assumption(const struct mt_assumption *assumption)
{
    struct mt_buf guesses = {0};

    if (assumption->share_percent)
        mt_buf_printf(&guesses, "share=%u\n", assumption->share_percent);
    if (assumption->inverts)
        mt_buf_add_text(&guesses, "inverted\n");
    for (unsigned i = 0; i < assumption->other_count; i++)
        mt_buf_printf(&guesses, "other=%s\n", assumption->others[i]);
    bool done = (guesses.length ? !setenv("MEMTRACE_DRY_RUN_GUESSES", guesses.data, 1)
                                : !unsetenv("MEMTRACE_DRY_RUN_GUESSES")) &&
                (assumption->frees_early ? !setenv("MEMTRACE_SIMULATED_EARLY_RELEASE", "1", 1)
                                         : !unsetenv("MEMTRACE_SIMULATED_EARLY_RELEASE"));
    mt_buf_release(&guesses);
    return done;
}

/* Connects the standard streams of the command to nothing. A regular file begins again, because a
 * run without it would be another run. */
static void disconnect(void)
{
    int nowhere = mt_io_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    struct stat info;
    bool has_file = fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode);

    for (int fd = has_file ? STDOUT_FILENO : STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO;
         fd++)
        (void)dup2(nowhere, fd);
}

/* An outer dry run may have set the variable. */
static bool set_or_unset(const char *name, const char *text)
{
    return text && *text ? !setenv(name, text, 1) : !unsetenv(name);
}

/* Runs in the process of the command. */
static bool set_environment(void *context)
{
    const struct mt_simulated_run *run = context;
    const struct mt_simulated_site *site = &run->site;

    if (run->settings.is_silent)
        disconnect();
    else if (run->recording.json)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return set_in_front("LD_PRELOAD", site->preload) &&
           set_in_front("PYTHONPATH", site->python_path) && forbid_bytecode() &&
           (!*site->preload || !setenv("MEMTRACE_DRY_RUN_PRELOAD", site->preload, 1)) &&
           (!*site->cupti || !setenv("MEMTRACE_CUPTI", site->cupti, 1)) &&
           (!run->notes_path || !setenv("MEMTRACE_DRY_RUN_NOTES", run->notes_path, 1)) &&
           !setenv("MEMTRACE_DRY_RUN", "1", 1) &&
           set_or_unset("MEMTRACE_DRY_RUN_IMBALANCE", run->settings.imbalance) &&
           /* kernels that PyTorch builds during a dry run are empty, so they must not get into the
            * cache of real runs */
           !setenv("USE_PYTORCH_KERNEL_CACHE", "0", 1) &&
           !setenv("MEMTRACE_DRY_RUN_FACT", run->fact.data, 1) &&
           !setenv("MEMTRACE_SIMULATED_DEVICE", run->settings.card->name, 1) && set_context(run) &&
           set_asker(run) && set_assumption(&run->settings.assumption) &&
           set_or_unset("MEMTRACE_DRY_RUN_APPLY", run->settings.apply) &&
           (!run->settings.rank || mt_rank_set_environment(run->settings.rank)) &&
           mt_setenv_number("MEMTRACE_SIMULATED_DEVICES", run->settings.devices) &&
           mt_setenv_number("MEMTRACE_SIMULATED_MEMORY",
                            mt_run_settings_memory_bytes(&run->settings));
}

/* Prints a line to standard error for each defect of a trace, as `record -q` does. */
static void note_faults(struct mt_simulated_run *run, const struct mt_trace_end *end)
{
    struct mt_buf lines = {0};

    run->unread.running += end->state == MT_TRACE_RUNNING;
    run->unread.failed += end->state == MT_TRACE_FAILED;
    run->unread.incomplete += end->state == MT_TRACE_INCOMPLETE;
    if (!run->settings.is_silent)
        mt_record_add_trace_end(&lines, end, "memtrace: ", true);
    if (lines.length)
        (void)!mt_io_write(STDERR_FILENO, lines.data, lines.length);
    mt_buf_release(&lines);
}

static void note_trace(void *context, const struct mt_trace_end *end)
{
    struct mt_simulated_run *run = context;
    bool is_readable = end->state == MT_TRACE_WHOLE || end->state == MT_TRACE_RECOVERED ||
                       end->state == MT_TRACE_INCOMPLETE;
    struct mt_dry_run_trace *grown;

    note_faults(run, end);
    if (!is_readable || !end->summary.events)
        return;
    grown = mt_memory_resize(run->traces, (run->trace_count + 1) * sizeof *grown);
    run->traces = grown;
    run->traces[run->trace_count++] =
        (struct mt_dry_run_trace){.path = mt_memory_text(end->path),
                                  .reserved_peak_bytes = end->summary.reserved_peak_bytes,
                                  .process_id = end->summary.process_id,
                                  .is_pytorch = end->summary.reserved_known,
                                  .died_of_oom = end->summary.died_of_oom};
}

uint64_t mt_simulated_run_lacks(const struct mt_simulated_run *run)
{
    const struct mt_card_cost *cost = cost_of_context(run);

    return cost && mt_run_settings_memory_bytes(&run->settings) <= cost->least_bytes
               ? cost->least_bytes
               : 0;
}

const struct mt_simulated_site *mt_simulated_run_site(const struct mt_simulated_run *run)
{
    return has_own_site() ? NULL : &run->site;
}

int mt_simulated_run_check(struct mt_simulated_run *run)
{
    int code = mt_recording_check_command(&run->recording);

    if (code < 0)
        code = refuse_program(&run->recording);
    if (code < 0)
        code = prepare_site(run);
    run->is_checked = code < 0;
    return code;
}

/* Prints a message if the devices have no room for a context. Returns -1 or an exit code. */
static int say_hopeless(const struct mt_simulated_run *run)
{
    const struct mt_dry_run_answer answer = mt_simulated_run_answer(run);
    uint64_t least_bytes = mt_simulated_run_lacks(run);
    struct mt_buf line = {0};

    if (!least_bytes)
        return -1;
    mt_dry_run_add_too_small(&line, &answer, least_bytes);
    mt_message("%s", line.data ? line.data : "out of memory (simulated)");
    mt_buf_release(&line);
    return MT_EXIT_BUDGET;
}

int mt_simulated_run_prepare(struct mt_simulated_run *run)
{
    int code = run->is_checked ? -1 : mt_simulated_run_check(run);

    if (code < 0)
        code = say_hopeless(run);
    if (code < 0)
        code = prepare_fact(run);
    return code < 0 ? mt_recording_prepare(&run->recording) : code;
}

/* The answer would be about the program without the change. Returns -1 or an exit code. */
static int refuse_unapplied(const struct mt_simulated_run *run)
{
    const char *problem = mt_applied_problem(&run->notes.applied, run->settings.apply);

    if (!problem || mt_launch_exit_code(&run->recording.launch))
        return -1;
    if (!run->settings.is_silent)
        mt_message("option '--apply': %s", problem);
    return MT_EXIT_USAGE;
}

int mt_simulated_run_finish(struct mt_simulated_run *run)
{
    struct mt_recording *recording = &run->recording;

    mt_dry_run_notes_open(&run->notes, run->site.cache);
    run->notes_path = mt_dry_run_notes_path(&run->notes);
    if (recording->timeout_ms)
        mt_process_tree_keep();
    recording->before = set_environment;
    recording->context = run;
    if (run->settings.input_begin)
        (void)lseek(STDIN_FILENO, run->settings.input_begin - 1, SEEK_SET);
    int code = mt_recording_run(recording);
    if (code < 0) {
        (void)mt_recording_finish(recording, note_trace, run);
        if (mt_memory_has_failed()) /* a trace may count as damaged, or its line is missing */
            mt_memory_end();
    }
    mt_dry_run_notes_close(&run->notes);
    return code < 0 ? refuse_unapplied(run) : code;
}

struct mt_dry_run_answer mt_run_settings_answer(const struct mt_run_settings *settings)
{
    return (struct mt_dry_run_answer){.card = settings->card,
                                      .devices = settings->devices,
                                      .memory_bytes = mt_run_settings_memory_bytes(settings),
                                      .has_limit = settings->limit_bytes,
                                      .imbalance = settings->imbalance,
                                      .assumption = &settings->assumption};
}

struct mt_dry_run_answer mt_simulated_run_answer(const struct mt_simulated_run *run)
{
    const struct mt_launch *launch = &run->recording.launch;
    struct mt_dry_run_answer answer = mt_run_settings_answer(&run->settings);

    answer.exit_status = mt_launch_exit_code(launch);
    answer.signal = WIFSIGNALED(launch->wait_status) ? WTERMSIG(launch->wait_status) : 0;
    answer.timed_out = launch->timed_out;
    answer.notes = &run->notes;
    answer.traces = run->traces;
    answer.trace_count = run->trace_count;
    answer.unread = run->unread;
    answer.site = mt_simulated_run_site(run);
    return answer;
}

void mt_simulated_run_release(struct mt_simulated_run *run)
{
    for (size_t i = 0; i < run->trace_count; i++)
        free(run->traces[i].path);
    free(run->traces);
    free(run->notes_path);
    mt_dry_run_notes_release(&run->notes);
    mt_buf_release(&run->fact);
    mt_recording_release(&run->recording);
}

/* The simulated libraries are machine code that memtrace writes (simulate/site). */
static void check_machine(struct mt_probe_result *result)
{
#if defined(__x86_64__)
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char path[PATH_MAX];

    if (mt_collector_library(MT_SIMULATED_NAME, path, &error) == MT_OK)
        mt_probe_set(result, MT_PROBE_OK, "", "ready");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, mt_probe_remedy(error.status), "no dry runs: %s",
                     error.text);
#else
    mt_probe_set(result, MT_PROBE_DEGRADED,
                 "run memtrace dry-run on an x86-64 machine; its trace can be analyzed here",
                 "no dry runs: they need an x86-64 processor");
#endif
}

const struct mt_probe mt_dry_run_probe = {"dry-run", "runs on a simulated GPU", check_machine, 10};
