/* See launch.h. There are no handlers: signals are blocked and received synchronously, together
 * with SIGCHLD, so none is lost and none interrupts. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "process_tree.h"
#include "ticks.h"

extern char **environ;

static const int relayed[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, 0};

static uint64_t unix_time_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void mt_launch_init(struct mt_launch *launch)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    memset(launch, 0, sizeof *launch);
    launch->began_t_ns = unix_time_ns();
    launch->began_monotonic_ns = mt_monotonic_ns();
    sigaction(SIGPIPE, &ignore, &launch->pipe_action);
    sigaction(SIGXFSZ, &ignore, &launch->size_action);
}

/* Blocks SIGCHLD and the signals to relay. Signals that were ignored at the start (nohup) stay
 * ignored, for the command as well. */
static void hold_signals(struct mt_launch *launch)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, found;
    const int *number;

    sigemptyset(&launch->relayed);
    sigaddset(&launch->relayed, SIGCHLD);
    for (number = relayed; *number; number++)
        if (sigaction(*number, NULL, &found) == 0 && found.sa_handler != SIG_IGN)
            sigaddset(&launch->relayed, *number);
    sigaction(SIGCHLD, &usual, &launch->child_action); /* if ignored, there is no status */
    sigprocmask(SIG_BLOCK, &launch->relayed, &launch->mask);
}

static void release_signals(struct mt_launch *launch)
{
    static const struct timespec at_once = {0, 0};

    while (sigtimedwait(&launch->relayed, NULL, &at_once) > 0) /* meant for the command */
        continue;
    sigprocmask(SIG_SETMASK, &launch->mask, NULL);
}

/* Runs in the new process. Sends errno through the pipe if exec fails; otherwise exec closes the
 * pipe. */
static void become(const struct mt_launch *launch, const struct mt_launch_request *request,
                   int failed)
{
    char **environment = request->environment(request->context, getpid());
    int why = ENOMEM;

    if (request->ends_with_us)
        (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    if (environment) {
        sigaction(SIGCHLD, &launch->child_action, NULL);
        sigaction(SIGPIPE, &launch->pipe_action, NULL);
        sigaction(SIGXFSZ, &launch->size_action, NULL);
        sigprocmask(SIG_SETMASK, &launch->mask, NULL);
        environ = environment;
        execvp(request->command[0], request->command);
        why = errno;
    }
    (void)!write(failed, &why, sizeof why);
    _exit(127);
}

/* Waits until the command runs, or exec has failed. */
static void hear_of_exec(struct mt_launch *launch, int failed)
{
    int why;
    ssize_t count;

    do
        count = read(failed, &why, sizeof why);
    while (count < 0 && errno == EINTR);
    if (count != sizeof why)
        return;
    launch->exec_errno = why;
    while (waitpid(launch->pid, &launch->wait_status, 0) < 0 && errno == EINTR)
        continue;
}

enum mt_status mt_launch_start(struct mt_launch *launch, const struct mt_launch_request *request,
                               struct mt_error *error)
{
    int ends[2];

    if (pipe(ends) < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    hold_signals(launch);
    launch->has_oom_kills = mt_cgroup_oom_kills("", &launch->oom_kills);
    launch->pid = fork();
    if (launch->pid == 0) {
        close(ends[0]);
        become(launch, request, ends[1]);
    }
    close(ends[1]);
    if (launch->pid < 0) {
        mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
        close(ends[0]);
        release_signals(launch);
        return MT_ERR_IO;
    }
    hear_of_exec(launch, ends[0]);
    close(ends[0]);
    if (launch->exec_errno)
        release_signals(launch);
    return MT_OK;
}

/* Relays a signal that another process sent. Signals of the terminal already went to the whole
 * process group, and a signal from the command was meant for memtrace. */
static void relay(const struct mt_launch *launch, int number, const siginfo_t *info)
{
    /* These two are relayed without the witness: a late one could undo the other, and receiving
     * one twice has no other effect. */
    bool at_once = number == SIGTSTP || number == SIGCONT;
    bool for_all = !at_once && mt_witness_saw(&launch->witness, number);

    if (!for_all && info->si_code != SI_KERNEL && info->si_pid != launch->pid)
        kill(launch->pid, number);
}

/* The terminal stopped the command, so this process also stops, which its parent must notice. A
 * process that stops the command in another way (SIGSTOP) will also wake it. */
static void stop_likewise(int number)
{
    sigset_t pending;

    if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU)
        return;
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1)
        return; /* already woken */
    raise(SIGSTOP);
}

/* The counter covers all processes of the group. So a SIGKILL from another process is attributed to
 * the kernel if the kernel killed any process of the group before. */
static void note_end(struct mt_launch *launch)
{
    uint64_t kills;

    launch->ended_t_ns = launch->began_t_ns + (mt_monotonic_ns() - launch->began_monotonic_ns);
    launch->oom_killed = WIFSIGNALED(launch->wait_status) &&
                         WTERMSIG(launch->wait_status) == SIGKILL && launch->has_oom_kills &&
                         mt_cgroup_oom_kills("", &kills) && kills > launch->oom_kills;
}

/* True once the command has ended. */
static bool has_ended(struct mt_launch *launch)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(launch->pid, &status, WNOHANG | WUNTRACED)) == launch->pid) {
        if (!WIFSTOPPED(status)) {
            launch->wait_status = status;
            note_end(launch);
            return true;
        }
        stop_likewise(WSTOPSIG(status));
    }
    return pid < 0 && errno == ECHILD;
}

static uint64_t now_ms(void)
{
    return mt_monotonic_ns() / 1000000;
}

/* The time at which the command must end, and the signal that ends it. */
struct deadline {
    uint64_t at_ms; /* 0 = never */
    int signal;
};

/* Like sigwaitinfo. Returns -1 at the deadline, at which it ends the command and sets the next
 * deadline. */
static int wait_for_signal(struct mt_launch *launch, struct deadline *deadline, siginfo_t *info)
{
    uint64_t now = now_ms(), left = deadline->at_ms > now ? deadline->at_ms - now : 0;
    const struct timespec patience = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
    int number;

    if (!deadline->at_ms)
        return sigwaitinfo(&launch->relayed, info);
    number = sigtimedwait(&launch->relayed, info, &patience);
    if (number > 0 || errno != EAGAIN)
        return number;
    launch->timed_out = true;
    mt_process_tree_end(launch->pid, deadline->signal);
    *deadline = (struct deadline){now_ms() + MT_LAUNCH_PATIENCE_MS, SIGKILL};
    return -1;
}

void mt_launch_wait(struct mt_launch *launch, uint64_t timeout_ms)
{
    struct deadline deadline = {timeout_ms ? now_ms() + timeout_ms : 0, SIGTERM};
    siginfo_t info;

    mt_witness_start(&launch->witness);
    for (;;) {
        int number = wait_for_signal(launch, &deadline, &info);
        if (number > 0 && number != SIGCHLD)
            relay(launch, number, &info);
        if (number == SIGCHLD && has_ended(launch))
            break;
    }
    mt_witness_stop(&launch->witness);
    if (launch->timed_out) /* signal processes that outlived the command */
        mt_process_tree_end(0, SIGKILL);
    release_signals(launch);
}

int mt_launch_exit_code(const struct mt_launch *launch)
{
    if (WIFSIGNALED(launch->wait_status))
        return 128 + WTERMSIG(launch->wait_status);
    return WEXITSTATUS(launch->wait_status);
}

struct mt_process_end mt_launch_end(const struct mt_launch *launch)
{
    struct mt_process_end end = {.process_id = (uint64_t)launch->pid, .t_ns = launch->ended_t_ns};

    if (launch->timed_out) {
        end.ending = MT_ENDED_TIMEOUT;
    } else if (launch->oom_killed) {
        end.ending = MT_ENDED_OOM_KILLED;
    } else if (WIFSIGNALED(launch->wait_status)) {
        end.ending = MT_ENDED_SIGNAL;
        end.number = WTERMSIG(launch->wait_status);
    } else if (WIFEXITED(launch->wait_status)) {
        end.ending = MT_ENDED_EXIT;
        end.number = WEXITSTATUS(launch->wait_status);
    }
    return end;
}

void mt_launch_die_likewise(const struct mt_launch *launch)
{
    static const struct rlimit no_core = {0, 0};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t only;

    if (!WIFSIGNALED(launch->wait_status))
        return;
    setrlimit(RLIMIT_CORE, &no_core);
    sigaction(WTERMSIG(launch->wait_status), &usual, NULL);
    sigemptyset(&only);
    sigaddset(&only, WTERMSIG(launch->wait_status));
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(WTERMSIG(launch->wait_status));
}
