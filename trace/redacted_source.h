/* A source that passes on the events of another one with redacted symbols and header. */
#ifndef MT_TRACE_REDACTED_SOURCE_H
#define MT_TRACE_REDACTED_SOURCE_H

#include "redaction.h"
#include "source.h"

/* Takes ownership of `inner`, which is at its start, and closes it with itself, or immediately if
 * it returns NULL (no memory). `redaction` is borrowed. Reads `inner` through its heap view. */
struct mt_source *mt_redacted_source(struct mt_source *inner, const struct mt_redaction *redaction);

#endif
