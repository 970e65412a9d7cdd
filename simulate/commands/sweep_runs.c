/* The runs of a sweep, each in a process of its own, with its log.
 *
 * All signals, including SIGCHLD, are blocked and received synchronously, so none is lost and none
 * interrupts a call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ascii.h"
#include "assumption.h"
#include "dry_run_measure.h"
#include "io.h"
#include "launch.h"
#include "memory_limit.h"
#include "monotonic_clock.h"
#include "process_memory.h"
#include "screen.h"
#include "simulated_run.h"
#include "sweep_runs.h"
#include "util.h"

/* Keeps the file name of the trace. A trace of a child process has its own name:
 * "batch=4-1234.trace.zst". */
static void keep_name(struct mt_sweep_result *result, const char *path)
{
    snprintf(result->trace, sizeof result->trace, "%s", mt_base_name(path));
}

static void fill_result(const struct mt_sweep_request *request, const struct mt_simulated_run *run,
                        struct mt_sweep_result *result)
{
    const struct mt_analyze_options options = {.no_findings = true};
    const struct mt_sweep_arguments *shared = request->arguments;
    struct mt_gate_run gate_run = *shared->gate_run; /* the results belong to this process */
    struct mt_dry_run_answer answer = mt_simulated_run_answer(run);
    const struct mt_dry_run_trace *failing;
    struct mt_dry_run_measured measured;

    answer.common = (struct mt_common *)shared->common;
    answer.gates = (struct mt_gate_options *)shared->gates;
    answer.gate_run = &gate_run;
    int code = mt_dry_run_measure(&answer, &options, &measured);
    if (!code)
        code = mt_dry_run_check_gates(&answer, &measured, &failing);
    *result = measured.result;
    result->has_gates = measured.report ? gate_run.is_checked : gate_run.rules.count;
    result->gate_state = measured.report ? (unsigned)gate_run.gates.verdict : MT_GATE_NOT_EVALUATED;
    result->exit_code = mt_dry_run_exit_code(&answer, measured.report);
    if (code)
        *result = (struct mt_sweep_result){.exit_code = code};
    else if (measured.trace)
        keep_name(result, measured.trace->path);
    mt_dry_run_measured_release(&measured);
    for (size_t i = 0; !request->keeps_traces && !request->needs_traces && i < run->trace_count;
         i++)
        (void)unlink(run->traces[i].path);
}

struct mt_run_settings mt_sweep_settings(const struct mt_sweep_request *request,
                                         const struct mt_sweep_run *run)
{
    struct mt_run_settings settings = *request->arguments->settings;
    const char *apply = mt_sweep_plan_apply(request->plan, run);

    settings.command = mt_sweep_plan_command(request->plan, run);
    settings.output = request->folder ? mt_sweep_path(request, run, MT_TRACE_SUFFIX) : NULL;
    settings.json = false;
    settings.summarizes = run->rank.world && request->keeps_traces;
    settings.quiet = true;
    settings.rank = run->rank.world ? &run->rank : NULL;
    if (!settings.devices)
        settings.devices = run->rank.world ? run->rank.local_world : 1;
    if (apply)
        settings.apply = apply;
    return settings;
}

int mt_sweep_check_first(const struct mt_sweep_request *request, struct mt_simulated_run *run)
{
    const struct mt_common *common = request->arguments->common;
    struct mt_sweep *sweep = &request->plan->sweep;
    struct mt_run_settings settings = mt_sweep_settings(request, &sweep->runs[0]);

    sweep->card = settings.card;
    sweep->devices = settings.devices;
    sweep->memory_bytes = mt_run_settings_memory_bytes(&settings);
    settings.names_python = !common->quiet && !common->json;
    mt_simulated_run_init(run, &settings);
    return mt_simulated_run_check(run);
}

/* Runs the command of a run and fills the result from its trace. Prints messages to standard
 * error. */
static void sweep_work(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                       struct mt_sweep_result *result)
{
    const struct mt_run_settings settings = mt_sweep_settings(request, run);
    struct mt_simulated_run *simulated =
        mt_memory_new(sizeof *simulated); /* too large for a stack */
    const struct mt_assuming assuming = {.first = simulated,
                                         .common = (struct mt_common *)request->arguments->common,
                                         .path = settings.output};

    *result = (struct mt_sweep_result){.outcome = MT_SWEEP_NOT_RUN};
    mt_simulated_run_init(simulated, &settings);
    int code = mt_simulated_run_prepare(simulated);
    if (code < 0)
        code = mt_assumption_finish(simulated);
    if (code < 0) {
        fill_result(request, simulated, result);
        mt_assume_others(&assuming, result);
    } else {
        result->exit_code = code;
    }
    mt_simulated_run_release(simulated);
    free(simulated);
}

enum { PATIENCE_MS = MT_LAUNCH_PATIENCE_MS };

/* A place for a process. */
struct slot {
    pid_t pid; /* 0 = free */
    size_t run;
};

struct workers {
    struct mt_sweep_request *request;
    struct mt_sweep_result *results; /* one for each slot, in memory shared with the processes */
    struct slot slots[MT_MAX_PARALLEL_RUNS];
    size_t next, running, processors; /* next: the runs before it are started */
    uint64_t available_bytes;
    sigset_t waited, mask; /* mask: the original signal mask */
    int signal;            /* the signal that ends all runs; 0 = none */
    int fork_errno;        /* why the last fork failed */
    unsigned kills;        /* calls of kill_all */
    uint64_t kill_at_ms;
    struct mt_progress progress;
};

size_t mt_sweep_room(uint64_t jobs, size_t ended, uint64_t peak_bytes, uint64_t available_bytes,
                     size_t processors)
{
    uint64_t room = UINT64_MAX;

    if (jobs)
        return (size_t)mt_min_u64(jobs, MT_MAX_PARALLEL_RUNS);
    if (!ended)
        return 1;
    if (peak_bytes && available_bytes != UINT64_MAX)
        room = available_bytes / 10 * 9 / peak_bytes;
    room = mt_min_u64(room, mt_min_u64(processors, MT_MAX_PARALLEL_RUNS));
    return room > 1 ? (size_t)room : 1;
}

/* Blocks the signals. Signals that were ignored at the start (nohup) stay ignored. */
static void hold_signals(struct workers *workers)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction found;

    sigemptyset(&workers->waited);
    sigaddset(&workers->waited, SIGCHLD);
    for (size_t i = 0; i < MT_ARRAY_LEN(ending); i++)
        if (sigaction(ending[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
            sigaddset(&workers->waited, ending[i]);
    sigprocmask(SIG_BLOCK, &workers->waited, &workers->mask);
}

/* Redirects the output of this process to the log. Returns false after a message. */
static bool redirect(int log)
{
    int empty = mt_io_open("/dev/null", O_RDONLY, 0);

    if (log < 0)
        return false;
    if (empty >= 0 && dup2(empty, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
        dup2(log, STDERR_FILENO) >= 0)
        return true;
    mt_message("cannot redirect the output of the command: %s", strerror(errno));
    return false;
}

/* Returns the place of a process; of 0: a free one. */
static struct slot *slot_of(struct workers *workers, pid_t pid)
{
    size_t i = 0;

    while (i < MT_MAX_PARALLEL_RUNS && workers->slots[i].pid != pid)
        i++;
    return i < MT_MAX_PARALLEL_RUNS ? &workers->slots[i] : NULL;
}

static struct mt_sweep_result *result_of(const struct workers *workers, const struct slot *slot)
{
    return &workers->results[slot - workers->slots];
}

/* Runs in the new process. If memtrace dies, the process ends its command and itself. */
static void be_worker(const struct workers *workers, const struct mt_sweep_run *run,
                      struct mt_sweep_result *result)
{
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    sigprocmask(SIG_SETMASK, &workers->mask, NULL);
    if (redirect(mt_sweep_log_open(workers->request, run)))
        sweep_work(workers->request, run, result);
    else
        result->exit_code = MT_EXIT_OUTPUT;
    _exit(0);
}

/* Starts the next run. Returns false if no process can be created. */
static bool start(struct workers *workers)
{
    struct slot *slot = slot_of(workers, 0);
    pid_t pid = fork();

    if (pid == 0)
        be_worker(workers, &workers->request->plan->sweep.runs[workers->next],
                  result_of(workers, slot));
    if (pid < 0) {
        workers->fork_errno = errno;
        return false;
    }
    *slot = (struct slot){pid, workers->next++};
    workers->running++;
    return true;
}

static void note_end(struct workers *workers, struct slot *slot, int status,
                     const struct rusage *usage)
{
    uint64_t peak_bytes = usage->ru_maxrss > 0 ? (uint64_t)usage->ru_maxrss * 1024 : 0;
    struct mt_sweep_run *run = &workers->request->plan->sweep.runs[slot->run];

    run->result = *result_of(workers, slot);
    /* the result of a process that ended early may be incomplete */
    if (WIFSIGNALED(status))
        run->result = (struct mt_sweep_result){.exit_code = 128 + WTERMSIG(status)};
    else if (WEXITSTATUS(status)) /* memory ran out */
        run->result = (struct mt_sweep_result){.exit_code = WEXITSTATUS(status)};
    run->is_ended = true;
    slot->pid = 0;
    workers->running--;
    workers->request->ended++;
    workers->request->peak_bytes = mt_max_u64(workers->request->peak_bytes, peak_bytes);
}

/* Collects processes that have ended, including orphans of commands, which become children of this
 * process. */
static void reap(struct workers *workers)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        struct slot *slot = slot_of(workers, pid);

        if (slot)
            note_end(workers, slot, status, &usage);
    }
}

/* The runs that are not from a cache. */
static size_t count_runs(const struct mt_sweep_request *request)
{
    const struct mt_sweep *sweep = &request->plan->sweep;
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++)
        count += !sweep->runs[i].is_cached;
    return count;
}

/* Begins to end all runs after a signal. Passes on a signal that only this process got; the
 * terminal sends its signals to the whole process group. */
static void begin_end(struct workers *workers, int number, const siginfo_t *info)
{
    if (!workers->signal)
        mt_message("ending all runs: %zu of %zu had ended; there is no result",
                   workers->request->ended, count_runs(workers->request));
    workers->kill_at_ms = workers->signal ? mt_now_ms() : mt_now_ms() + PATIENCE_MS;
    workers->signal = number;
    for (size_t i = 0; info->si_code != SI_KERNEL && i < MT_MAX_PARALLEL_RUNS; i++)
        if (workers->slots[i].pid)
            kill(workers->slots[i].pid, number == SIGQUIT ? SIGTERM : number);
}

/* Kills commands that did not end, and in a later call the processes that ran them if these do not
 * end either. */
static void kill_all(struct workers *workers)
{
    for (size_t i = 0; !workers->kills && i < MT_MAX_PARALLEL_RUNS; i++)
        if (workers->slots[i].pid)
            mt_process_tree_end_below(workers->slots[i].pid, SIGKILL);
    if (workers->kills++)
        mt_process_tree_end(0, SIGKILL);
    workers->kill_at_ms = mt_now_ms() + PATIENCE_MS;
}

static void show_progress(struct workers *workers)
{
    const struct mt_sweep_request *request = workers->request;
    size_t count = request->most_runs ? request->most_runs : count_runs(request);
    char line[64];

    snprintf(line, sizeof line, "dry runs: %zu of %s%zu ended", request->ended,
             request->most_runs ? "at most " : "", count);
    mt_progress_update(&workers->progress, line, (double)request->ended / (double)count);
}

static bool has_more(struct workers *workers)
{
    const struct mt_sweep *sweep = &workers->request->plan->sweep;

    while (workers->next < sweep->run_count && sweep->runs[workers->next].is_ended)
        workers->next++;
    return workers->next < sweep->run_count;
}

static void start_more(struct workers *workers)
{
    const struct mt_sweep_request *request = workers->request;

    while (!workers->signal && has_more(workers) &&
           workers->running < mt_sweep_room(request->arguments->jobs, request->ended,
                                            request->peak_bytes, workers->available_bytes,
                                            workers->processors) &&
           start(workers))
        continue;
}

/* Waits until a process ends, a signal arrives or a second passes. */
static void wait_for_event(struct workers *workers)
{
    const struct timespec second = {1, 0};
    siginfo_t info;
    int number = sigtimedwait(&workers->waited, &info, &second);

    if (number > 0 && number != SIGCHLD)
        begin_end(workers, number, &info);
    if (workers->signal && mt_now_ms() >= workers->kill_at_ms)
        kill_all(workers);
    reap(workers);
}

static int run_all(struct workers *workers)
{
    struct mt_sweep *sweep = &workers->request->plan->sweep;

    mt_process_tree_keep();
    hold_signals(workers);
    mt_progress_start(&workers->progress, workers->request->arguments->common->quiet);
    start_more(workers);
    while (workers->running) {
        wait_for_event(workers);
        start_more(workers);
        show_progress(workers);
    }
    mt_progress_end(&workers->progress);
    if (!workers->signal && has_more(workers))
        mt_message("cannot start a process: %s", strerror(workers->fork_errno));
    if (workers->signal)
        mt_process_tree_end(0, SIGKILL);
    reap(workers);
    sigprocmask(SIG_SETMASK, &workers->mask, NULL);
    for (size_t i = workers->next; i < sweep->run_count; i++)
        if (!sweep->runs[i].is_ended)
            sweep->runs[i].result = (struct mt_sweep_result){.exit_code = MT_EXIT_INPUT};
    return workers->signal ? 128 + workers->signal : -1;
}

int mt_sweep_run_all(struct mt_sweep_request *request)
{
    const size_t bytes = MT_MAX_PARALLEL_RUNS * sizeof(struct mt_sweep_result);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct workers *workers = mt_memory_zeroed(1, sizeof *workers);
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        mt_memory_end();
    *workers = (struct workers){.request = request,
                                .results = shared,
                                .processors = processors > 1 ? (size_t)processors : 1,
                                .available_bytes = mt_memory_available()};
    int code = run_all(workers);
    munmap(shared, bytes);
    free(workers);
    return code;
}

int mt_sweep_exit_code(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.exit_code)
            return sweep->runs[i].result.exit_code;
    return MT_EXIT_OK;
}
