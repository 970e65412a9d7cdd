/* write_job STAGES REPLICAS SHARDS FILES FOLDER [FACT=RANK ...]: a simulated job as summaries, its
 * ranks dealt out to FILES files. Facts: leak, logs, talk, die, miss, cut; heavy=STAGE and
 * moved=LINES change the program, mesh=0 leaves the mesh out, restart=N is the number of the start.
 */
#include "simulate_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "summary_file.h"

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
}

static bool write_file(const struct simulated_job *job, uint32_t first, uint32_t stride,
                       const char *folder)
{
    struct mt_rank_set set = {0};
    struct mt_buf bytes = {0};
    struct mt_error error;
    char path[4096];
    FILE *file;
    bool is_written = false;

    snprintf(path, sizeof path, "%s/rank%05u.mtsum", folder, (unsigned)first);
    if (simulated_job_add(job, first, stride, &set) &&
        mt_summary_encode(&set, &bytes, &error) == MT_OK && (file = fopen(path, "wb"))) {
        is_written = fwrite(bytes.data, 1, bytes.length, file) == bytes.length;
        is_written = fclose(file) == 0 && is_written;
    }
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
    return is_written;
}

int main(int argc, char **argv)
{
    struct simulated_job job;
    uint32_t files;

    if (argc < 6) {
        fputs("usage: write_job STAGES REPLICAS SHARDS FILES FOLDER [FACT=RANK ...]\n", stderr);
        return 2;
    }
    job = simulated_job_new((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]),
                            (uint32_t)atoi(argv[3]));
    files = (uint32_t)atoi(argv[4]);
    for (int i = 6; i < argc; i++)
        plant(&job, argv[i]);
    for (uint32_t i = 0; i < files; i++)
        if (!write_file(&job, i, files, argv[5]))
            return 1;
    return 0;
}
