/* The first line of a document. */
#ifndef MT_RENDER_VERDICT_H
#define MT_RENDER_VERDICT_H

#include "buf.h"
#include "gate_result.h"

/* Returns advice for a snapshot without history (mt_is_one_instant), without a period at the end.
 */
const char *mt_no_history_help(const struct mt_report *report);

/* Appends one line without escaping it: "FAIL: peak reserved 19.3 GiB exceeds ...". Without gates
 * (NULL), the line names what the recording lacks, the out-of-memory error that ended the run, and
 * the memory that the run needs. */
void mt_verdict_add(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates);

/* Splits advice into prose and settings. Documents mark settings as code, so that readers can copy
 * them. */

/* A part of an advice: a setting, or the text between two settings. A setting is NAME=VALUE without
 * a space in the value, as in "fused=True", or a line for a shell, as in "export NAME=VALUE" and
 * "unset NAME". */
struct mt_advice_part {
    struct mt_buf text; /* the caller zeroes it before the first call and releases it */
    bool is_setting;
};

/* Sets *part to the next part of *rest and advances *rest. Returns false at the end of the text.
 * The parts together are the whole text. */
bool mt_advice_next(const char **rest, struct mt_advice_part *part);

#endif
