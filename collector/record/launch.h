/* Runs a command like a shell: same terminal, process group, signals and files. Waits for it, and
 * can end in the same way. One command at a time. */
#ifndef MT_RECORD_LAUNCH_H
#define MT_RECORD_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process_end.h"
#include "status.h"

/* A child process that only receives signals. A signal that it also receives was sent to a whole
 * group: to the process group (timeout, a shell that ends), or to all processes of a service or a
 * job (systemd, Slurm). The command has already received such a signal, so it must not be
 * forwarded. A signal that only this process received must be forwarded. */

struct mt_witness {
    pid_t pid; /* 0 = none: witness_saw returns false */
    int ask, answer;
};

/* While the command runs, `look` is called five times a second and when a child process ends.
 * SIGUSR2 to this process is not forwarded: it is a call with `is_asked`. */
struct mt_launch_watch {
    void (*look)(void *context, bool is_asked);
    void *context;
};

struct mt_launch {
    pid_t pid;
    int wait_status; /* as from waitpid; set when the command has ended */
    int exec_errno;  /* not 0: the command could not be run */
    bool timed_out;  /* it exceeded the timeout and was ended */
    int interrupted; /* the last of HUP, INT, QUIT and TERM that this process received while the
                      * command ran, whatever the command did; 0: none */
    bool oom_killed; /* it died of SIGKILL, and its control group counts more OOM kills than before
                      */
    uint64_t began_t_ns; /* Unix time of mt_launch_init */
    uint64_t ended_t_ns; /* Unix time at which it ended; as in traces, later changes of the
                          * machine's clock have no effect */
    const struct mt_launch_watch *watch; /* set before mt_launch_wait; NULL: none */
    /* PRIVATE: the state at mt_launch_init */
    uint64_t began_monotonic_ns;
    sigset_t mask, relayed;
    struct sigaction child_action, pipe_action, size_action, ask_action;
    bool takes_asks;
    struct mt_witness witness;
    uint64_t oom_kills; /* of the control group before the command started */
    bool has_oom_kills;
};

/* Call it first. Afterwards a closed pipe and the limit on file sizes are errors, not signals
 * that would end memtrace before the command. The command gets the original signal dispositions. */
void mt_launch_init(struct mt_launch *launch);

struct mt_launch_request {
    char *const *command; /* looked up in PATH */
    /* Called in the new process before exec; returns the environment. NULL: out of memory, the
     * command is not run. */
    char **(*environment)(void *context, pid_t pid);
    void *context;
    bool ends_with_us; /* the command gets TERM if this process dies, even by SIGKILL */
};

/* From now on, SIGUSR2 is a request to this process (mt_launch_watch) and never ends it, not even
 * when the command has ended. The command gets the original disposition. Call it before
 * mt_launch_start. */
void mt_launch_take_asks(struct mt_launch *launch);

/* Starts the command. MT_ERR_IO: no process can be created. A command that cannot be executed is
 * not an error here; it sets exec_errno. Signals are blocked from here until mt_launch_wait. */
enum mt_status mt_launch_start(struct mt_launch *launch, const struct mt_launch_request *request,
                               struct mt_error *error) MT_MUST_USE;

/* Waits for the end of the command. After `timeout_ms` (0 = never), ends it and all its
 * descendants with TERM, and with KILL after MT_LAUNCH_PATIENCE_MS, and sets timed_out. While it
 * waits, INT, TERM, HUP, QUIT, USR1, USR2, WINCH, TSTP and CONT are forwarded to the command if
 * they were sent to this process only; signals from the terminal or to the whole group have
 * already reached the command. If the terminal stops the command, this process stops as well. */
void mt_launch_wait(struct mt_launch *launch, uint64_t timeout_ms);
#define MT_LAUNCH_PATIENCE_MS 5000

/* Returns the exit status of the command (0 to 255), or 128 + the signal that killed it. */
int mt_launch_exit_code(const struct mt_launch *launch);

/* Describes the end of the command for its trace. */
struct mt_process_end mt_launch_end(const struct mt_launch *launch);

/* Kills this process with the signal that killed the command, without a core dump. Returns if the
 * command was not killed, or if the signal had no effect. */
void mt_launch_reraise(const struct mt_launch *launch);

/* A process and all its descendants. */

/* After this call, a descendant whose parent ends becomes a child of this process, so that every
 * process of a command can be found. */
void mt_process_tree_keep(void);

/* Sends the signal to `root`, to the orphans that became children of this process, and to all their
 * descendants; with root 0, only to the orphans and their descendants. Reads /proc. Sends SIGKILL
 * up to eight times, because processes may be created meanwhile, and any other signal once. */
void mt_process_tree_end(pid_t root, int signal);

/* Like mt_process_tree_end, but does not signal `root`, which can then clean up. */
void mt_process_tree_end_below(pid_t root, int signal);

#endif
