/* What a document says first. */
#ifndef MT_RENDER_VERDICT_H
#define MT_RENDER_VERDICT_H

#include "buf.h"
#include "gate_check.h"

/* One line, not escaped: "FAIL: peak reserved 19.3 GiB exceeds ..."; without gates
 * "peak 6.45 GiB allocated", and before it what the run died of. gates: NULL = none. */
void mt_add_verdict(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates);

#endif
