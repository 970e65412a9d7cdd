/* See run_identity.h. One line for each launcher, one function for each scheduler. */
#include "run_identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "util.h"

/* Names of variables. NULL: the launcher has none, or there is no second one. */
struct launcher {
    const char *rank, *local_rank, *local_rank_too, *world;
};

/* The innermost launcher comes first: Slurm may start mpirun or torchrun, whose processes are the
 * ranks. */
static const struct launcher launchers[] = {
    {"RANK", "LOCAL_RANK", NULL, "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PMI_SIZE"},
    {"PMIX_RANK", NULL, NULL, NULL},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", NULL, "MV2_COMM_WORLD_SIZE"},
};

/* Returns -1 if the variable is not set, or is not a possible rank. */
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

static struct mt_run_ranks place_of(const struct launcher *launcher)
{
    return (struct mt_run_ranks){number_of(launcher->rank),
                                 either(launcher->local_rank, launcher->local_rank_too),
                                 number_of(launcher->world)};
}

/* The processes of a batch script have the variables of task 0, but are not tasks: their
 * SLURM_NTASKS is the number that was requested. Only a task that srun started has the number of a
 * step. */
static struct mt_run_ranks slurm_task(void)
{
    const struct mt_run_ranks none = {-1, -1, -1};

    if (either("SLURM_STEP_ID", "SLURM_STEPID") < 0 || number_of("SLURM_PROCID") < 0)
        return none;
    return (struct mt_run_ranks){number_of("SLURM_PROCID"), number_of("SLURM_LOCALID"),
                                 either("SLURM_NTASKS", "SLURM_NPROCS")};
}

/* Takes what PMI and PMIx omit from srun, if the ranks are its tasks. */
static void complete(struct mt_run_ranks *place, const struct mt_run_ranks *task)
{
    if (task->rank != place->rank ||
        (place->world >= 0 && task->world >= 0 && place->world != task->world))
        return;
    if (place->local_rank < 0)
        place->local_rank = task->local_rank;
    if (place->world < 0)
        place->world = task->world;
}

/* Returns true if the process called MPI_Init without a launcher. Open MPI 4 then starts a server
 * for this process alone, and sets the variables of rank 0. mpi4py calls MPI_Init in each process
 * that imports it. */
static bool is_singleton_of_mpi(void)
{
    const char *way = getenv("OMPI_MCA_ess");

    return way && strcmp(way, "singleton") == 0;
}

/* Lightning starts the other ranks of a machine itself and does not set RANK. The ranks of the
 * first machine start at 0; those of the next machines depend on a number that no variable has. */
static struct mt_run_ranks lightning(void)
{
    const struct mt_run_ranks none = {-1, -1, -1};
    long local_rank = number_of("LOCAL_RANK");

    if (number_of("NODE_RANK") != 0 || local_rank < 0 || number_of("WORLD_SIZE") <= local_rank)
        return none;
    return (struct mt_run_ranks){local_rank, local_rank, number_of("WORLD_SIZE")};
}

struct mt_run_ranks mt_run_ranks(void)
{
    const struct mt_run_ranks task = slurm_task();

    for (size_t i = 0; i < MT_ARRAY_LEN(launchers); i++) {
        struct mt_run_ranks place = place_of(&launchers[i]);

        if (place.rank < 0 || (is_singleton_of_mpi() && !launchers[i].world))
            continue;
        complete(&place, &task);
        return place;
    }
    if (task.rank >= 0)
        return task;
    return lightning();
}

long mt_run_restart(void)
{
    return either("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT");
}

/* A text that does not fit is omitted: truncated, it could equal another one. */
static bool set_job(char job[MT_JOB_TEXT], const char *kind, const char *id, const char *part)
{
    if (!id || !*id)
        return false;
    int length =
        snprintf(job, MT_JOB_TEXT, "%s:%s%s%s", kind, id, part ? "_" : "", part ? part : "");
    if (length > 0 && length < MT_JOB_TEXT)
        return true;
    job[0] = '\0';
    return false;
}

/* Returns a number other than 0: LSF sets index 0 outside of arrays. */
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

/* torchrun sets "none" if the run has no name. */
static bool torchelastic(char job[MT_JOB_TEXT])
{
    const char *id = getenv("TORCHELASTIC_RUN_ID");

    return id && strcmp(id, "none") && set_job(job, "torchelastic", id, NULL);
}

/* Ray starts workers before it knows their job, with an id that is not a job. */
static bool ray(char job[MT_JOB_TEXT])
{
    const char *id = getenv("RAY_JOB_ID");

    return id && strcmp(id, "ffffffff") && set_job(job, "ray", id, NULL);
}

/* A pod of an indexed Job has the name JOB-INDEX. */
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

/* Job numbers of a scheduler come first, because they are unique. The id of a run is chosen by a
 * user. */
void mt_run_job(const char *host, char job[MT_JOB_TEXT])
{
    job[0] = '\0';
    if (!slurm(job) && !set_job(job, "pbs", getenv("PBS_JOBID"), NULL) &&
        !set_job(job, "lsf", getenv("LSB_JOBID"), index_of("LSB_JOBINDEX")) && !ray(job) &&
        !torchelastic(job))
        kubernetes(host, job);
}
