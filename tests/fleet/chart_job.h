/* Jobs for pictures: call trees as rich as those of a program, and processes that hand a device
 * over. */
#ifndef TESTS_CHART_JOB_H
#define TESTS_CHART_JOB_H

#include <stdio.h>
#include <string.h>

#include "phase.h"
#include "rank_set.h"
#include "simulate_job.h"
#include "util.h"

#define CHART_START_NS (UINT64_C(1764000000) * 1000000000)
#define CHART_SECOND   UINT64_C(1000000000)

static inline struct mt_rank_record chart_record(int32_t rank, struct mt_record_leaf *leaves)
{
    struct mt_rank_record record = simulated_record(rank, 1000 + (uint64_t)(uint32_t)rank);

    record.identity.job = "slurm:77";
    record.trace_name = "train.trace.zst";
    record.device_name = "NVIDIA H200";
    record.begin_t_ns = CHART_START_NS;
    record.end_t_ns = CHART_START_NS + 60 * CHART_SECOND;
    record.leaves = leaves;
    return record;
}

/* `frames` are separated by '>'. */
static inline void chart_leaf(struct mt_rank_set *set, struct mt_rank_record *record,
                              const char *frames, enum mt_role role, uint64_t bytes)
{
    uint32_t path = MT_NO_PATH;

    while (*frames) {
        size_t length = strcspn(frames, ">");

        path = mt_rank_set_path(set, path, frames, length);
        frames += length + (frames[length] == '>');
    }
    record->leaves[record->leaf_count++] = (struct mt_record_leaf){path, role, bytes, 1, path};
    record->role_bytes[role] += bytes;
    record->allocated_peak.bytes += bytes;
}

/* Four pipeline stages of 32 layers each; the first has the embedding, the last the loss. */
static inline void chart_layers(struct mt_rank_set *set, struct mt_rank_record *record,
                                uint32_t stage)
{
    static const char *const parts[] = {"forward attention.py:88>forward linear.py:134",
                                        "forward mlp.py:41>forward linear.py:134",
                                        "forward norm.py:12"};

    for (uint32_t layer = 0; layer < 8; layer++)
        for (uint32_t part = 0; part < MT_ARRAY_LEN(parts); part++) {
            char frames[256];

            snprintf(
                frames, sizeof frames,
                "main train.py:210>step train.py:47>forward model.py:90>layer%u model.py:%u>%s",
                (unsigned)layer, 100 + (unsigned)layer, parts[part]);
            chart_leaf(set, record, frames, MT_ROLE_ACTIVATIONS,
                       (4 - stage) * (UINT64_C(48) << 20) * (3 - part) + (layer + 1) * MT_MIB);
        }
}

static inline void chart_rank(struct mt_rank_set *set, uint32_t rank, uint32_t ranks)
{
    struct mt_record_leaf leaves[64];
    struct mt_rank_record record = chart_record((int32_t)rank, leaves);
    uint32_t stage = (uint32_t)((uint64_t)rank * 4 / ranks);

    chart_layers(set, &record, stage);
    chart_leaf(set, &record, "main train.py:202>build model.py:20>__init__ linear.py:99",
               MT_ROLE_PARAMETERS, 9 * MT_GIB);
    chart_leaf(set, &record, "main train.py:210>step train.py:52>step adam.py:310",
               MT_ROLE_OPTIMIZER_STATE, 18 * MT_GIB);
    chart_leaf(set, &record, "no stack, in backward", MT_ROLE_GRADIENTS, 4 * MT_GIB);
    if (stage == 0)
        chart_leaf(set, &record, "main train.py:202>build model.py:18>embed embed.py:7",
                   MT_ROLE_PARAMETERS, 6 * MT_GIB);
    if (stage == 3)
        chart_leaf(set, &record, "main train.py:210>step train.py:49>loss train.py:60",
                   MT_ROLE_TEMPORARIES, 5 * MT_GIB);
    if (rank == ranks / 3)
        chart_leaf(set, &record, "main train.py:220>remember train.py:99", MT_ROLE_OTHER,
                   8 * MT_GIB);
    chart_leaf(set, &record, "", MT_ROLE_OTHER, 600 * MT_MIB);
    chart_leaf(set, &record, "", MT_ROLE_WORKSPACE, (200 + rank % 7) * MT_MIB);
    mt_rank_set_add(set, &record);
}

static inline void chart_job(struct mt_rank_set *set, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        chart_rank(set, rank, ranks);
    mt_rank_set_sort(set);
}

/* A process on a device: `low` bytes, and `high` from one share of its life, in 512ths, to
 * another. */
struct chart_tenant {
    const char *job, *uuid;
    int32_t rank;
    uint32_t begin_s, end_s, from, to;
    uint64_t low, high, device_bytes;
};

static inline void chart_tenant(struct mt_rank_set *set, const struct chart_tenant *tenant)
{
    struct mt_record_column columns[MT_RECORD_COLUMNS];
    struct mt_rank_record record = chart_record(tenant->rank, NULL);

    record.identity.job = tenant->job;
    record.identity.process_id += tenant->begin_s + 7 * (uint64_t)(unsigned char)tenant->job[1];
    record.device_uuid = tenant->uuid;
    record.device_bytes = tenant->device_bytes;
    record.begin_t_ns = CHART_START_NS + tenant->begin_s * CHART_SECOND;
    record.end_t_ns = CHART_START_NS + tenant->end_s * CHART_SECOND;
    record.columns = columns;
    record.column_count = MT_RECORD_COLUMNS;
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        columns[i].reserved_bytes =
            i >= tenant->from && i < tenant->to ? tenant->high : tenant->low;
    record.reserved_peak.bytes = tenant->high;
    record.reserved_peak.t_ns =
        record.begin_t_ns + (record.end_t_ns - record.begin_t_ns) / 512 * tenant->from;
    mt_rank_set_add(set, &record);
}

/* An inference server and a trainer take turns: the server lets go of 50 of 62 GiB when the trainer
 * wants its own, and 12 GiB do not come back. */
static inline void chart_hand_over(struct mt_rank_set *set, const char *uuid, int32_t rank,
                                   uint64_t device_bytes)
{
    const struct chart_tenant tenants[] = {
        {"serve", uuid, rank, 0, 512, 30, 220, 12 * MT_GIB, 62 * MT_GIB, device_bytes},
        {"slurm:77", uuid, rank, 5, 512, 240, 470, 6 * MT_GIB, 70 * MT_GIB, device_bytes}};

    chart_tenant(set, &tenants[0]);
    chart_tenant(set, &tenants[1]);
}

#endif
