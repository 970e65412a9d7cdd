/* Replaces the header frame of a trace in place, for facts that are known only after the process
 * has ended. */
#ifndef MT_TRACE_AMEND_H
#define MT_TRACE_AMEND_H

#include "source.h"

/* Reads the header of the trace at `path` into *header; its texts go into the arena. Does not
 * follow symbolic links. */
enum mt_status mt_trace_read_header(const char *path, struct mt_arena *arena,
                                    struct mt_trace_header *header,
                                    struct mt_error *error) MT_MUST_USE;

/* Replaces the header of the trace with `header`. Returns MT_ERR_USAGE and writes nothing if it
 * does not fit, because only the recorder reserves room. Makes one write of the frame's length, so
 * an interruption can damage the header, but never the events. */
enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error) MT_MUST_USE;

#endif
