/* The answer of `memtrace fleet diff`, as text and as JSON. */
#ifndef MT_CLI_FLEET_DIFF_OUTPUT_H
#define MT_CLI_FLEET_DIFF_OUTPUT_H

#include "cli.h"
#include "fleet_job.h"
#include "job_diff.h"

struct mt_fleet_diff_answer {
    const struct mt_job_diff *diff;
    const char *a, *b;      /* the jobs, as on the command line */
    struct mt_arena *arena; /* for texts */
    bool all;               /* no limits on the lengths of lists */
};

void mt_fleet_diff_text(struct mt_buf *out, const struct mt_fleet_diff_answer *answer,
                        const struct mt_style *style);

#endif
