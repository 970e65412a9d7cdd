/* What `memtrace info` says of who a rank is and how it ended. */
#ifndef MT_CLI_INFO_IDENTITY_H
#define MT_CLI_INFO_IDENTITY_H

#include "buf.h"
#include "json.h"
#include "source.h"

/* Lines behind labels of 14 columns; nothing of what is not known. `path` may say the rank. */
void mt_info_identity_text(struct mt_buf *out, const struct mt_trace_header *header,
                           const char *path);

/* The member "identity"; what is not known is null. */
void mt_info_identity_json(struct mt_json *json, const struct mt_trace_header *header,
                           const char *path);

#endif
