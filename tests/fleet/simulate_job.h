/* Jobs of any size with facts that are known because they were planted. Rank = (stage * replicas +
 * replica) * shards + shard: pipeline stages, replicas of data parallelism, shards of tensors. */
#ifndef MT_TESTS_SIMULATE_JOB_H
#define MT_TESTS_SIMULATE_JOB_H

#include "rank_set.h"
#include "util.h"

#define SIMULATED_START_NS (UINT64_C(1764000000) * 1000000000)
enum { SIMULATED_STEPS = 20, NO_RANK = -1, MAX_PLANTED = 8 };

struct simulated_job {
    uint32_t stages, replicas, shards;
    bool has_mesh, has_groups; /* what ranks know of their places */
    bool has_hashes;
    bool has_columns;     /* the course of each run: it rises from 0 to its peak, in ten seconds */
    int32_t leaking_rank; /* keeps 64 MiB more every step */
    int32_t logging_rank; /* holds 700 MiB of logs */
    int32_t talking_rank; /* has a communicator of 600 MiB more */
    int32_t dying_rank;   /* runs out of memory; the others are killed 300 s later */
    int32_t missing[MAX_PLANTED], cut[MAX_PLANTED];
    uint32_t missing_count, cut_count;
    int32_t heavy_stage; /* its forward pass holds 300 MiB more */
    int32_t moved_lines; /* train.py has this many more lines above the loop */
    int32_t restart;
    const char *name;
};

/* A record of host node00 without job, places and numbers, for a test that sets what it needs. */
struct mt_rank_record simulated_record(int32_t rank, uint64_t process_id);

/* A job in which nothing is wrong. */
struct simulated_job simulated_job_new(uint32_t stages, uint32_t replicas, uint32_t shards);

#define SIMULATED_LEAK     (SIMULATED_STEPS * 64 * MT_MIB)
#define SIMULATED_LOGS     (700 * MT_MIB)
#define SIMULATED_TALK     (600 * MT_MIB)
#define SIMULATED_MORE     (300 * MT_MIB)
#define SIMULATED_LIMIT    (80 * MT_GIB)
#define SIMULATED_DEATH_NS (SIMULATED_START_NS + UINT64_C(60) * 1000000000)
#define SIMULATED_WANTED   (2 * MT_GIB)

/* Parameters, and what else a rank of a stage has at its peak when nothing is wrong. */
uint64_t simulated_stage_bytes(const struct simulated_job *job, uint32_t stage);

/* Adds the ranks first, first + stride, ... of the job. False: no memory. */
bool simulated_job_add(const struct simulated_job *job, uint32_t first, uint32_t stride,
                       struct mt_rank_set *set);

#endif
