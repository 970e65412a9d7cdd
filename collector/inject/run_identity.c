/* See run_identity.h. One line a launcher, one a job. */
#include "run_identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "util.h"

/* Names of variables; NULL: the launcher has none, or there is no second one. */
struct launcher {
    const char *rank, *local_rank, *local_rank_too, *world, *world_too;
    const char *same; /* the launcher that numbers the ranks alike says the rest; NULL: no need */
};

/* The innermost first: Slurm may start mpirun or torchrun, whose processes are the ranks. PMIx says
 * no more than a rank: Slurm, if it serves it, says the rest. */
static const struct launcher launchers[] = {
    {"RANK", "LOCAL_RANK", NULL, "WORLD_SIZE", NULL, NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, "OMPI_COMM_WORLD_SIZE", NULL,
     NULL},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PMI_SIZE", NULL, NULL},
    {"PMIX_RANK", "SLURM_LOCALID", NULL, "SLURM_NTASKS", NULL, "SLURM_PROCID"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", NULL, "MV2_COMM_WORLD_SIZE", NULL, NULL},
    {"SLURM_PROCID", "SLURM_LOCALID", NULL, "SLURM_NTASKS", "SLURM_NPROCS", NULL},
};

/* -1 if the variable is not set, or holds anything but a number that a rank can have. */
static long number_of(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    uint64_t number;

    return value && mt_decimal_read(value, strlen(value), &number) && number < INT32_MAX
               ? (long)number
               : -1;
}

static long either(const char *name, const char *other)
{
    long number = number_of(name);

    return number >= 0 ? number : number_of(other);
}

struct mt_run_place mt_run_place(void)
{
    struct mt_run_place place = {-1, -1, -1};

    for (size_t i = 0; i < MT_ARRAY_LEN(launchers) && place.rank < 0; i++) {
        const struct launcher *launcher = &launchers[i];

        place.rank = number_of(launcher->rank);
        if (place.rank < 0 || (launcher->same && number_of(launcher->same) != place.rank))
            continue;
        place.local_rank = either(launcher->local_rank, launcher->local_rank_too);
        place.world = either(launcher->world, launcher->world_too);
    }
    return place;
}

long mt_run_restart(void)
{
    return either("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT");
}

/* A text that does not fit would be cut, and equal another one: it is left out. */
static bool set_job(char job[MT_JOB_TEXT], const char *kind, const char *id, const char *part)
{
    int length;

    if (!id || !*id)
        return false;
    length = snprintf(job, MT_JOB_TEXT, "%s:%s%s%s", kind, id, part ? "_" : "", part ? part : "");
    if (length > 0 && length < MT_JOB_TEXT)
        return true;
    job[0] = '\0';
    return false;
}

/* A number that is not 0: LSF has index 0 for what is no array. */
static const char *index_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value && strcmp(value, "0") ? value : NULL;
}

static bool slurm(char job[MT_JOB_TEXT])
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");

    return array && *array && task && *task ? set_job(job, "slurm", array, task)
                                            : set_job(job, "slurm", getenv("SLURM_JOB_ID"), NULL);
}

/* torchrun says "none" where nobody named the run. */
static bool torchelastic(char job[MT_JOB_TEXT])
{
    const char *id = getenv("TORCHELASTIC_RUN_ID");

    return id && strcmp(id, "none") && set_job(job, "torchelastic", id, NULL);
}

/* A pod of an indexed Job is called JOB-INDEX. */
static void kubernetes(const char *host, char job[MT_JOB_TEXT])
{
    const char *index = getenv("JOB_COMPLETION_INDEX");
    size_t length = strlen(host), end = index ? strlen(index) : 0;
    char name[MT_JOB_TEXT];

    if (!getenv("KUBERNETES_SERVICE_HOST") || !end || length < end + 2 || length >= sizeof name ||
        strcmp(host + length - end, index) || host[length - end - 1] != '-')
        return;
    memcpy(name, host, length - end - 1);
    name[length - end - 1] = '\0';
    (void)set_job(job, "kubernetes", name, NULL);
}

/* Numbers of a cluster's scheduler come once; the id of a run is what somebody chose. */
void mt_run_job(const char *host, char job[MT_JOB_TEXT])
{
    job[0] = '\0';
    if (!slurm(job) && !set_job(job, "pbs", getenv("PBS_JOBID"), NULL) &&
        !set_job(job, "lsf", getenv("LSB_JOBID"), index_of("LSB_JOBINDEX")) &&
        !set_job(job, "ray", getenv("RAY_JOB_ID"), NULL) && !torchelastic(job))
        kubernetes(host, job);
}
