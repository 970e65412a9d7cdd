/* The first line of a document. */
#ifndef MT_RENDER_VERDICT_H
#define MT_RENDER_VERDICT_H

#include "buf.h"
#include "gate_check.h"

/* What to do about a snapshot without history (mt_is_one_instant). */
#define MT_NO_HISTORY_HELP                                                                         \
    "The peak is unknown. To record a history, call torch.cuda.memory._record_memory_history() "   \
    "before the model is created, or run the program under memtrace record"

/* Appends one line, not escaped: "FAIL: peak reserved 19.3 GiB exceeds ...". Without gates it is
 * "peak 6.45 GiB allocated", preceded by what the recording lacks and by the error that ended
 * the run. gates: NULL = none. */
void mt_add_verdict(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates);

#endif
