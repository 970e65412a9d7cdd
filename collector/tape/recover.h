/* Completes the trace of a dead process with the events on its tape. */
#ifndef MT_COLLECTOR_RECOVER_H
#define MT_COLLECTOR_RECOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "status.h"
#include "temporary_file.h"

struct mt_recovery {
    uint64_t events_written;   /* were already in the file, according to the tape */
    uint64_t events_recovered; /* were only on the tape; 0 if the recovery failed */
    uint64_t events_missing;   /* were not complete when the process ended */
    uint64_t events_dropped;   /* the process could not write them */
    uint64_t events_on_tape;   /* upper bound of those that the file did not have */
    bool has_tape;             /* the tape could be read: the numbers above are known */
    bool was_closed;           /* the process had closed its trace */
};

/* Adds the events of PATH.tape to the trace PATH, closes the trace, and removes the tape. If the
 * process had closed its trace and nothing is missing, only the tape is removed.
 *
 * The tape must name the trace. The new trace is written beside the old one, read
 * back, and replaces it in one step; then the tape is removed. If anything fails, both files stay
 * byte for byte as they were. That includes a trace that is damaged or lacks events that the tape
 * records as written. `unfinished` (may be NULL) lists the new trace meanwhile.
 *
 * MT_ERR_USAGE: the process is still running. MT_ERR_IO with a missing tape: nothing to do.
 * Linear in the trace. */
enum mt_status mt_recover(const char *path, struct mt_unfinished *unfinished,
                          struct mt_recovery *recovery, struct mt_error *error) MT_MUST_USE;

/* Returns true if there is a tape beside the trace. Does not allocate. */
bool mt_recover_is_needed(const char *path);

/* Writes the events that the ring at `path` keeps now to the new file `target`, while its process
 * runs. What was committed to the tape less than a moment ago may be missing (MEMTRACE_FLUSH_MS).
 * MT_ERR_USAGE: the process has not written anything. Linear in the parts. */
enum mt_status mt_ring_save(const char *path, const char *target, struct mt_unfinished *unfinished,
                            struct mt_error *error) MT_MUST_USE;

/* A trace that replaces another one: written to a temporary file beside it, read back, and
 * renamed only if it is sound. Until then, and after any failure, the old trace is unchanged. */

struct mt_replacement {
    const char *path; /* borrowed: what is replaced */
    struct mt_temporary file;
};

/* Creates an empty file, readable by its owner only, in the folder of `path`. A signal handler
 * can remove the files of `list` (borrowed, may be NULL). */
enum mt_status mt_replacement_begin(struct mt_replacement *self, const char *path,
                                    struct mt_unfinished *list, struct mt_error *error) MT_MUST_USE;

struct mt_replacement_facts {
    const struct stat *old; /* of the file that is replaced; NULL = there is none */
    uint64_t events;        /* number of events that were written, including the end record */
    bool ended;             /* the trace was finished */
};

/* Reads the new trace back and renames it to `path`, with the owner and the mode of the old file.
 * Fails if it does not contain the events that were written, if a frame is damaged, or if `path`
 * has become another file meanwhile. */
enum mt_status mt_replacement_finish(struct mt_replacement *self,
                                     const struct mt_replacement_facts *facts,
                                     struct mt_error *error) MT_MUST_USE;

/* Removes an unfinished file. Accepts zeroed memory with file.fd = -1. */
void mt_replacement_release(struct mt_replacement *self);

#endif
