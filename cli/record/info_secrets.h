/* `memtrace info --secrets`: the parts of a trace that could identify a person, a machine or a
 * project. */
#ifndef MT_CLI_INFO_SECRETS_H
#define MT_CLI_INFO_SECRETS_H

#include "cli.h"

/* Appends text, or a document "memtrace.secrets/1" if `json` is set. The source must have been read
 * to its end. */
void mt_info_secrets(struct mt_buf *out, const struct mt_source *source, const char *path,
                     bool json);

#endif
