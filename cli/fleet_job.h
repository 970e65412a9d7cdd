/* One job: its files, the records of its ranks, and its report. */
#ifndef MT_CLI_FLEET_JOB_H
#define MT_CLI_FLEET_JOB_H

#include "cli.h"
#include "fleet_files.h"
#include "gather.h"
#include "job_answers.h"

/* How files are read. */
struct mt_fleet_reading {
    const char *format; /* NULL: detected from the first bytes */
    bool summarize;     /* write a summary beside each trace that has none */
    bool force;         /* ... also over a file that memtrace did not write */
    bool name_all;      /* print the name of every unreadable file of a job, without a limit */
};

/* `load` of struct mt_gather; `context` is a const struct mt_fleet_reading. */
enum mt_status mt_fleet_load(void *context, const char *path, struct mt_rank_set *set,
                             struct mt_error *error);

/* Returns `jobs` or, if it is 0, the number of processors; at most 256. */
uint32_t mt_fleet_threads(uint64_t jobs);

/* Makes the report of a set. `path` and `option` are for messages: what is read, and the option
 * that names a job. Prints errors; returns enum mt_exit. */
struct mt_fleet_naming {
    const char *path, *option, *job, *mesh;
    bool is_base; /* no option names its job */
};
int mt_fleet_make_report(const struct mt_rank_set *set, const struct mt_fleet_files *files,
                         const struct mt_gather_failures *failures,
                         const struct mt_fleet_naming *naming, struct mt_job_report **report);

/* Prints the files that could not be read, sorted by name, and their number. Without `all`,
 * names at most 100. */
void mt_fleet_say_failures(const struct mt_fleet_files *files,
                           const struct mt_gather_failures *failures, bool all);

/* A job given by one path. Zeroed memory holds no job. */
struct mt_fleet_job {
    const char *path; /* borrowed */
    struct mt_fleet_files files;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    struct mt_job_report *report;
};

/* Reads the job. Unreadable files are named and left out; a job without any readable file is an
 * error. Prints errors; returns enum mt_exit. Release it in any case; it must not move until
 * then. */
int mt_fleet_job_open(struct mt_fleet_job *job, const struct mt_fleet_naming *naming,
                      const struct mt_fleet_reading *reading, uint64_t jobs);
void mt_fleet_job_release(struct mt_fleet_job *job);

#endif
