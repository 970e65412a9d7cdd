/* A source that hands on another one's events with redacted symbols and header. */
#ifndef MT_TRACE_REDACTED_SOURCE_H
#define MT_TRACE_REDACTED_SOURCE_H

#include "redaction.h"
#include "source.h"

/* Takes over `inner`, which stands at its start, and closes it with itself, or at once
 * if there is no memory (NULL). `redaction` is borrowed. Reads what `inner` hands on,
 * with its heap view. */
struct mt_source *mt_redacted_source(struct mt_source *inner, const struct mt_redaction *redaction);

#endif
