/* The first line of a document. */
#ifndef MT_RENDER_VERDICT_H
#define MT_RENDER_VERDICT_H

#include "buf.h"
#include "gate_check.h"

/* Advice for a snapshot without history (mt_is_one_instant). */
#define MT_NO_HISTORY_HELP                                                                         \
    "The peak is unknown. To record a history, call torch.cuda.memory._record_memory_history() "   \
    "before the model is created, or run the program under memtrace record"

/* Appends one line without escaping it: "FAIL: peak reserved 19.3 GiB exceeds ...". Without gates
 * (NULL), the line names what the recording lacks, the out-of-memory error that ended the run, and
 * the memory that the run needs. */
void mt_add_verdict(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates);

#endif
