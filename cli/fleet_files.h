/* The files of a job: those on the command line, and those in folders on the command line. */
#ifndef MT_CLI_FLEET_FILES_H
#define MT_CLI_FLEET_FILES_H

#include <stdbool.h>

#include "arena.h"
#include "status.h"

/* Zeroed memory holds no files. */
struct mt_fleet_files {
    struct mt_arena arena;
    const char **paths; /* sorted, each once */
    uint32_t count;
    size_t capacity;
};

/* Adds a file with any name, or the traces, snapshots and summaries below a folder, by their file
 * name extensions. Leaves out a file if it has a summary (FILE.mtsum) that is not older. MT_ERR_IO:
 * a folder cannot be read. */
enum mt_status mt_fleet_files_add(struct mt_fleet_files *files, const char *path,
                                  struct mt_error *error) MT_MUST_USE;

/* Call it after the last file was added. */
void mt_fleet_files_sort(struct mt_fleet_files *files);
void mt_fleet_files_release(struct mt_fleet_files *files);

/* Returns true if there is a summary beside the trace that is not older than the trace. */
bool mt_fleet_has_summary(const char *trace);

#endif
