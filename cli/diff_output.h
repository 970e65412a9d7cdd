/* The answer of diff, for people and as JSON. */
#ifndef MT_CLI_DIFF_OUTPUT_H
#define MT_CLI_DIFF_OUTPUT_H

#include "analyze_output.h"
#include "asked_report.h"
#include "diff.h"

/* Something about the runs themselves, that a difference of memory may come from. */
struct mt_run_difference {
    const char *what; /* "steps", "options", ... */
    const char *a, *b;
};

#define MT_RUN_DIFFERENCES 16

struct mt_diff_output {
    const struct mt_report *a, *b;
    const struct mt_question *question;
    uint64_t only; /* device of A, or MT_EVERY_DEVICE */
    struct mt_device_diff *devices;
    size_t device_count;
    struct mt_run_difference runs[MT_RUN_DIFFERENCES];
    size_t run_count;
    struct mt_arena *arena;
};

void mt_diff_text(struct mt_buf *out, const struct mt_diff_output *diff,
                  const struct mt_style *style);

/* "memtrace.diff/1" */
void mt_diff_json(struct mt_buf *out, const struct mt_diff_output *diff);

/* What an allocator holds beyond its blocks, at an instant. */
static inline uint64_t mt_unused_bytes(const struct mt_answer *answer)
{
    return answer->instant.bytes.reserved - answer->instant.bytes.active;
}

#endif
