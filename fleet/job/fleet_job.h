/* A job: its files, the records of its ranks, and its report. */
#ifndef MT_CLI_FLEET_JOB_H
#define MT_CLI_FLEET_JOB_H

#include <stdbool.h>

#include "arena.h"
#include "cli.h"
#include "gather.h"
#include "job_answers.h"
#include "status.h"

/* The files of a job: files on the command line, and files in folders on the command line. */

/* Zeroed memory holds no files. */
struct mt_fleet_files {
    struct mt_arena arena;
    const char **paths; /* sorted, each once */
    uint32_t count;
    size_t capacity;
};

/* Adds a file with any name, or all traces, snapshots and summaries below a folder, which it
 * recognizes by their extensions. Omits a file in a folder if a summary (FILE.mtsum) that is not
 * older is beside it. Returns MT_ERR_IO if a folder cannot be read. */
enum mt_status mt_fleet_files_add(struct mt_fleet_files *files, const char *path,
                                  struct mt_error *error) MT_MUST_USE;

/* Sorts the paths, and removes duplicates and the summaries of traces that are in the list: such a
 * summary is older than its trace, or is read in its place. Call it after the last file was added.
 */
void mt_fleet_files_sort(struct mt_fleet_files *files);
void mt_fleet_files_release(struct mt_fleet_files *files);

/* Returns true if a summary that is not older than the trace is beside it. */
bool mt_fleet_has_summary(const char *trace);

/* How files are read. */
struct mt_fleet_reading {
    bool summarize; /* write a summary beside each trace without one */
    bool force;     /* such a summary may replace a file that memtrace did not write */
    bool name_all;  /* print the names of all unreadable files of a job */
};

/* `load` of struct mt_gather; `context` is a const struct mt_fleet_reading. */
enum mt_status mt_fleet_load(void *context, const char *path, struct mt_rank_set *set,
                             struct mt_error *error);

/* Returns `jobs` or, if it is 0, the number of processors; at most 256. */
uint32_t mt_fleet_threads(uint64_t jobs);

/* How to select a job. `path` (the input) and `option` (the option that names a job; NULL: none)
 * are used only in messages. */
struct mt_fleet_naming {
    const char *path, *option, *job, *mesh;
    bool is_base; /* the job is that of --base; no option selects it by name */
};

/* Makes the report of a set. Prints errors; returns enum mt_exit. */
int mt_fleet_make_report(const struct mt_rank_set *set, const struct mt_fleet_files *files,
                         const struct mt_gather_failures *failures,
                         const struct mt_fleet_naming *naming, struct mt_job_report **report);

/* Prints the number of files that could not be read, and their names in sorted order. Without
 * `all`, prints at most 100 names. */
void mt_fleet_print_failures(const struct mt_fleet_files *files,
                             const struct mt_gather_failures *failures, bool all);

/* A job that is read from one path. Zeroed memory holds no job. */
struct mt_fleet_job {
    const char *path; /* borrowed */
    struct mt_fleet_files files;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    struct mt_job_report *report;
};

/* Reads the job. Prints the names of unreadable files and omits them. A job without any readable
 * file is an error. Prints errors; returns enum mt_exit. Release *job in any case. *job must not
 * move before that. */
int mt_fleet_job_open(struct mt_fleet_job *job, const struct mt_fleet_naming *naming,
                      const struct mt_fleet_reading *reading, uint64_t jobs);
void mt_fleet_job_release(struct mt_fleet_job *job);

#endif
