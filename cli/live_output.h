/* The answer of live, for people and as JSON. */
#ifndef MT_CLI_LIVE_OUTPUT_H
#define MT_CLI_LIVE_OUTPUT_H

#include "analyze_output.h"

#define MT_EVERY_DEVICE UINT64_MAX

struct mt_live_output {
    const struct mt_report *report; /* with answers */
    const struct mt_question *question;
    uint64_t device; /* or MT_EVERY_DEVICE */
};

static inline bool mt_live_tells(const struct mt_live_output *live,
                                 const struct mt_device_report *device)
{
    return live->device == MT_EVERY_DEVICE || live->device == device->device;
}

void mt_live_text(struct mt_buf *out, const struct mt_live_output *live,
                  const struct mt_style *style);

/* "memtrace.live/1" */
void mt_live_json(struct mt_buf *out, const struct mt_live_output *live);

/* "the allocated peak", "the peak within step#2/backward": what was asked for. */
void mt_add_question(struct mt_buf *out, const struct mt_question *question,
                     const struct mt_report *report, const struct mt_answer *answer);

/* Why there is no answer: "no request ran out of memory". */
const char *mt_no_answer_text(enum mt_no_answer missing);

/* "peak", "time", ... in JSON. */
const char *mt_question_at_name(enum mt_question_at at);

#endif
