/* Runs a command as a shell would: the same terminal, process group, signals
 * and files; waits for it, and can end as it ended. One command at a time. */
#ifndef MT_RECORD_LAUNCH_H
#define MT_RECORD_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process_end.h"
#include "status.h"
#include "witness.h"

struct mt_launch {
    pid_t pid;
    int wait_status; /* as waitpid, once it has ended */
    int exec_errno;  /* not 0: the command could not be run */
    bool timed_out;  /* it was ended, because it took too long */
    bool oom_killed; /* it died of SIGKILL, and its control group has more victims than before */
    uint64_t ended_t_ns; /* Unix time of its end */
    /* PRIVATE: what was there before */
    sigset_t mask, relayed;
    struct sigaction child_action, pipe_action, size_action;
    struct mt_witness witness;
    uint64_t oom_kills; /* in the control group before it began */
    bool has_oom_kills;
};

/* To call first: from here on a closed pipe and a limit on the size of files
 * are errors of ours, not signals that end us before the command has ended. The
 * command gets all signals as we found them. */
void mt_launch_init(struct mt_launch *launch);

struct mt_launch_request {
    char *const *command; /* looked up in PATH */
    /* Called in the new process before it becomes the command: its environment.
     * NULL: no memory, the command is not run. */
    char **(*environment)(void *context, pid_t pid);
    void *context;
    bool ends_with_us; /* the command gets TERM if we die first, as of a KILL */
};

/* Starts it. MT_ERR_IO if no process can be made; a command that cannot be run
 * is not an error here but exec_errno. From here to mt_launch_wait signals are
 * held back. */
enum mt_status mt_launch_start(struct mt_launch *launch, const struct mt_launch_request *request,
                               struct mt_error *error) MT_MUST_USE;

/* Waits for the end of the command; after `timeout_ms` (0 = never) it and all its descendants are
 * ended, by TERM and MT_LAUNCH_PATIENCE_MS later by KILL, and timed_out is set. Meanwhile INT,
 * TERM, HUP, QUIT, USR1, USR2, WINCH, TSTP and CONT that somebody sends to us alone go on to the
 * command; those that the terminal sends, or somebody to everybody, reached it already. If the
 * command is stopped from the terminal, so are we. */
void mt_launch_wait(struct mt_launch *launch, uint64_t timeout_ms);
#define MT_LAUNCH_PATIENCE_MS 5000

/* 0..255 as the command, or 128 + signal. */
int mt_launch_exit_code(const struct mt_launch *launch);

/* How it ended: for its trace. */
struct mt_process_end mt_launch_end(const struct mt_launch *launch);

/* Dies of the signal that the command died of, without a core of our own;
 * returns if it died of none (or if that did not help). */
void mt_launch_die_likewise(const struct mt_launch *launch);

#endif
