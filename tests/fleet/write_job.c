/* write_job STAGES REPLICAS SHARDS FILES FOLDER [FACT=RANK ...]: a simulated job as summaries, its
 * ranks dealt out to FILES files. Facts: leak, logs, talk, die, miss, cut; heavy=STAGE and
 * moved=LINES change the program, mesh=0 leaves the mesh out, restart=N is the number of the start.
 * columns=1 gives each rank a smooth course, waves=1 one that goes up and down with its steps and
 * differs from rank to rank. job=NAME names the job. */
#include "simulate_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "summary_file.h"

/* Numbers that are the same on every machine. */
struct random {
    uint64_t state;
};

static uint64_t next_random(struct random *random)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random->state >> 33;
}

static void plant(struct simulated_job *job, const char *fact)
{
    const char *value = strchr(fact, '=');
    size_t length = value ? (size_t)(value - fact) : 0;
    int32_t number = value ? atoi(value + 1) : 0;
    const struct {
        const char *name;
        int32_t *rank;
    } ranks[] = {{"leak", &job->leaking_rank}, {"logs", &job->logging_rank},
                 {"talk", &job->talking_rank}, {"die", &job->dying_rank},
                 {"heavy", &job->heavy_stage}, {"moved", &job->moved_lines},
                 {"restart", &job->restart}};

    for (size_t i = 0; i < MT_ARRAY_LEN(ranks); i++)
        if (strlen(ranks[i].name) == length && !strncmp(fact, ranks[i].name, length))
            *ranks[i].rank = number;
    if (length == 4 && !strncmp(fact, "miss", 4) && job->missing_count < MAX_PLANTED)
        job->missing[job->missing_count++] = number;
    if (length == 3 && !strncmp(fact, "cut", 3) && job->cut_count < MAX_PLANTED)
        job->cut[job->cut_count++] = number;
    if (length == 4 && !strncmp(fact, "mesh", 4))
        job->has_mesh = number != 0;
    if (length == 3 && !strncmp(fact, "job", 3))
        job->name = value + 1;
    if (length == 7 && !strncmp(fact, "columns", 7))
        job->has_columns = number != 0;
}

/* Every level is below the peak, which the last quarter of each step reaches. */
static void make_waves(struct mt_rank_record *record)
{
    struct random dice = {(uint64_t)record->identity.rank * 2654435761u + 1};
    const uint64_t low = record->role_bytes[MT_ROLE_PARAMETERS];
    const uint64_t high = record->allocated_peak.bytes - low;
    uint64_t reserved = low;

    for (uint32_t i = 0; i < record->column_count; i++) {
        uint64_t part = (uint64_t)i * SIMULATED_STEPS % record->column_count;
        uint64_t share = part * 1000 / record->column_count;
        uint64_t level = low + high / 1000 * mt_min_u64(share + share / 3, 990);

        level += high / 1000 * (next_random(&dice) % 10);
        reserved = mt_max_u64(
            reserved, mt_min_u64(mt_round_up(level, 20 * MT_MIB), record->reserved_peak.bytes));
        record->columns[i] = (struct mt_record_column){level, reserved};
    }
    record->allocated_peak.t_ns = record->begin_t_ns + (record->end_t_ns - record->begin_t_ns) / 2;
    record->reserved_peak.t_ns = record->allocated_peak.t_ns;
}

static bool has_waves(int argc, char **argv)
{
    for (int i = 6; i < argc; i++)
        if (!strcmp(argv[i], "waves=1"))
            return true;
    return false;
}

static bool write_file(const struct simulated_job *job, uint32_t first, uint32_t stride, bool waves,
                       const char *folder)
{
    struct mt_rank_set set = {0};
    struct mt_buf bytes = {0};
    struct mt_error error;
    char path[4096];
    FILE *file;
    bool is_written = false;

    snprintf(path, sizeof path, "%s/rank%05u.mtsum", folder, (unsigned)first);
    if (!simulated_job_add(job, first, stride, &set)) {
        mt_rank_set_release(&set);
        return false;
    }
    for (uint32_t i = 0; waves && i < set.record_count; i++)
        make_waves(&set.records[i]);
    mt_rank_set_sort(&set);
    if (mt_summary_encode(&set, &bytes, &error) == MT_OK && (file = fopen(path, "wb"))) {
        is_written = fwrite(bytes.data, 1, bytes.length, file) == bytes.length;
        is_written = fclose(file) == 0 && is_written;
    }
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
    return is_written;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fputs("usage: write_job STAGES REPLICAS SHARDS FILES FOLDER [FACT=RANK ...]\n", stderr);
        return 2;
    }
    struct simulated_job job = simulated_job_new((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]),
                                                 (uint32_t)atoi(argv[3]));
    uint32_t files = (uint32_t)atoi(argv[4]);
    for (int i = 6; i < argc; i++)
        plant(&job, argv[i]);
    job.has_columns |= has_waves(argc, argv);
    for (uint32_t i = 0; i < files; i++)
        if (!write_file(&job, i, files, has_waves(argc, argv), argv[5]))
            return 1;
    return 0;
}
