/* The answer of diff, as text and as JSON. */
#ifndef MT_CLI_DIFF_OUTPUT_H
#define MT_CLI_DIFF_OUTPUT_H

#include "analyze_output.h"
#include "diff.h"
#include "question_report.h"

struct mt_diff_output {
    const struct mt_diff *diff;
    const struct mt_question *question;
    struct mt_arena *arena; /* for texts */
    bool all;               /* no limits (--all) */
};

/* Returns the bytes that are reserved but not active at the instant. */
static inline uint64_t mt_unused_bytes(const struct mt_answer *answer)
{
    return answer->instant.bytes.reserved - answer->instant.bytes.active;
}

#endif
