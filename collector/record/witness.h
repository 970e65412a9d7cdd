/* A child process that only receives signals. A signal that it also receives was sent to a whole
 * group: to the process group (timeout, a shell that ends), or to all processes of a service or a
 * job (systemd, Slurm). The command has already received such a signal, so it must not be
 * forwarded. A signal that only this process received must be forwarded. */
#ifndef MT_RECORD_WITNESS_H
#define MT_RECORD_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

struct mt_witness {
    pid_t pid; /* 0 = none: mt_witness_saw returns false */
    int ask, answer;
};

/* Call it while the signals in question are blocked. The witness ends with this process, has no
 * open files, and has another name and command line, so that a command that kills memtrace by
 * name does not kill the witness. */
void mt_witness_start(struct mt_witness *witness);
void mt_witness_stop(struct mt_witness *witness);

/* Returns true if the witness received the signal that this process has just received. Takes 20
 * ms, because senders signal processes one after the other. Clears the signals received so far. */
bool mt_witness_saw(const struct mt_witness *witness, int number);

#endif
