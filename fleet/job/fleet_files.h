/* The files of a job: files on the command line, and files in folders on the command line. */
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

#endif
