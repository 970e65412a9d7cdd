#include "simulate_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phase.h"

struct mt_rank_record simulated_record(int32_t rank, uint64_t process_id)
{
    return (struct mt_rank_record){.identity = {.host = "node00",
                                                .boot_id = "",
                                                .job = "",
                                                .process_id = process_id,
                                                .rank = rank,
                                                .local_rank = -1,
                                                .world = -1,
                                                .restart = -1},
                                   .trace_name = "t",
                                   .trace_sha256 = "",
                                   .device_name = "",
                                   .device_uuid = "",
                                   .device_pci = "",
                                   .device_mig = "",
                                   .death_path = MT_NO_PATH,
                                   .death_site = MT_NO_PATH,
                                   .growth_site = MT_NO_PATH,
                                   .last_step = MT_NO_STEP};
}

struct simulated_job simulated_job_new(uint32_t stages, uint32_t replicas, uint32_t shards)
{
    return (struct simulated_job){.stages = stages,
                                  .replicas = replicas,
                                  .shards = shards,
                                  .has_mesh = true,
                                  .has_hashes = true,
                                  .leaking_rank = NO_RANK,
                                  .logging_rank = NO_RANK,
                                  .talking_rank = NO_RANK,
                                  .dying_rank = NO_RANK,
                                  .heavy_stage = NO_RANK,
                                  .name = "slurm:77"};
}

static bool is_among(const int32_t *ranks, uint32_t count, int32_t rank)
{
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] == rank)
            return true;
    return false;
}

/* What a rank has of a role, from where. */
struct holding {
    const char *frames[3];
    enum mt_role role;
    uint64_t bytes;
};
enum { MAX_HOLDINGS = 8, MAX_LEAVES = 8 };

static uint64_t parameter_bytes(uint32_t stage)
{
    return 10 * MT_GIB + (stage ? 0 : 2 * MT_GIB); /* the first stage has the embedding */
}

static uint64_t activation_bytes(const struct simulated_job *job, uint32_t stage)
{
    return (uint64_t)(job->stages - stage) * 512 * MT_MIB;
}

uint64_t simulated_stage_bytes(const struct simulated_job *job, uint32_t stage)
{
    return parameter_bytes(stage) + activation_bytes(job, stage);
}

static uint32_t find_holdings(const struct simulated_job *job, int32_t rank, uint32_t stage,
                              struct holding *holdings)
{
    uint32_t count = 0;

    holdings[count++] = (struct holding){{"main train.py:10", "build model.py:20", NULL},
                                         MT_ROLE_PARAMETERS,
                                         parameter_bytes(stage)};
    holdings[count++] = (struct holding){
        {"main train.py:12", "step train.py:47", "forward model.py:88"},
        MT_ROLE_ACTIVATIONS,
        activation_bytes(job, stage) + (job->heavy_stage == (int32_t)stage ? SIMULATED_MORE : 0)};
    /* Up to 4 MiB that differ from rank to rank. */
    holdings[count++] =
        (struct holding){{"main train.py:12", "step train.py:47", "loss train.py:60"},
                         MT_ROLE_TEMPORARIES,
                         512 * (1 + (uint64_t)(uint32_t)rank * 2654435761u % 8191)};
    if (rank == job->leaking_rank)
        holdings[count++] =
            (struct holding){{"main train.py:12", "step train.py:47", "remember train.py:99"},
                             MT_ROLE_OTHER,
                             SIMULATED_LEAK};
    if (rank == job->logging_rank)
        holdings[count++] = (struct holding){
            {"main train.py:14", "log logs.py:5", NULL}, MT_ROLE_OTHER, SIMULATED_LOGS};
    return count;
}

/* "step train.py:47" is "step train.py:57" after ten lines more. */
static const char *moved_frame(const struct simulated_job *job, const char *frame, char room[64])
{
    const char *line = strstr(frame, "train.py:");

    if (!job->moved_lines || !line)
        return frame;
    line += strlen("train.py:");
    snprintf(room, 64, "%.*s%d", (int)(line - frame), frame, atoi(line) + (int)job->moved_lines);
    return room;
}

/* The site of a leaf is its innermost frame, below the caller of that. */
static bool add_leaves(const struct simulated_job *job, struct mt_rank_set *set,
                       const struct holding *holdings, uint32_t count,
                       struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mt_record_leaf *leaf = &record->leaves[record->leaf_count++];
        int depth = holdings[i].frames[2] ? 3 : 2;

        *leaf =
            (struct mt_record_leaf){MT_NO_PATH, holdings[i].role, holdings[i].bytes, 1, MT_NO_PATH};
        for (int f = 0; f < depth; f++) {
            char room[64];
            const char *frame = moved_frame(job, holdings[i].frames[f], room);

            leaf->path = mt_rank_set_path(set, leaf->path, frame, strlen(frame));
            if (f + 2 >= depth)
                leaf->site = mt_rank_set_path(set, leaf->site, frame, strlen(frame));
        }
        record->role_bytes[leaf->role] += leaf->bytes;
        record->allocated_peak.bytes += leaf->bytes;
    }
    return true;
}

#define RISE_NS (UINT64_C(10) * 1000000000)

static void add_columns(struct mt_rank_record *record)
{
    uint64_t length_ns = record->end_t_ns - record->begin_t_ns;

    for (uint64_t i = 0; i < MT_RECORD_COLUMNS; i++) {
        uint64_t at_ns = (i + 1) * length_ns / MT_RECORD_COLUMNS;
        uint64_t share = mt_min_u64(at_ns, RISE_NS) / (RISE_NS / 1000);

        record->columns[i] =
            (struct mt_record_column){record->allocated_peak.bytes / 1000 * share,
                                      share == 1000 ? record->reserved_peak.bytes
                                                    : record->reserved_peak.bytes / 1000 * share};
    }
    record->column_count = MT_RECORD_COLUMNS;
}

struct places {
    uint32_t stage, replica, shard;
};

static void add_places(const struct simulated_job *job, const struct places *at, int32_t rank,
                       struct mt_rank_record *record)
{
    struct mt_record_axis *axes = record->identity.axes;
    struct mt_record_group *groups = record->identity.groups;
    uint32_t pipe = job->replicas * job->shards;

    if (job->has_mesh) {
        axes[0] = (struct mt_record_axis){"pp", at->stage, job->stages};
        axes[1] = (struct mt_record_axis){"dp", at->replica, job->replicas};
        axes[2] = (struct mt_record_axis){"tp", at->shard, job->shards};
        record->identity.axis_count = 3;
    }
    if (job->has_groups) {
        uint32_t number = (uint32_t)rank;

        groups[0] = (struct mt_record_group){
            "mesh_dp",   job->replicas,        number - at->replica * job->shards,
            job->shards, (int32_t)at->replica, number};
        groups[1] = (struct mt_record_group){
            "mesh_pp", job->stages, number - at->stage * pipe, pipe, (int32_t)at->stage, number};
        groups[2] = (struct mt_record_group){"mesh_tp", job->shards,        number - at->shard,
                                             1,         (int32_t)at->shard, number};
        groups[3] = (struct mt_record_group){"world", job->stages * pipe, 0, 1, rank, 0};
        record->identity.group_count = 4;
    }
}

static void add_steps(struct mt_rank_record *record, uint64_t leak_bytes)
{
    for (uint32_t i = 0; i < SIMULATED_STEPS; i++) {
        uint64_t less = leak_bytes / SIMULATED_STEPS * (SIMULATED_STEPS - 1 - i);

        record->steps[i] =
            (struct mt_record_step){.first = i,
                                    .last = i,
                                    .begin_t_ns = record->begin_t_ns + i * UINT64_C(1000000000),
                                    .end_t_ns = record->begin_t_ns + (i + 1) * UINT64_C(1000000000),
                                    .allocated_peak_bytes = record->allocated_peak.bytes - less,
                                    .reserved_peak_bytes = record->reserved_peak.bytes - less,
                                    .end_allocated_bytes = record->role_bytes[MT_ROLE_PARAMETERS]};
    }
    record->step_count = SIMULATED_STEPS;
    record->last_step = SIMULATED_STEPS - 1;
    record->growth_is_judged = true;
    record->growth_bytes_per_step = leak_bytes / SIMULATED_STEPS;
}

static void add_end(const struct simulated_job *job, int32_t rank, struct mt_rank_record *record)
{
    struct mt_record_identity *identity = &record->identity;

    record->outcome = MT_OUTCOME_FINISHED;
    identity->ended = MT_ENDED_EXIT;
    identity->ended_t_ns = record->end_t_ns;
    if (job->dying_rank == rank) {
        record->outcome = MT_OUTCOME_OOM;
        record->has_death = true;
        record->death_t_ns = SIMULATED_DEATH_NS;
        record->death_wanted_bytes = SIMULATED_WANTED;
        record->death_path = record->leaves[1].path;
        record->death_site = record->leaves[1].site;
        identity->ended_number = 1;
        identity->ended_t_ns = SIMULATED_DEATH_NS + 1000000;
    } else if (job->dying_rank != NO_RANK) {
        record->outcome = MT_OUTCOME_KILLED;
        identity->ended = MT_ENDED_SIGNAL;
        identity->ended_number = 6;
        identity->ended_t_ns = SIMULATED_DEATH_NS + UINT64_C(300) * 1000000000;
    }
    if (is_among(job->cut, job->cut_count, rank)) {
        record->outcome = MT_OUTCOME_CUT;
        record->is_complete = false;
        identity->ended = MT_ENDED_UNKNOWN;
        identity->ended_t_ns = 0;
    }
    record->end_t_ns = mt_max_u64(record->end_t_ns, identity->ended_t_ns);
}

static void add_driver(const struct simulated_job *job, int32_t rank, struct mt_rank_record *record)
{
    uint64_t more = rank == job->talking_rank ? SIMULATED_TALK : 0;

    record->owners[0] = (struct mt_record_owner){"NCCL", 300 * MT_MIB + more};
    record->owners[1] = (struct mt_record_owner){"cuBLAS", 64 * MT_MIB};
    record->owner_count = 2;
    record->has_driver = record->has_context = true;
    record->outside_bytes = 364 * MT_MIB + more;
    record->context_bytes = 500 * MT_MIB;
    record->needed_bytes =
        record->reserved_peak.bytes + record->outside_bytes + record->context_bytes;
    record->needed_is_known = record->allocator_need_is_known = rank != job->dying_rank;
    record->allocator_need_bytes = record->allocator_need_low_bytes = record->reserved_peak.bytes;
}

static bool add_rank(const struct simulated_job *job, int32_t rank, struct mt_rank_set *set)
{
    uint32_t number = (uint32_t)rank, pipe = job->replicas * job->shards;
    struct places at = {number / pipe, number / job->shards % job->replicas, number % job->shards};
    struct mt_record_axis axes[3];
    struct mt_record_group groups[4];
    struct mt_record_leaf leaves[MAX_LEAVES];
    struct mt_record_owner owners[2];
    struct mt_record_step steps[SIMULATED_STEPS];
    struct mt_record_column columns[MT_RECORD_COLUMNS];
    struct holding holdings[MAX_HOLDINGS];
    char host[32], trace[32], uuid[32];
    struct mt_rank_record record = {.identity = {.host = host,
                                                 .boot_id = "",
                                                 .job = job->name,
                                                 .process_id = 1000 + number,
                                                 .rank = rank,
                                                 .local_rank = rank % 8,
                                                 .world = (int32_t)(job->stages * pipe),
                                                 .restart = job->restart,
                                                 .rank_origin = MT_RANK_RECORDED,
                                                 .memory_limit_bytes = SIMULATED_LIMIT,
                                                 .axes = axes,
                                                 .groups = groups},
                                    .trace_name = trace,
                                    .trace_sha256 = "",
                                    .device_name = "NVIDIA H200",
                                    .device_uuid = uuid,
                                    .device_pci = "",
                                    .device_mig = "",
                                    .device_bytes = 141 * MT_GIB,
                                    .is_complete = true,
                                    .begin_t_ns = SIMULATED_START_NS,
                                    .end_t_ns = SIMULATED_START_NS + UINT64_C(60) * 1000000000,
                                    .death_path = MT_NO_PATH,
                                    .death_site = MT_NO_PATH,
                                    .growth_site = MT_NO_PATH,
                                    .device = (uint16_t)(number % 8),
                                    .steps = steps,
                                    .columns = columns,
                                    .leaves = leaves,
                                    .owners = owners};

    snprintf(host, sizeof host, "node%02u", number / 8);
    snprintf(trace, sizeof trace, "train-%u.trace.zst", number);
    snprintf(uuid, sizeof uuid, "GPU-%08x", number);
    if (!add_leaves(job, set, holdings, find_holdings(job, rank, at.stage, holdings), &record))
        return false;
    record.reserved_peak.bytes = mt_round_up(record.allocated_peak.bytes, 20 * MT_MIB);
    record.requested_peak = record.active_peak = record.allocated_peak;
    if (job->has_hashes)
        record.parameter_hash = 1 + parameter_bytes(at.stage) + (at.stage == job->stages - 1);
    add_places(job, &at, rank, &record);
    add_steps(&record, rank == job->leaking_rank ? SIMULATED_LEAK : 0);
    if (rank == job->leaking_rank)
        record.growth_site = record.leaves[3].site;
    add_driver(job, rank, &record);
    add_end(job, rank, &record);
    if (job->has_columns)
        add_columns(&record);
    mt_rank_set_add(set, &record);
    return true;
}

bool simulated_job_add(const struct simulated_job *job, uint32_t first, uint32_t stride,
                       struct mt_rank_set *set)
{
    uint32_t world = job->stages * job->replicas * job->shards;

    for (uint32_t rank = first; rank < world; rank += stride)
        if (!is_among(job->missing, job->missing_count, (int32_t)rank) &&
            !add_rank(job, (int32_t)rank, set))
            return false;
    return true;
}
