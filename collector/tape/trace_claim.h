/* A claim on the name of a trace. Only the process that has the claim may remove a trace of this
 * name.
 *
 * The claim is an empty file beside the trace. Its name is a hash of the name of the trace. The
 * process that holds the lock (flock) on the file has the claim, so a claim ends with its process.
 * If a killed process leaves the file, the next claim takes it over, or it is removed: by the
 * command when it ends, or as a leftover (manifest.h). */
#ifndef MT_COLLECTOR_TRACE_CLAIM_H
#define MT_COLLECTOR_TRACE_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"
#include "temporary_file.h"

/* Zeroed memory: no claim. */
struct mt_trace_claim {
    char *file; /* PRIVATE; from malloc; NULL: none */
    int fd;
    struct mt_unfinished *list;
};

/* Claims the trace at `path`. MT_OK with *is_ours false: another process has it. A fatal signal
 * removes the file if `list` (borrowed, may be NULL) has room for it. MT_ERR_OUTPUT: no file can be
 * created in the folder.
 *
 * If the file system has no locks, a claim lasts as long as its file: the file of a killed process
 * reserves the name until somebody removes it. */
enum mt_status mt_trace_claim_take(struct mt_trace_claim *claim, const char *path,
                                   struct mt_unfinished *list, bool *is_ours,
                                   struct mt_error *error) MT_MUST_USE;

/* Gives the name back and removes the file. Accepts zeroed memory. */
void mt_trace_claim_release(struct mt_trace_claim *claim);

/* Names of traces that are derived from the name that the user chose: words come before the
 * extension, as in run-12399.trace.zst. */

/* Returns the length of `path` without its last extension. ".trace.zst" counts as one. */
size_t mt_trace_stem_length(const char *path);

#endif
