/* A trace's header frame, changed where it stands: facts that are known only when the process has
 * ended. */
#ifndef MT_TRACE_AMEND_H
#define MT_TRACE_AMEND_H

#include "source.h"

/* Reads the header of the trace at `path` into *header; its texts go into the arena. Symbolic links
 * are not followed. */
enum mt_status mt_trace_read_header(const char *path, struct mt_arena *arena,
                                    struct mt_trace_header *header,
                                    struct mt_error *error) MT_MUST_USE;

/* Puts `header` in the place of the one that is there. MT_ERR_USAGE, and nothing is written, if it
 * does not fit: a trace that no recorder wrote has no room. One write of the frame's length: what
 * interrupts it damages the header, never the events. */
enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error) MT_MUST_USE;

#endif
