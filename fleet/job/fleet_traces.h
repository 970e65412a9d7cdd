/* Finds the traces of a job by the names in its records. */
#ifndef MT_CLI_FLEET_TRACES_H
#define MT_CLI_FLEET_TRACES_H

#include "fleet_job.h"
#include "rank_record.h"
#include "sha256.h"

struct mt_fleet_trace {
    const char *name, *path;     /* name: path without the folder */
    bool is_hashed;              /* `sha256` is known */
    char sha256[MT_SHA256_TEXT]; /* "": the file cannot be read */
};

/* Zeroed memory holds no traces. */
struct mt_fleet_traces {
    struct mt_arena arena;
    struct mt_fleet_trace *list; /* by name, then path */
    size_t count, capacity;
    /* number of files that were hashed because another file has the same name */
    size_t hashed_count;
};

/* Lists the files in the folders of `files`, except summaries. Ignores folders that cannot be read.
 * Release *traces in any case. */
void mt_fleet_traces_find(const struct mt_fleet_files *files, struct mt_fleet_traces *traces);
void mt_fleet_traces_release(struct mt_fleet_traces *traces);

/* Returns the path of the trace from which a record was made, borrowed from `traces`. If several
 * files have the recorded name, returns the first one with the recorded hash. Reads each file at
 * most once for any number of records. If there is no such trace, returns NULL and sets *reason.
 * O(log n + number of files with the name). */
const char *mt_fleet_trace_of(struct mt_fleet_traces *traces, const struct mt_rank_record *record,
                              const char **reason);

/* Reads the whole file and checks that it is the trace from which the record was made. Returns
 * MT_ERR_FORMAT if it is another file. */
enum mt_status mt_fleet_trace_check(const char *path, const struct mt_rank_record *record,
                                    struct mt_error *error) MT_MUST_USE;

#endif
