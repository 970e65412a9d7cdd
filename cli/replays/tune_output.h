/* The answer of tune, as text and as JSON. */
#ifndef MT_CLI_TUNE_OUTPUT_H
#define MT_CLI_TUNE_OUTPUT_H

#include "buf.h"
#include "tune.h"

struct mt_tune_answer {
    const struct mt_tune_summary *summary;
    uint64_t limit_bytes; /* 0 = none */
    bool has_fits;
};

/* Returns the recommended row: a row of the Pareto front, or the setting of the run itself. */
static inline const struct mt_tune_row *mt_tune_best(const struct mt_tune_summary *summary)
{
    return summary->best == MT_TUNE_CURRENT ? &summary->current : &summary->front[summary->best];
}

/* Appends the shell command that sets `conf`, or that restores the defaults if `conf` is "". */
void mt_tune_add_command(struct mt_buf *out, const char *conf);

void mt_tune_print_text(struct mt_buf *out, const struct mt_tune_answer *answer);
void mt_tune_print_json(struct mt_buf *out, const struct mt_tune_answer *answer);

#endif
