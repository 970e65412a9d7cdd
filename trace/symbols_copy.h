/* Copies one symbol table into another. Small tables (threads, devices, heaps, streams, pools,
 * ends) keep their ids; strings, frames and stacks get new ones. */
#ifndef MT_TRACE_SYMBOLS_COPY_H
#define MT_TRACE_SYMBOLS_COPY_H

#include "redaction.h"
#include "symbols.h"

struct mt_symbols_copy {
    const struct mt_symbols *from;
    struct mt_symbols *to;
    const struct mt_redaction *redaction; /* NULL: texts are unchanged */
};

/* Sets *id to the string's id in the copy, which is added if it is missing. MT_NO_ID and ids that
 * are not in the table become MT_NO_ID. */
enum mt_status mt_symbols_copy_string(const struct mt_symbols_copy *copy, enum mt_text_kind kind,
                                      uint32_t string, uint32_t *id) MT_MUST_USE;

/* Copies what was added to the small tables since the last call, and frames_cut. Descriptions of
 * devices and the name of thread 0 may have changed, so they are copied each time. A heap whose
 * name already exists gets another name. Returns MT_ERR_FORMAT if an id would change. */
enum mt_status mt_symbols_copy_tables(const struct mt_symbols_copy *copy) MT_MUST_USE;

#endif
