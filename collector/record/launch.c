/* There are no handlers: signals are blocked and received synchronously, together with SIGCHLD, so
 * none is lost and none interrupts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "grow.h"
#include "io.h"
#include "launch.h"
#include "monotonic_clock.h"
#include "process_end.h"
#include "sorted.h"
#include "status.h"

enum { READINGS = 8, LOOK_MS = 200 };

struct process {
    pid_t pid, parent;
    bool is_meant;
};

struct tree {
    struct process *processes; /* by pid */
    size_t count, capacity;
};

void mt_process_tree_keep(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
}

/* The targets of a signal. */
struct aim {
    pid_t root;
    bool is_below; /* only descendants of the root, not the root itself */
};

static pid_t parent_of(pid_t pid);

MT_DEFINE_ORDER(by_pid, struct process, MT_ASCENDING(pid))

/* Lists all processes of the machine, or as many as fit in memory. */
static void read_processes(struct tree *tree)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    tree->count = 0;
    while (folder && (entry = readdir(folder))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        if (tree->count == tree->capacity &&
            mt_grow(&tree->processes, &tree->capacity, tree->count + 1, sizeof *tree->processes))
            break;
        tree->processes[tree->count++] = (struct process){pid, parent_of(pid), false};
    }
    if (folder)
        closedir(folder);
    if (tree->count)
        qsort(tree->processes, tree->count, sizeof *tree->processes, by_pid);
}

/* memtrace's own helper, which receives signals as a witness, is not part of the command. */
static bool is_witness(pid_t pid)
{
    char path[64], name[32] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(name, sizeof name, file))
        *name = '\0';
    if (file)
        fclose(file);
    return !strcmp(name, "signal-witness\n");
}

static bool is_meant(const struct tree *tree, pid_t pid)
{
    const struct process key = {.pid = pid};
    const struct process *found = NULL;

    if (tree->count)
        found = bsearch(&key, tree->processes, tree->count, sizeof key, by_pid);
    return found && found->is_meant;
}

/* Marks the children of marked processes. Returns false if there are none. */
static bool mark_children(struct tree *tree)
{
    bool any = false;

    for (size_t i = 0; i < tree->count; i++) {
        struct process *process = &tree->processes[i];

        if (process->is_meant || !is_meant(tree, process->parent))
            continue;
        process->is_meant = true;
        any = true;
    }
    return any;
}

static void mark(struct tree *tree, const struct aim *aim)
{
    pid_t adopter = aim->is_below ? aim->root : getpid();

    for (size_t i = 0; i < tree->count; i++) {
        struct process *process = &tree->processes[i];

        process->is_meant = (process->pid == aim->root && !aim->is_below) ||
                            (process->parent == adopter && !is_witness(process->pid));
    }
    while (mark_children(tree))
        continue;
}

static void end(const struct aim *aim, int signal)
{
    struct tree tree = {0};
    size_t before = 0, count = 0;

    for (int reading = 0;
         reading < (signal == SIGKILL ? READINGS : 1) && (!reading || count > before); reading++) {
        before = count;
        count = 0;
        read_processes(&tree);
        mark(&tree, aim);
        for (size_t i = 0; i < tree.count; i++) {
            if (!tree.processes[i].is_meant)
                continue;
            kill(tree.processes[i].pid, signal);
            count++;
        }
        /* no memory, or no /proc: signal at least the command */
        if (aim->root && !aim->is_below && !is_meant(&tree, aim->root))
            kill(aim->root, signal);
    }
    free(tree.processes);
}

/* Reads the parent from "PID (name) S PARENT ..."; 0 if the process is gone. The name may contain
 * anything. */
static pid_t parent_of(pid_t pid)
{
    char path[64], line[512];
    const char *end = NULL;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    end = strrchr(line, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

void mt_process_tree_end(pid_t root, int signal)
{
    const struct aim aim = {root, false};

    end(&aim, signal);
}

void mt_process_tree_end_below(pid_t root, int signal)
{
    const struct aim aim = {root, true};

    end(&aim, signal);
}

/* The witness blocks all signals. The kernel lists those that it received as pending, so it does
 * not matter when the witness runs. */

enum { TIMEOUT_NS = 20000000, FIELD_ARG_START = 48 };

/* Blanks the command line that `ps` and `pkill -f` show. */
static void forget_command_line(void)
{
    char text[2048];

    (void)mt_io_read_text("/proc/self/stat", text, sizeof text);
    char *at = strrchr(text, ')'); /* after the name, which may contain anything: field 3 */
    for (int field = 2; at && field < FIELD_ARG_START; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return;
    unsigned long long begin = strtoull(at, &at, 10);
    unsigned long long end = strtoull(at, &at, 10);
    if (begin && end > begin)
        memset((void *)(uintptr_t)begin, 0, (size_t)(end - begin));
}

static void forget_pending(void)
{
    static const struct timespec at_once = {0, 0};
    sigset_t all;

    sigfillset(&all);
    while (sigtimedwait(&all, NULL, &at_once) > 0)
        continue;
}

static void be_witness(int ask, int answer, pid_t parent)
{
    sigset_t all;
    char byte;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "signal-witness");
    forget_command_line();
    for (int fd = 0; fd < 256; fd++)
        if (fd != ask && fd != answer)
            close(fd);
    (void)!chdir("/");
    while (getppid() == parent && mt_io_read(ask, &byte, 1) == 1) {
        forget_pending();
        if (!mt_io_write(answer, &byte, 1))
            break;
    }
    _exit(0);
}

static bool make_pipe(int ends[2])
{
    if (pipe(ends) < 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

/* Call it while the signals in question are blocked. The witness ends with this process, has no
 * open files, and has another name and command line, so that a command that kills memtrace by name
 * does not kill the witness. */
static void witness_start(struct mt_witness *witness)
{
    pid_t parent = getpid();
    int ask[2], answer[2];

    witness->pid = 0;
    if (!make_pipe(ask))
        return;
    if (!make_pipe(answer)) {
        close(ask[0]);
        close(ask[1]);
        return;
    }
    witness->pid = fork();
    if (witness->pid == 0)
        be_witness(ask[0], answer[1], parent);
    close(ask[0]);
    close(answer[1]);
    witness->ask = ask[1];
    witness->answer = answer[0];
    if (witness->pid > 0)
        return;
    close(witness->ask);
    close(witness->answer);
    witness->pid = 0;
}

static void witness_stop(struct mt_witness *witness)
{
    if (!witness->pid)
        return;
    kill(witness->pid, SIGKILL);
    while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(witness->ask);
    close(witness->answer);
    witness->pid = 0;
}

/* Signals pending for the whole process, from /proc: bit n - 1 is signal n. */
static uint64_t pending_of(pid_t pid)
{
    char path[64], line[256];
    uint64_t pending = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "ShdPnd:", 7) == 0)
            pending = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return pending;
}

/* Returns true if the witness received the signal that this process has just received. Takes 20 ms,
 * because senders signal processes one after the other. Clears the signals received so far. */
static bool witness_saw(const struct mt_witness *witness, int number)
{
    static const struct timespec patience = {0, TIMEOUT_NS};
    char byte = 0;

    if (!witness->pid)
        return false;
    nanosleep(&patience, NULL);
    uint64_t pending = pending_of(witness->pid);
    if (pending && mt_io_write(witness->ask, &byte, 1))
        (void)!mt_io_read(witness->answer, &byte, 1);
    return number > 0 && number <= 64 && (pending >> (number - 1) & 1);
}

extern char **environ;

static const int relayed[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, 0};

void mt_launch_init(struct mt_launch *launch)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    memset(launch, 0, sizeof *launch);
    launch->began_t_ns = mt_unix_ns();
    launch->began_monotonic_ns = mt_now_ns();
    sigaction(SIGPIPE, &ignore, &launch->pipe_action);
    sigaction(SIGXFSZ, &ignore, &launch->size_action);
}

void mt_launch_take_asks(struct mt_launch *launch)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    launch->takes_asks = true;
    sigaction(SIGUSR2, &ignore, &launch->ask_action);
}

/* Blocks SIGCHLD and the signals to relay. Signals that were ignored at the start (nohup) stay
 * ignored, for the command as well. */
static void hold_signals(struct mt_launch *launch)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, found;

    sigemptyset(&launch->relayed);
    sigaddset(&launch->relayed, SIGCHLD);
    for (const int *number = relayed; *number; number++)
        if ((launch->takes_asks && *number == SIGUSR2) ||
            (sigaction(*number, NULL, &found) == 0 && found.sa_handler != SIG_IGN))
            sigaddset(&launch->relayed, *number);
    sigaction(SIGCHLD, &usual, &launch->child_action); /* if ignored, there is no status */
    sigprocmask(SIG_BLOCK, &launch->relayed, &launch->mask);
}

static void note_interruption(struct mt_launch *launch, int number)
{
    if (number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM)
        launch->interrupted = number;
}

static void release_signals(struct mt_launch *launch)
{
    static const struct timespec at_once = {0, 0};
    int number;

    while ((number = sigtimedwait(&launch->relayed, NULL, &at_once)) > 0)
        note_interruption(launch, number); /* meant for the command */
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
        if (launch->takes_asks)
            sigaction(SIGUSR2, &launch->ask_action, NULL);
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
    bool for_all = !at_once && witness_saw(&launch->witness, number);

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

    launch->ended_t_ns = launch->began_t_ns + (mt_now_ns() - launch->began_monotonic_ns);
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

/* The time at which the command must end, and the signal that ends it. */
struct deadline {
    uint64_t at_ms; /* 0 = never */
    int signal;
};

/* Like sigwaitinfo. Returns 0 after a while if somebody watches, and -1 at the deadline, at which
 * it ends the command and sets the next deadline. */
static int wait_for_signal(struct mt_launch *launch, struct deadline *deadline, siginfo_t *info)
{
    uint64_t now = mt_now_ms(), left = deadline->at_ms > now ? deadline->at_ms - now : 0;

    if (!deadline->at_ms && !launch->watch)
        return sigwaitinfo(&launch->relayed, info);
    if (launch->watch && (!deadline->at_ms || left > LOOK_MS))
        left = LOOK_MS;
    struct timespec patience =
        (struct timespec){(time_t)(left / 1000), (long)(left % 1000) * 1000000};
    int number = sigtimedwait(&launch->relayed, info, &patience);
    if (number > 0 || errno != EAGAIN)
        return number;
    if (!deadline->at_ms || mt_now_ms() < deadline->at_ms)
        return 0;
    launch->timed_out = true;
    mt_process_tree_end(launch->pid, deadline->signal);
    *deadline = (struct deadline){mt_now_ms() + MT_LAUNCH_PATIENCE_MS, SIGKILL};
    return -1;
}

void mt_launch_wait(struct mt_launch *launch, uint64_t timeout_ms)
{
    struct deadline deadline = {timeout_ms ? mt_now_ms() + timeout_ms : 0, SIGTERM};
    siginfo_t info;

    witness_start(&launch->witness);
    for (;;) {
        int number = wait_for_signal(launch, &deadline, &info);

        bool is_asked = launch->watch && number == SIGUSR2;

        note_interruption(launch, number);
        if (launch->watch && (is_asked || !number || number == SIGCHLD))
            launch->watch->look(launch->watch->context, is_asked);
        if (number > 0 && number != SIGCHLD && !is_asked)
            relay(launch, number, &info);
        if (number == SIGCHLD && has_ended(launch))
            break;
    }
    witness_stop(&launch->witness);
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

void mt_launch_reraise(const struct mt_launch *launch)
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
