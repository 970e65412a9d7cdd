/* What a process left on its tape -> its trace, made whole. */
#ifndef MT_COLLECTOR_RECOVER_H
#define MT_COLLECTOR_RECOVER_H

#include <stdbool.h>

#include "status.h"

struct mt_recovery {
    uint64_t events_written;   /* of before: were in the file already */
    uint64_t events_recovered; /* were on the tape only */
    uint64_t events_missing;   /* were being recorded when the process ended */
    uint64_t events_dropped;   /* the process could not write them fast enough */
    bool was_closed;           /* the process had closed its trace in order */
};

/* Adds what lies on PATH.tape to the trace PATH, ends the trace in order, and
 * removes the tape. A trace that its process had closed, and that misses
 * nothing, only loses its tape. The trace is replaced in one step: whatever
 * fails, both files stay as they were (but for frames behind the tape's last
 * commit, which the tape still holds). MT_ERR_USAGE: the process is still
 * running. MT_ERR_IO with a missing tape: nothing to do. Linear in the trace. */
enum mt_status mt_recover(const char *path, struct mt_recovery *recovery,
                          struct mt_error *error) MT_MUST_USE;

/* Is there a tape beside the trace? */
bool mt_recover_is_needed(const char *path);

#endif
