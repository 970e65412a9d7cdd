/* The traces of a job, by the names in its records. */
#ifndef MT_CLI_FLEET_TRACES_H
#define MT_CLI_FLEET_TRACES_H

#include "fleet_files.h"
#include "rank_record.h"
#include "sha256.h"

struct mt_fleet_trace {
    const char *name, *path;     /* name: without the folder */
    bool is_hashed;              /* `sha256` is known */
    char sha256[MT_SHA256_TEXT]; /* "": the file cannot be read */
};

/* Zeroed memory holds no traces. */
struct mt_fleet_traces {
    struct mt_arena arena;
    struct mt_fleet_trace *list; /* by name, then path */
    size_t count, capacity;
    size_t hashed_count; /* files that were hashed to distinguish files of the same name */
};

/* Lists the files in the folders of `files`, except summaries. A folder that cannot be read has
 * none. MT_ERR_MEMORY. Release it in any case. */
enum mt_status mt_fleet_traces_find(const struct mt_fleet_files *files,
                                    struct mt_fleet_traces *traces) MT_MUST_USE;
void mt_fleet_traces_release(struct mt_fleet_traces *traces);

/* Returns the path of the trace from which a record was made, borrowed from `traces`. If several
 * files have that name, it is the first with the recorded hash. Each file is read at most once, for
 * any number of records. NULL: there is none, and *reason is set. O(log n + files of the name). */
const char *mt_fleet_trace_of(struct mt_fleet_traces *traces, const struct mt_rank_record *record,
                              const char **reason);

/* Checks that the file is the trace from which the record was made. MT_ERR_FORMAT: it is another
 * file. Reads all of it. */
enum mt_status mt_fleet_trace_check(const char *path, const struct mt_rank_record *record,
                                    struct mt_error *error) MT_MUST_USE;

#endif
