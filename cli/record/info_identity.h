/* The part of `memtrace info` about the identity of a rank and the end of its process. */
#ifndef MT_CLI_INFO_IDENTITY_H
#define MT_CLI_INFO_IDENTITY_H

#include "buf.h"
#include "json.h"
#include "source.h"

/* Appends lines with labels of 14 columns. Omits unknown facts. `path` may contain the rank. */
void mt_info_identity_text(struct mt_buf *out, const struct mt_trace_header *header,
                           const char *path);

/* Adds the member "identity". Unknown facts are null. */
void mt_info_identity_json(struct mt_json *json, const struct mt_trace_header *header,
                           const char *path);

#endif
