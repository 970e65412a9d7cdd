/* The answer of live, as text and as JSON. */
#ifndef MT_CLI_LIVE_OUTPUT_H
#define MT_CLI_LIVE_OUTPUT_H

#include "analyze_output.h"
#include "question_report.h"

struct mt_live_output {
    const struct mt_report *report; /* has answers */
    const struct mt_question *question;
    uint64_t device; /* number of a device, or MT_EVERY_DEVICE */
    bool all;        /* no limits in JSON (--all) */
};

/* Returns the requested bytes of live blocks. In contrast, the counter of the instant includes
 * freed blocks that still wait for a stream. */
static inline uint64_t mt_requested_bytes(const struct mt_answer *answer)
{
    return answer->instant.bytes.requested - answer->waiting_requested_bytes;
}

void mt_live_text(struct mt_buf *out, const struct mt_live_output *live,
                  const struct mt_style *style);

/* Appends a document "memtrace.live/1". */
void mt_live_json(struct mt_buf *out, const struct mt_live_output *live);

/* Add the member "question", and the members of an answer except its rows. */
void mt_json_question(struct mt_json *json, const struct mt_question *question);
void mt_json_answer(struct mt_json *json, const struct mt_report *report,
                    const struct mt_answer *answer);

/* Appends a description of the instant on the reporter's device: "the peak within step#2/backward:
 * 4.45 GiB allocated (4,776,865,280 B) in step 2, backward, at 3.79 s, event 8862". */
void mt_live_add_instant(struct mt_buf *line, const struct mt_reporter *reporter,
                         const struct mt_question *question);

#endif
