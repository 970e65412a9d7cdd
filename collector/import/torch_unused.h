/* Collects the names of fields of a snapshot that no code reads, for the report. */
#ifndef MT_COLLECTOR_TORCH_UNUSED_H
#define MT_COLLECTOR_TORCH_UNUSED_H

#include "torch_facts.h"

struct mt_buf;

/* Notes the field `key` of a record once. Notes at most MT_TORCH_MAX_UNUSED fields: real
 * snapshots have fewer than ten. */
void mt_torch_note_unused(struct mt_torch_records *r, enum mt_torch_record of,
                          const struct mt_pickle_value *key);

/* Appends lines such as "entry: compile_context", by kind of record; nothing if there are none. */
void mt_torch_add_unused(const struct mt_torch_records *r, const struct mt_pickle *pickle,
                         struct mt_buf *out);

#endif
