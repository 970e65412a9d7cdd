/* The traces of a job, by the names that its records have for them. */
#ifndef MT_CLI_FLEET_TRACES_H
#define MT_CLI_FLEET_TRACES_H

#include "fleet_files.h"
#include "rank_record.h"

struct mt_fleet_trace {
    const char *name, *path; /* name: without the folder */
};

/* Zeroed memory is none. */
struct mt_fleet_traces {
    struct mt_arena arena;
    struct mt_fleet_trace *list; /* by name, then path */
    size_t count, capacity;
};

/* Lists the files in the folders of `files`, except summaries. A folder that cannot be read has
 * none. MT_ERR_MEMORY. Release it in any case. */
enum mt_status mt_fleet_traces_find(const struct mt_fleet_files *files,
                                    struct mt_fleet_traces *traces) MT_MUST_USE;
void mt_fleet_traces_release(struct mt_fleet_traces *traces);

/* Returns the path of the trace from which a record was made, borrowed from `traces`, or NULL if no
 * file has its name. If several files have that name, reads them to find the first with the
 * record's hash. Otherwise O(log n). */
const char *mt_fleet_trace_of(const struct mt_fleet_traces *traces,
                              const struct mt_rank_record *record);

/* Is the file the one that was summarized? MT_ERR_FORMAT: it is another one. Reads all of it. */
enum mt_status mt_fleet_trace_check(const char *path, const struct mt_rank_record *record,
                                    struct mt_error *error) MT_MUST_USE;

#endif
