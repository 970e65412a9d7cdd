/* From one symbol table into another. Ids of the small tables (threads, devices, heaps,
 * streams, pools) stay; strings, frames and stacks get new ones. */
#ifndef MT_TRACE_SYMBOLS_COPY_H
#define MT_TRACE_SYMBOLS_COPY_H

#include "redaction.h"
#include "symbols.h"

struct mt_symbols_copy {
    const struct mt_symbols *from;
    struct mt_symbols *to;
    const struct mt_redaction *redaction; /* NULL: texts stay as they are */
};

/* MT_NO_ID and ids that are not in the table become MT_NO_ID. */
enum mt_status mt_symbols_copy_string(const struct mt_symbols_copy *copy, enum mt_text_kind kind,
                                      uint32_t string, uint32_t *id) MT_MUST_USE;

/* Copies what was added to the small tables since the last call, and frames_cut. Device
 * descriptions and the name of thread 0 may have changed: they are copied each time. A heap
 * whose name exists gets another one. MT_ERR_FORMAT if an id does not stay. */
enum mt_status mt_symbols_copy_tables(const struct mt_symbols_copy *copy) MT_MUST_USE;

#endif
