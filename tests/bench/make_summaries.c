/* make_summaries STAGES REPLICAS SHARDS FOLDER: a summary for each rank of a simulated job, with
 * nearly every list as long as a summary allows: about 50 KB per file. Real runs of a few thousand
 * events write 0.4 to 2.2 KB; this is what the largest ones may have.
 *
 * Ranks of a stage run the same code, so they share their call paths; what each of them measured
 * is random, so that it does not compress. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "simulate_job.h"
#include "summary_file.h"

enum {
    SHARED_FRAMES = 16, /* outermost ones, of all paths */
    OWN_FRAMES = 12,
    LEAVES = 240,
    FINDINGS = 24,
    OWNERS = 24
};

/* A frame with a name that compresses as badly as those of real programs. */
static uint32_t add_frame(struct mt_rank_set *set, uint64_t seed, uint32_t parent)
{
    struct dice dice = {seed};
    uint64_t bits = dice_any(&dice);
    char frame[96];
    int length = snprintf(frame, sizeof frame, "block_%04x.forward model/layers/part_%05x.py:%u",
                          (unsigned)(bits & 0xffff), (unsigned)(bits >> 16 & 0xfffff),
                          (unsigned)(bits >> 40 & 0xfff));

    return mt_rank_set_path(set, parent, frame, (size_t)length);
}

static uint32_t add_path(struct mt_rank_set *set, uint32_t stage, uint32_t leaf)
{
    uint32_t path = MT_NO_PATH;

    for (uint32_t i = 0; i < SHARED_FRAMES; i++)
        path = add_frame(set, i, path);
    for (uint32_t i = 0; i < OWN_FRAMES; i++)
        path = add_frame(set, ((uint64_t)stage * LEAVES + leaf) * OWN_FRAMES + i + 1000, path);
    return path;
}

/* The leaves that the record has, and LEAVES more. */
static void fill_leaves(struct mt_rank_set *set, struct mt_rank_record *record, uint32_t stage,
                        struct dice *dice)
{
    struct mt_record_leaf *leaves =
        mt_arena_array(&set->arena, record->leaf_count + LEAVES, sizeof *leaves);
    uint64_t more = 0;

    memcpy(leaves, record->leaves, record->leaf_count * sizeof *leaves);
    for (uint32_t i = 0; i < LEAVES; i++) {
        struct mt_record_leaf *leaf = &leaves[record->leaf_count++];

        leaf->role = (enum mt_role)(i % MT_ROLE_COUNT);
        leaf->bytes = 512 * (1 + dice_below(dice, 500));
        leaf->blocks = 1 + dice_below(dice, 100);
        leaf->path = add_path(set, stage, i);
        record->role_bytes[leaf->role] += leaf->bytes;
        more += leaf->bytes;
    }
    record->leaves = leaves;
    record->allocated_peak.bytes += more;
    record->reserved_peak.bytes += mt_round_up(more, 20 * MT_MIB);
}

static void fill_times(struct mt_rank_set *set, struct mt_rank_record *record, struct dice *dice)
{
    struct mt_record_step *steps = mt_arena_array(&set->arena, MT_RECORD_STEPS, sizeof *steps);
    struct mt_record_column *columns =
        mt_arena_array(&set->arena, MT_RECORD_COLUMNS, sizeof *columns);
    uint64_t t_ns = record->begin_t_ns;

    for (uint32_t i = 0; i < MT_RECORD_STEPS; i++) {
        uint64_t begin_t_ns = t_ns;

        t_ns += 100000000 + dice_below(dice, 100000000);
        steps[i] = (struct mt_record_step){
            i,
            i,
            begin_t_ns,
            t_ns,
            record->allocated_peak.bytes - 512 * dice_below(dice, 1 << 14),
            record->reserved_peak.bytes - 512 * dice_below(dice, 1 << 14),
            record->allocated_peak.bytes / 2 - 512 * dice_below(dice, 1 << 20)};
    }
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++) {
        columns[i].allocated_bytes = 512 * dice_below(dice, record->allocated_peak.bytes / 512);
        columns[i].reserved_bytes = 512 * dice_below(dice, record->reserved_peak.bytes / 512);
    }
    record->steps = steps;
    record->columns = columns;
    record->step_count = MT_RECORD_STEPS;
    record->column_count = MT_RECORD_COLUMNS;
}

static void fill_texts(struct mt_rank_set *set, struct mt_rank_record *record, struct dice *dice)
{
    struct mt_record_finding *findings = mt_arena_array(&set->arena, FINDINGS, sizeof *findings);
    struct mt_record_owner *owners = mt_arena_array(&set->arena, OWNERS, sizeof *owners);

    for (uint32_t i = 0; i < FINDINGS; i++) {
        findings[i].id = mt_arena_printf(&set->arena, "finding-%02u", (unsigned)i);
        findings[i].title = mt_arena_printf(&set->arena, "%u MiB are kept by block_%u.forward",
                                            (unsigned)dice_below(dice, 1000), (unsigned)i);
        findings[i].bytes = dice_below(dice, MT_GIB);
    }
    for (uint32_t i = 0; i < OWNERS; i++) {
        owners[i].library = mt_arena_printf(&set->arena, "lib%02u.so", (unsigned)i);
        owners[i].bytes = dice_below(dice, MT_MIB);
    }
    record->findings = findings;
    record->owners = owners;
    record->finding_count = FINDINGS;
    record->owner_count = OWNERS;
}

static bool write_file(struct mt_rank_set *set, const char *folder, uint32_t rank)
{
    struct mt_buf bytes = {0};
    struct mt_error error;
    char path[4096];
    FILE *file;
    bool is_written = false;

    snprintf(path, sizeof path, "%s/rank%05u.mtsum", folder, (unsigned)rank);
    if (mt_summary_encode(set, &bytes, &error) == MT_OK && (file = fopen(path, "wb"))) {
        is_written = fwrite(bytes.data, 1, bytes.length, file) == bytes.length;
        is_written = fclose(file) == 0 && is_written;
    }
    mt_buf_release(&bytes);
    return is_written;
}

static bool make_rank(const struct simulated_job *job, uint32_t rank, const char *folder)
{
    uint32_t world = job->stages * job->replicas * job->shards;
    struct dice dice = {rank + (UINT64_C(1) << 32)};
    struct mt_rank_set set = {0};
    bool is_made = simulated_job_add(job, rank, world, &set) && set.record_count == 1;

    if (is_made) {
        fill_leaves(&set, &set.records[0], rank / (job->replicas * job->shards), &dice);
        fill_times(&set, &set.records[0], &dice);
        fill_texts(&set, &set.records[0], &dice);
        is_made = write_file(&set, folder, rank);
    }
    mt_rank_set_release(&set);
    return is_made;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: make_summaries STAGES REPLICAS SHARDS FOLDER\n", stderr);
        return 2;
    }
    struct simulated_job job = simulated_job_new((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]),
                                                 (uint32_t)atoi(argv[3]));
    for (uint32_t rank = 0; rank < job.stages * job.replicas * job.shards; rank++)
        if (!make_rank(&job, rank, argv[4]))
            return 1;
    return 0;
}
