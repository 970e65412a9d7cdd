#include "fleet_processes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "environment.h"
#include "util.h"

#define MPI_LIBRARY "libmemtrace-mpi.so"

/* Returns true if an MPI launcher started this process as one of several. `srun --mpi=pmix` sets
 * PMIX_RANK without a number of processes. A batch script of Slurm has none of these variables. */
static bool is_one_of_several(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};

    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        const char *size = getenv(sizes[i]);

        if (size && *size)
            return strcmp(size, "1") != 0;
    }
    return getenv("PMIX_RANK") != NULL;
}

int mt_fleet_processes_begin(struct mt_exchange *exchange)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char path[PATH_MAX];

    *exchange = (struct mt_exchange){.size = 1};
    if (!is_one_of_several())
        return MT_EXIT_OK;
    if (mt_collector_library(MPI_LIBRARY, path, &error) == MT_OK &&
        mt_exchange_open(path, exchange, &error) == MT_OK)
        return MT_EXIT_OK;
    mt_message(
        "several processes were started, but they cannot share the work: %s; build memtrace "
        "with MPI, start one process, or give each process a part: --shard 1/8 -o part1.mtsum",
        error.text);
    return MT_EXIT_USAGE;
}

void mt_fleet_processes_end(const struct mt_exchange *exchange, bool has_shared, int code)
{
    if (exchange->size < 2)
        return;
    if (has_shared)
        exchange->finish(exchange->context);
    else
        exchange->give_up(exchange->context, code);
}
