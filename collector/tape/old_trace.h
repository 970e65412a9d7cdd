/* The trace that a tape is added to. Any process that can write to the folder can put another file
 * there, and the trace may have been replaced after its tape was left behind. So the file is opened
 * once, never through a symbolic link, and is used only if the tape names it. It is never written
 * to. */
#ifndef MT_COLLECTOR_OLD_TRACE_H
#define MT_COLLECTOR_OLD_TRACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tape.h"
#include "trace.h"

struct mt_old_trace {
    int fd; /* -1 = there is no such file, and the tape does not expect one */
    struct stat facts;
    bool is_complete;         /* the tape was added to it before */
    struct mt_source *source; /* of the part that was certainly written; NULL = nothing was */
};

/* Opens the trace at `path` up to `trace_bytes`, the length that its process had certainly
 * written (0: nothing). Its `recording_id` must be the tape's; if its header cannot be read, it
 * must be the file that the tape's process created. MT_ERR_FORMAT if it is another file,
 * MT_ERR_IO if it cannot be read. In either case *old can be closed. */
enum mt_status mt_old_trace_open(const char *path, const struct mt_tape *tape, uint64_t trace_bytes,
                                 struct mt_old_trace *old, struct mt_error *error) MT_MUST_USE;
void mt_old_trace_close(struct mt_old_trace *old);

#endif
