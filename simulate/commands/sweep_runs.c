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

#include "analyze.h"
#include "assumption.h"
#include "dry_run_answer.h"
#include "dry_run_doubts.h"
#include "dry_run_gates.h"
#include "gate_run.h"
#include "io.h"
#include "launch.h"
#include "memory_limit.h"
#include "process_memory.h"
#include "screen.h"
#include "simulated_run.h"
#include "sweep.h"
#include "sweep_plan.h"
#include "sweep_runs.h"
#include "util.h"

/* Returns FOLDER/batch=4SUFFIX in the plan's arena. */
static char *sweep_path(struct mt_sweep_plan *plan, const char *folder,
                        const struct mt_sweep_run *run, const char *suffix)
{
    const char *file = mt_sweep_plan_file(plan, run);

    return mt_arena_printf(&plan->arena, "%s/%s%s", folder, file, suffix);
}

static int measure_source(struct mt_source *source, const struct mt_dry_run_answer *answer,
                          const struct mt_dry_run_trace *worst, struct mt_sweep_result *result)
{
    const struct mt_analyze_options options = {.path = worst->path, .needs = true};
    const struct mt_dry_run_trace *failing;
    struct mt_report *report;
    struct mt_error error;
    int checked;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(worst->path, &error);
    report->doubt = mt_dry_run_lower_bound(answer);
    checked = mt_dry_run_check_gates(answer, worst, source, report, &failing);
    mt_sweep_measure(result, report);
    mt_guess_cause_find(&result->cause, answer->notes, report, result->device);
    result->has_gates = answer->gate_run->is_checked;
    result->gate_state = (unsigned)answer->gate_run->gates.verdict;
    result->exit_code = mt_dry_run_exit_code(answer, report);
    mt_report_release(report);
    return checked;
}

/* Keeps the file name of the trace. A trace of a child process has its own name:
 * "batch=4-1234.trace.zst". */
static void keep_name(struct mt_sweep_result *result, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(result->trace, sizeof result->trace, "%s", slash ? slash + 1 : path);
}

static void measure(const struct mt_dry_run_answer *answer, struct mt_sweep_result *result)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    struct mt_source *source;
    int code = MT_EXIT_OK;

    if (!worst) {
        result->exit_code = mt_dry_run_exit_code(answer, NULL);
        if (result->outcome == MT_SWEEP_FINISHED)
            result->outcome = MT_SWEEP_NO_DEVICE;
        result->has_gates = answer->gate_run->rules.count;
        result->gate_state = MT_GATE_NOT_EVALUATED;
        return;
    }
    source = mt_open_input(worst->path, answer->common, &code);
    if (source)
        code = measure_source(source, answer, worst, result);
    mt_source_close(source);
    keep_name(result, worst->path);
    if (code)
        *result = (struct mt_sweep_result){.exit_code = code};
}

static void fill_result(const struct mt_sweep_request *request, const struct mt_simulated_run *run,
                        struct mt_sweep_result *result)
{
    const struct mt_sweep_arguments *shared = request->arguments;
    struct mt_gate_run gate_run = *shared->gate_run; /* the results belong to this process */
    struct mt_dry_run_answer answer = mt_simulated_run_answer(run);

    answer.common = (struct mt_common *)shared->common;
    answer.gates = (struct mt_gate_options *)shared->gates;
    answer.gate_run = &gate_run;
    mt_sweep_begin(result, &answer);
    measure(&answer, result);
    for (size_t i = 0; !request->keeps_traces && !request->needs_traces && i < run->trace_count;
         i++)
        if (run->traces[i].path)
            (void)unlink(run->traces[i].path);
}

uint64_t mt_sweep_devices(const struct mt_sweep_arguments *arguments,
                          const struct mt_sweep_run *run)
{
    uint64_t devices = arguments->each->devices;

    return devices ? devices : run->rank.world ? run->rank.local_world : 1;
}

/* A run has too many paths for a small stack. The caller frees it. */
static struct mt_simulated_run *new_run(const struct mt_sweep_request *request)
{
    struct mt_simulated_run *run = mt_memory_new(sizeof *run);

    *run = *request->arguments->each;
    return run;
}

static void set_up(struct mt_simulated_run *simulated, const struct mt_sweep_request *request,
                   const struct mt_sweep_run *run)
{
    struct mt_recording *recording = &simulated->recording;

    recording->command = mt_sweep_plan_command(request->plan, run);
    recording->output = sweep_path(request->plan, request->folder, run, MT_TRACE_SUFFIX);
    recording->json = false;
    recording->summarizes = run->rank.world && request->keeps_traces;
    recording->quiet = true;
    simulated->rank = run->rank.world ? &run->rank : NULL;
    simulated->devices = mt_sweep_devices(request->arguments, run);
    if (mt_sweep_plan_apply(request->plan, run))
        simulated->apply = mt_sweep_plan_apply(request->plan, run);
}

/* Runs the command of a run and fills the result from its trace. Prints messages to standard
 * error. */
static void sweep_work(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                       struct mt_sweep_result *result)
{
    struct mt_simulated_run *simulated = new_run(request);
    int code;

    *result = (struct mt_sweep_result){.outcome = MT_SWEEP_NOT_RUN};
    set_up(simulated, request, run);
    mt_simulated_run_init(simulated);
    code = mt_simulated_run_prepare(simulated);
    if (code < 0)
        code = mt_assumption_finish(simulated);
    if (code < 0) {
        const struct mt_assuming assuming = {
            .first = simulated,
            .common = (struct mt_common *)request->arguments->common,
            .output = sweep_path(request->plan, request->folder, run, MT_AGAIN_SUFFIX),
            .tells = true};

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

struct crew {
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

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Blocks the signals. Signals that were ignored at the start (nohup) stay ignored. */
static void hold_signals(struct crew *crew)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction found;

    sigemptyset(&crew->waited);
    sigaddset(&crew->waited, SIGCHLD);
    for (size_t i = 0; i < MT_ARRAY_LEN(ending); i++)
        if (sigaction(ending[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
            sigaddset(&crew->waited, ending[i]);
    sigprocmask(SIG_BLOCK, &crew->waited, &crew->mask);
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

static char *log_path(struct mt_sweep_plan *plan, const char *folder,
                      const struct mt_sweep_run *run)
{
    return sweep_path(plan, folder, run, ".log");
}

static void be_worker(const struct crew *crew, const struct mt_sweep_run *run,
                      struct mt_sweep_result *result);

/* Returns the place of a process; of 0: a free one. */
static struct slot *slot_of(struct crew *crew, pid_t pid)
{
    size_t i = 0;

    while (i < MT_MAX_PARALLEL_RUNS && crew->slots[i].pid != pid)
        i++;
    return i < MT_MAX_PARALLEL_RUNS ? &crew->slots[i] : NULL;
}

static struct mt_sweep_result *result_of(const struct crew *crew, const struct slot *slot)
{
    return &crew->results[slot - crew->slots];
}

/* Starts the next run. Returns false if no process can be created. */
static bool start(struct crew *crew)
{
    struct slot *slot = slot_of(crew, 0);
    pid_t pid = fork();

    if (pid == 0)
        be_worker(crew, &crew->request->plan->sweep.runs[crew->next], result_of(crew, slot));
    if (pid < 0) {
        crew->fork_errno = errno;
        return false;
    }
    *slot = (struct slot){pid, crew->next++};
    crew->running++;
    return true;
}

/* The beginning of a log, before the label of the run. */
#define LOG_MARK "# memtrace dry-run: "

static bool is_log(const void *start, size_t length)
{
    return mt_file_begins(start, length, LOG_MARK);
}

static const struct mt_file_kind log_kind = {
    .name = "the log of a dry run by memtrace", .is_own = is_log, .is_private = true};

/* Creates the log of a run, with the rules for outputs (outputs.h). Returns a descriptor that
 * appends to the log and that the caller closes. Returns -1 after an error message. The file keeps
 * its name and grows, so the output of the command can be read while it runs. */
static int sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = log_path(request->plan, request->folder, run);
    const struct mt_output_rules rules = mt_output_rules_of(request->arguments->outputs, &log_kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf mark = {0};
    struct mt_output output;
    int fd = -1;

    mt_buf_add_text(&mark, LOG_MARK);
    mt_buf_add_printable_text(&mark, run->label);
    mt_buf_add_char(&mark, '\n');
    if (mt_output_open(&output, path, &rules, &error) == MT_OK) {
        (void)mt_output_add(&output, mark.data, mark.length);
        fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
        if (mt_output_finish(&output, &error) == MT_OK && fd < 0)
            (void)mt_io_fail_output(&error);
    }
    mt_buf_release(&mark);
    if (!error.status && fcntl(fd, F_SETFL, O_APPEND) == 0)
        return fd;
    (void)mt_report_output_error(path, &error);
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Runs in the new process. If memtrace dies, the process ends its command and itself. */
static void be_worker(const struct crew *crew, const struct mt_sweep_run *run,
                      struct mt_sweep_result *result)
{
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    sigprocmask(SIG_SETMASK, &crew->mask, NULL);
    if (redirect(sweep_log_open(crew->request, run)))
        sweep_work(crew->request, run, result);
    else
        result->exit_code = MT_EXIT_OUTPUT;
    _exit(0);
}

static void note_end(struct crew *crew, struct slot *slot, int status, const struct rusage *usage)
{
    uint64_t peak_bytes = usage->ru_maxrss > 0 ? (uint64_t)usage->ru_maxrss * 1024 : 0;
    struct mt_sweep_run *run = &crew->request->plan->sweep.runs[slot->run];

    run->result = *result_of(crew, slot);
    /* the result of a process that ended early may be incomplete */
    if (WIFSIGNALED(status))
        run->result = (struct mt_sweep_result){.exit_code = 128 + WTERMSIG(status)};
    else if (WEXITSTATUS(status)) /* memory ran out */
        run->result = (struct mt_sweep_result){.exit_code = WEXITSTATUS(status)};
    run->is_ended = true;
    slot->pid = 0;
    crew->running--;
    crew->request->ended++;
    crew->request->peak_bytes = mt_max_u64(crew->request->peak_bytes, peak_bytes);
}

/* Collects processes that have ended, including orphans of commands, which become children of this
 * process. */
static void reap(struct crew *crew)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        struct slot *slot = slot_of(crew, pid);

        if (slot)
            note_end(crew, slot, status, &usage);
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
static void begin_end(struct crew *crew, int number, const siginfo_t *info)
{
    if (!crew->signal)
        mt_message("ending all runs: %zu of %zu had ended; there is no result",
                   crew->request->ended, count_runs(crew->request));
    crew->kill_at_ms = crew->signal ? now_ms() : now_ms() + PATIENCE_MS;
    crew->signal = number;
    for (size_t i = 0; info->si_code != SI_KERNEL && i < MT_MAX_PARALLEL_RUNS; i++)
        if (crew->slots[i].pid)
            kill(crew->slots[i].pid, number == SIGQUIT ? SIGTERM : number);
}

/* Kills commands that did not end, and in a later call the processes that ran them if these do not
 * end either. */
static void kill_all(struct crew *crew)
{
    for (size_t i = 0; !crew->kills && i < MT_MAX_PARALLEL_RUNS; i++)
        if (crew->slots[i].pid)
            mt_process_tree_end_below(crew->slots[i].pid, SIGKILL);
    if (crew->kills++)
        mt_process_tree_end(0, SIGKILL);
    crew->kill_at_ms = now_ms() + PATIENCE_MS;
}

static void show_progress(struct crew *crew)
{
    const struct mt_sweep_request *request = crew->request;
    size_t count = request->most_runs ? request->most_runs : count_runs(request);
    char line[64];

    snprintf(line, sizeof line, "dry runs: %zu of %s%zu ended", request->ended,
             request->most_runs ? "at most " : "", count);
    mt_progress_update(&crew->progress, line, (double)request->ended / (double)count);
}

static bool has_more(struct crew *crew)
{
    const struct mt_sweep *sweep = &crew->request->plan->sweep;

    while (crew->next < sweep->run_count && sweep->runs[crew->next].is_ended)
        crew->next++;
    return crew->next < sweep->run_count;
}

static void start_more(struct crew *crew)
{
    const struct mt_sweep_request *request = crew->request;

    while (!crew->signal && has_more(crew) &&
           crew->running < mt_sweep_room(request->arguments->jobs, request->ended,
                                         request->peak_bytes, crew->available_bytes,
                                         crew->processors) &&
           start(crew))
        continue;
}

/* Waits until a process ends, a signal arrives or a second passes. */
static void wait_for_news(struct crew *crew)
{
    const struct timespec second = {1, 0};
    siginfo_t info;
    int number = sigtimedwait(&crew->waited, &info, &second);

    if (number > 0 && number != SIGCHLD)
        begin_end(crew, number, &info);
    if (crew->signal && now_ms() >= crew->kill_at_ms)
        kill_all(crew);
    reap(crew);
}

static int run_all(struct crew *crew)
{
    struct mt_sweep *sweep = &crew->request->plan->sweep;

    mt_process_tree_keep();
    hold_signals(crew);
    mt_progress_start(&crew->progress, crew->request->arguments->common->quiet);
    start_more(crew);
    while (crew->running) {
        wait_for_news(crew);
        start_more(crew);
        show_progress(crew);
    }
    mt_progress_end(&crew->progress);
    if (!crew->signal && has_more(crew))
        mt_message("cannot start a process: %s", strerror(crew->fork_errno));
    if (crew->signal)
        mt_process_tree_end(0, SIGKILL);
    reap(crew);
    sigprocmask(SIG_SETMASK, &crew->mask, NULL);
    for (size_t i = crew->next; i < sweep->run_count; i++)
        if (!sweep->runs[i].is_ended)
            sweep->runs[i].result = (struct mt_sweep_result){.exit_code = MT_EXIT_INPUT};
    return crew->signal ? 128 + crew->signal : -1;
}

int mt_sweep_run_all(struct mt_sweep_request *request)
{
    const size_t bytes = MT_MAX_PARALLEL_RUNS * sizeof(struct mt_sweep_result);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct crew *crew = mt_memory_zeroed(1, sizeof *crew);
    void *shared = MAP_FAILED;
    int code;

    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        mt_memory_end();
    *crew = (struct crew){.request = request,
                          .results = shared,
                          .processors = processors > 1 ? (size_t)processors : 1,
                          .available_bytes = mt_memory_available()};
    code = run_all(crew);
    munmap(shared, bytes);
    free(crew);
    return code;
}

enum {
    LOG_LINES = 10,  /* number of lines that are printed from the end of a log */
    LOG_BYTES = 4096 /* maximum size of these lines */
};

int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; !code && i < plan->sweep.run_count; i++) {
        const char *path = log_path(plan, folder, &plan->sweep.runs[i]);

        code = mt_output_precheck(path, outputs, &log_kind);
    }
    return code ? code : -1;
}

static const char *without_mark(const char *text, size_t *length)
{
    const char *newline = memchr(text, '\n', *length);
    size_t line = newline ? (size_t)(newline - text) + 1 : *length;

    *length -= line;
    return text + line;
}

/* Returns the last lines of a text. */
static const char *last_lines(const char *text, size_t *length)
{
    size_t begin = *length, lines = 0;

    while (begin && (lines < LOG_LINES || text[begin - 1] != '\n')) {
        begin--;
        lines += begin && text[begin - 1] == '\n';
    }
    *length -= begin;
    return text + begin;
}

/* Prints each line indented and safe for a terminal. */
static void print_lines(const char *lines, size_t length)
{
    struct mt_buf out = {0};

    while (length) {
        const char *newline = memchr(lines, '\n', length);
        size_t line = newline ? (size_t)(newline - lines) : length;

        mt_buf_add_text(&out, "  ");
        mt_buf_add_printable(&out, lines, line);
        mt_buf_add_char(&out, '\n');
        line += newline != NULL;
        lines += line;
        length -= line;
    }
    if (out.data)
        (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}

void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = log_path(request->plan, request->folder, run);
    int fd = mt_io_open(path, O_RDONLY, 0);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    uint64_t begin = end > LOG_BYTES ? (uint64_t)end - LOG_BYTES : 0;
    char text[LOG_BYTES];
    ssize_t got = fd < 0 ? -1 : mt_io_pread_full(fd, text, sizeof text, begin);
    size_t length = got > 0 ? (size_t)got : 0;
    const char *lines;

    if (fd >= 0)
        close(fd);
    lines = begin ? text : without_mark(text, &length);
    lines = last_lines(lines, &length);
    if (!length)
        return;
    mt_message("%s: the last lines of its output:", run->label);
    print_lines(lines, length);
}
