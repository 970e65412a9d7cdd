/* Identifies this process within its job by the variables that launchers set. */
#ifndef MT_INJECT_RUN_IDENTITY_H
#define MT_INJECT_RUN_IDENTITY_H

#include <stddef.h>

enum { MT_JOB_TEXT = 256 };

/* The values of one launcher: the first one whose variables have a rank. Numbers are -1 if they
 * are not known. */
struct mt_run_place {
    long rank, local_rank, world;
};

struct mt_run_place mt_run_place(void);

/* How often the launcher started this process again, -1 = not known. */
long mt_run_restart(void);

/* "slurm:1234", "slurm:1234_5", "pbs:...", "lsf:...", "ray:...", "torchelastic:...",
 * "kubernetes:..."; "" if there is none. `host` is the name of this machine. */
void mt_run_job(const char *host, char job[MT_JOB_TEXT]);

#endif
