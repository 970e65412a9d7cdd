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

/* Replaces the header by `header`. MT_ERR_USAGE, without writing, if it does not fit: only the
 * recorder reserves room. Makes one write of the frame's length: an interruption can damage the
 * header, never the events. */
enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error) MT_MUST_USE;

#endif
