/* The inputs of the page and the summary of a job. */
#ifndef MT_RENDER_JOB_DOCUMENT_H
#define MT_RENDER_JOB_DOCUMENT_H

#include "gate_result.h"
#include "job_report.h"

enum mt_job_gate_unit { MT_JOB_GATE_BYTES, MT_JOB_GATE_PPM, MT_JOB_GATE_RANKS };

/* A rule for the ranks of a group, and its result. */
struct mt_job_gate {
    const char *rule, *group; /* "max-peak reserved", "pp 3" or "all ranks" */
    enum mt_gate_state state;
    bool is_optional;    /* "not evaluated" is not a failure */
    const char *verdict; /* a sentence */
    const char *doubt;   /* why `actual` is uncertain or unknown; NULL = `actual` is exact */
    bool is_no_bound; /* if there is a doubt, `actual` is not even a lower bound, so the gate cannot
                         fail */
    uint32_t row;     /* row of the worst rank of the group; MT_NO_ROW: none */
    uint64_t actual, limit, warn; /* in `unit`; UINT64_MAX = no such bound */
    uint64_t base;                /* value in the base, from which the limit is computed */
    bool has_base;
    enum mt_job_gate_unit unit; /* bytes, millionths of the mean, or a number of ranks */
};

/* Returns the state as a page marks it: a rule that was not evaluated is a warning if it is
 * optional, otherwise a failure. */
static inline enum mt_gate_state mt_job_gate_mark(const struct mt_job_gate *gate)
{
    if (gate->state != MT_GATE_NOT_EVALUATED)
        return gate->state;
    return gate->is_optional ? MT_GATE_WARN : MT_GATE_FAIL;
}

struct mt_job_document {
    const struct mt_job_report *report;
    const struct mt_job_gate *gates;
    uint32_t gate_count, failed_count;
    uint32_t skipped_count; /* not evaluated, and not counted as failed */
    /* the command that gave the answer, ready to copy: "memtrace fleet traces/" */
    const char *command;
};

#endif
