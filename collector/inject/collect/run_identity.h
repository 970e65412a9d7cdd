/* Identifies this process within its job by the variables that launchers set. */
#ifndef MT_INJECT_RUN_IDENTITY_H
#define MT_INJECT_RUN_IDENTITY_H

enum { MT_JOB_TEXT = 256 };

/* The numbers from the variables of one launcher, the first that sets a rank. A number that is not
 * known is -1. */
struct mt_run_ranks {
    long rank, local_rank, world;
};

struct mt_run_ranks mt_run_ranks(void);

/* Returns how often the launcher has restarted this process; -1 = not known. */
long mt_run_restart(void);

/* Sets `job` to "slurm:1234", "slurm:1234_5", "pbs:...", "lsf:...", "ray:...", "torchelastic:..."
 * or "kubernetes:..."; to "" if no launcher set a job. `host` is the name of this machine. */
void mt_run_job(const char *host, char job[MT_JOB_TEXT]);

#endif
