/* The answer of fit, as text and as JSON. */
#ifndef MT_CLI_FIT_OUTPUT_H
#define MT_CLI_FIT_OUTPUT_H

#include "buf.h"
#include "fit.h"

struct mt_fit_answer {
    const struct mt_source *source;
    const struct mt_fit_summary *summaries; /* one for each policy */
    size_t count;
    uint64_t limit_bytes; /* requested limit; 0 = none */
    bool no_cards;
    bool all;                  /* no limits in JSON (--all) */
    bool xla_requests_missing; /* the answer is about the regions of XLA's arena */
};

#endif
