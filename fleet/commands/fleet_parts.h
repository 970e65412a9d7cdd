/* The parts of `memtrace fleet` that options request: a comparison with another job, and one
 * setting for all ranks. */
#ifndef MT_FLEET_FLEET_PARTS_H
#define MT_FLEET_FLEET_PARTS_H

#include "cli.h"
#include "fleet_job.h"
#include "job_settings.h"

/* memtrace fleet diff: compares the memory that two runs of a job need. */

/* argv[0] is "diff". */
int mt_fleet_diff(int argc, char **argv);

/* memtrace fleet --tune: finds one setting of PyTorch's allocator for all ranks of a job, with
 * replays of their traces (job_settings.h). */

struct mt_fleet_tuning {
    const struct mt_job_report *report;
    /* the files of the report; the traces are in the same folders */
    const struct mt_fleet_files *files;
    const struct mt_common *common;
    uint64_t jobs; /* traces in parallel; 0 = the number of processors */
};

/* Finds the setting in three steps. The first tunes the rank of each cluster that needs the most
 * memory. The second replays the resulting settings on all of these ranks and on the worst ranks.
 * The third searches the smallest limits for the best settings. Prints errors, for example that
 * there is no trace; returns enum mt_exit. Free *settings with mt_job_settings_free. *settings owns
 * its texts and borrows the report. */
int mt_fleet_tune(const struct mt_fleet_tuning *tuning, struct mt_job_settings **settings);

#endif
