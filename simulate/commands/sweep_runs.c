/* See sweep_runs.h. All signals, including SIGCHLD, are blocked and received synchronously, so none
 * is lost and none interrupts a call. */
#include "sweep_runs.h"

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

#include "io.h"
#include "memory_limit.h"
#include "process_memory.h"
#include "process_tree.h"
#include "progress.h"
#include "sweep_log.h"
#include "util.h"

enum { PATIENCE_MS = MT_LAUNCH_PATIENCE_MS };

struct crew {
    const struct mt_sweep_request *request;
    struct mt_sweep_result *results; /* in memory that is shared with the processes */
    pid_t pids[MT_MAX_SWEEP_RUNS];   /* one for each run; 0 = not running */
    size_t next, running, ended, processors;
    uint64_t available_bytes, peak_bytes;
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
        return (size_t)mt_min_u64(jobs, MT_MAX_SWEEP_RUNS);
    if (!ended)
        return 1;
    if (peak_bytes && available_bytes != UINT64_MAX)
        room = available_bytes / 10 * 9 / peak_bytes;
    room = mt_min_u64(room, processors);
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
    mt_say("cannot redirect the output of the command: %s", strerror(errno));
    return false;
}

/* Runs in the new process. If memtrace dies, the process ends its command and itself. */
static void be_worker(const struct crew *crew, const struct mt_sweep_run *run,
                      struct mt_sweep_result *result)
{
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    sigprocmask(SIG_SETMASK, &crew->mask, NULL);
    if (redirect(mt_sweep_log_open(crew->request, run)))
        mt_sweep_work(crew->request, run, result);
    else
        result->exit_code = MT_EXIT_OUTPUT;
    _exit(0);
}

/* Starts the next run. Returns false if no process can be created. */
static bool start(struct crew *crew)
{
    size_t index = crew->next;
    pid_t pid = fork();

    if (pid == 0)
        be_worker(crew, &crew->request->plan->sweep.runs[index], &crew->results[index]);
    if (pid < 0) {
        crew->fork_errno = errno;
        return false;
    }
    crew->pids[index] = pid;
    crew->next++;
    crew->running++;
    return true;
}

static size_t run_of(const struct crew *crew, pid_t pid)
{
    size_t i = 0;

    while (i < crew->next && crew->pids[i] != pid)
        i++;
    return i;
}

static void note_end(struct crew *crew, size_t index, int status, const struct rusage *usage)
{
    uint64_t peak_bytes = usage->ru_maxrss > 0 ? (uint64_t)usage->ru_maxrss * 1024 : 0;

    /* the result of a process that ended early may be incomplete */
    if (WIFSIGNALED(status))
        crew->results[index] = (struct mt_sweep_result){.exit_code = 128 + WTERMSIG(status)};
    else if (WEXITSTATUS(status)) /* memory ran out */
        crew->results[index] = (struct mt_sweep_result){.exit_code = WEXITSTATUS(status)};
    crew->pids[index] = 0;
    crew->running--;
    crew->ended++;
    crew->peak_bytes = mt_max_u64(crew->peak_bytes, peak_bytes);
}

/* Collects processes that have ended, including orphans of commands, which become children of this
 * process. */
static void reap(struct crew *crew)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        size_t index = run_of(crew, pid);

        if (index < crew->next)
            note_end(crew, index, status, &usage);
    }
}

/* Begins to end all runs after a signal. Passes on a signal that only this process got; the
 * terminal sends its signals to the whole process group. */
static void begin_end(struct crew *crew, int number, const siginfo_t *info)
{
    if (!crew->signal)
        mt_say("ending all runs: %zu of %zu had ended; there is no result", crew->ended,
               crew->request->plan->sweep.run_count);
    crew->kill_at_ms = crew->signal ? now_ms() : now_ms() + PATIENCE_MS;
    crew->signal = number;
    for (size_t i = 0; info->si_code != SI_KERNEL && i < crew->next; i++)
        if (crew->pids[i])
            kill(crew->pids[i], number == SIGQUIT ? SIGTERM : number);
}

/* Kills commands that did not end, and in a later call the processes that ran them if these do not
 * end either. */
static void kill_all(struct crew *crew)
{
    for (size_t i = 0; !crew->kills && i < crew->next; i++)
        if (crew->pids[i])
            mt_process_tree_end_below(crew->pids[i], SIGKILL);
    if (crew->kills++)
        mt_process_tree_end(0, SIGKILL);
    crew->kill_at_ms = now_ms() + PATIENCE_MS;
}

static void show_progress(struct crew *crew)
{
    size_t count = crew->request->plan->sweep.run_count;
    char line[64];

    snprintf(line, sizeof line, "dry runs: %zu of %zu ended", crew->ended, count);
    mt_progress_update(&crew->progress, line, (double)crew->ended / (double)count);
}

static void start_more(struct crew *crew)
{
    const struct mt_sweep_request *request = crew->request;

    while (!crew->signal && crew->next < request->plan->sweep.run_count &&
           crew->running < mt_sweep_room(request->jobs, crew->ended, crew->peak_bytes,
                                         crew->available_bytes, crew->processors) &&
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
    mt_progress_start(&crew->progress, crew->request->common->quiet);
    start_more(crew);
    while (crew->running) {
        wait_for_news(crew);
        start_more(crew);
        show_progress(crew);
    }
    mt_progress_end(&crew->progress);
    if (!crew->signal && crew->next < sweep->run_count)
        mt_say("cannot start a process: %s", strerror(crew->fork_errno));
    if (crew->signal)
        mt_process_tree_end(0, SIGKILL);
    reap(crew);
    sigprocmask(SIG_SETMASK, &crew->mask, NULL);
    for (size_t i = 0; i < sweep->run_count; i++) {
        sweep->runs[i].result = crew->results[i];
        if (i >= crew->next)
            sweep->runs[i].result.exit_code = MT_EXIT_INPUT;
    }
    return crew->signal ? 128 + crew->signal : -1;
}

int mt_sweep_run_all(const struct mt_sweep_request *request)
{
    const size_t bytes = MT_MAX_SWEEP_RUNS * sizeof(struct mt_sweep_result);
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
