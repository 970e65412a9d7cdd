/* A process beside us that does nothing but receive signals. What it received,
 * too, was sent to everybody: to the process group (timeout, a shell that ends),
 * or to all of a service or a job (systemd, Slurm). The command has it already,
 * so it must not be handed on. A signal that we alone received must be. */
#ifndef MT_RECORD_WITNESS_H
#define MT_RECORD_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

struct mt_witness {
    pid_t pid; /* 0 = there is none: nothing was sent to everybody */
    int ask, answer;
};

/* To call when the signals in question are blocked. It ends with us, has no
 * files open, and neither our name nor our command line: a command that kills us
 * by name does not kill it. */
void mt_witness_start(struct mt_witness *witness);
void mt_witness_stop(struct mt_witness *witness);

/* Did it receive the signal that we have just received? Takes 20 ms: those who
 * signal many processes do it one after the other. What it received so far is
 * forgotten. */
bool mt_witness_saw(const struct mt_witness *witness, int number);

#endif
