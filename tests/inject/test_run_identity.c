/* Job and rank by the variables of each launcher. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "run_identity.h"

/* "A=1 B=2": these variables and no others. */
static void set_environment(const char *pairs)
{
    char *copy = strdup(pairs), *saved = NULL;

    assert_non_null(copy);
    clearenv();
    for (char *pair = strtok_r(copy, " ", &saved); pair; pair = strtok_r(NULL, " ", &saved)) {
        char *equals = strchr(pair, '=');
        *equals = '\0';
        assert_int_equal(setenv(pair, equals + 1, 1), 0);
    }
    free(copy);
}

TEST(each_launcher_says_its_rank)
{
    static const struct {
        const char *environment;
        long rank, local_rank, world;
    } cases[] = {
        {"", -1, -1, -1},
        {"RANK=5 LOCAL_RANK=1 WORLD_SIZE=8", 5, 1, 8}, /* torchrun, Ray Train */
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_SIZE=4", 3, 3, 4},
        {"PMI_RANK=2 PMI_SIZE=16 MPI_LOCALRANKID=2", 2, 2, 16},
        {"PMI_RANK=2 PMI_SIZE=16 PMI_LOCAL_RANK=1", 2, 1, 16},
        /* srun --mpi=pmi2, --mpi=pmix */
        {"PMI_RANK=3 PMI_SIZE=4 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NTASKS=4 SLURM_STEP_ID=0", 3,
         1, 4},
        {"PMIX_RANK=7 SLURM_PROCID=7 SLURM_LOCALID=3 SLURM_NTASKS=8 SLURM_STEP_ID=0", 7, 3, 8},
        /* another launcher that serves PMIx, in a task of Slurm's, and in a batch script */
        {"PMIX_RANK=7 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_STEP_ID=0", 7, -1, -1},
        {"PMIX_RANK=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8", 0, -1, -1},
        {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_LOCAL_RANK=0 MV2_COMM_WORLD_SIZE=2", 1, 0, 2},
        {"SLURM_PROCID=11 SLURM_LOCALID=3 SLURM_NTASKS=12 SLURM_STEP_ID=0", 11, 3, 12},
        {"SLURM_PROCID=11 SLURM_NPROCS=12 SLURM_STEPID=2", 11, -1, 12},
        /* a batch script, as Slurm 22.05 starts it for --ntasks=8: no step */
        {"SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_NPROCS=8 SLURM_JOB_ID=2", -1, -1, -1},
        /* the numbers of steps that Slurm has for scripts and interactive shells */
        {"SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=4294967290", -1, -1, -1},
        /* torchrun under srun: the worker's own, and none of Slurm's */
        {"SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=9 LOCAL_RANK=1 "
         "WORLD_SIZE=16",
         9, 1, 16},
        {"SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=9", 9, -1, -1},
        {"SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=1 WORLD_SIZE=16", 1,
         -1, 16},
        /* a script that takes the rank from srun */
        {"SLURM_PROCID=5 SLURM_LOCALID=1 SLURM_NTASKS=8 SLURM_STEP_ID=0 RANK=5 WORLD_SIZE=8", 5, 1,
         8},
        {"RANK= SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0", 1, -1, 2},
        {"RANK=-1", -1, -1, -1},
        {"RANK=1x WORLD_SIZE=2", -1, -1, -1},
        {"RANK=2147483647", -1, -1, -1},
        {"RANK=99999999999999999999999", -1, -1, -1},
        {"RANK=1 WORLD_SIZE=two LOCAL_RANK=+1", 1, -1, -1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i].environment);
        struct mt_run_ranks place = mt_run_ranks();
        if (place.rank != cases[i].rank || place.local_rank != cases[i].local_rank ||
            place.world != cases[i].world)
            fail_msg("'%s': %ld, %ld, %ld", cases[i].environment, place.rank, place.local_rank,
                     place.world);
    }
}

TEST(restarts_are_counted)
{
    set_environment("");
    assert_int_equal(mt_run_restart(), -1);
    set_environment("TORCHELASTIC_RESTART_COUNT=2 SLURM_RESTART_COUNT=1");
    assert_int_equal(mt_run_restart(), 2);
    set_environment("SLURM_RESTART_COUNT=1");
    assert_int_equal(mt_run_restart(), 1);
}

TEST(each_scheduler_says_its_job)
{
    static const struct {
        const char *environment, *host, *job;
    } cases[] = {
        {"", "node1", ""},
        {"SLURM_JOB_ID=1234", "node1", "slurm:1234"},
        {"SLURM_JOB_ID=1240 SLURM_ARRAY_JOB_ID=1234 SLURM_ARRAY_TASK_ID=5", "n", "slurm:1234_5"},
        {"SLURM_JOB_ID=1240 SLURM_ARRAY_JOB_ID=1234", "n", "slurm:1240"},
        {"PBS_JOBID=77.server", "n", "pbs:77.server"},
        {"LSB_JOBID=9 LSB_JOBINDEX=0", "n", "lsf:9"},
        {"LSB_JOBID=9 LSB_JOBINDEX=3", "n", "lsf:9_3"},
        {"RAY_JOB_ID=01000000", "n", "ray:01000000"},
        {"RAY_JOB_ID=ffffffff", "n", ""}, /* a worker that Ray 2.60 started beforehand */
        {"RAY_JOB_ID=ffffffff TORCHELASTIC_RUN_ID=my-run", "n", "torchelastic:my-run"},
        {"TORCHELASTIC_RUN_ID=my-run", "n", "torchelastic:my-run"},
        {"TORCHELASTIC_RUN_ID=none", "n", ""},
        {"TORCHELASTIC_RUN_ID=my-run SLURM_JOB_ID=5", "n", "slurm:5"},
        {"TORCHELASTIC_RUN_ID=my-run RAY_JOB_ID=02", "n", "ray:02"},
        {"KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=12", "train-a-12",
         "kubernetes:train-a"},
        {"KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=2", "train-a-12", ""},
        {"KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=2", "-2", ""},
        {"KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=2", "", ""},
        {"KUBERNETES_SERVICE_HOST=10.0.0.1", "train-a-12", ""},
        {"JOB_COMPLETION_INDEX=12", "train-a-12", ""},
        {"SLURM_JOB_ID=", "n", ""},
    };
    char job[MT_JOB_TEXT], text[300] = "SLURM_JOB_ID=";

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i].environment);
        mt_run_job(cases[i].host, job);
        assert_string_equal(job, cases[i].job);
    }
    memset(text + strlen(text), '1', 280); /* cut, it could be another job's */
    set_environment(text);
    mt_run_job("n", job);
    assert_string_equal(job, "");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
