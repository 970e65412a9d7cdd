/* The part of `memtrace info` about the identity of a rank and the end of its process. */
#ifndef MT_CLI_INFO_IDENTITY_H
#define MT_CLI_INFO_IDENTITY_H

#include "buf.h"
#include "cli.h"
#include "json.h"
#include "source.h"

/* Appends the beginning of a line of `memtrace info`: a label of 14 columns. */
void mt_info_add_label(struct mt_buf *out, const char *label);

/* Appends lines with labels. Omits unknown facts. `path` may contain the rank. */
void mt_info_identity_text(struct mt_buf *out, const struct mt_trace_header *header,
                           const char *path);

/* Adds the member "identity". Unknown facts are null. */
void mt_info_identity_json(struct mt_json *json, const struct mt_trace_header *header,
                           const char *path);

/* `memtrace info --secrets`: the parts of a trace that could identify a person, a machine or a
 * project. */

/* Appends text, or a document "memtrace.secrets/1" if `json` is set. The source must have been read
 * to its end. */
void mt_info_secrets(struct mt_buf *out, const struct mt_source *source, const char *path,
                     bool json);

#endif
