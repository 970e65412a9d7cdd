/* The inputs of the page and the summary of a job. */
#ifndef MT_RENDER_JOB_DOCUMENT_H
#define MT_RENDER_JOB_DOCUMENT_H

#include "job_report.h"

/* The mark of a gate. A rule that could not be evaluated is WARN if it is optional, otherwise
 * FAIL. */
enum mt_job_gate_mark { MT_JOB_GATE_PASS, MT_JOB_GATE_WARN, MT_JOB_GATE_FAIL };

/* The result of a rule for a group of ranks. */
struct mt_job_gate {
    const char *rule, *group; /* "max-peak reserved", "pp 3" */
    const char *state;        /* "pass", "fail", "not evaluated", "warn" */
    const char *verdict;      /* a sentence */
    enum mt_job_gate_mark mark;
};

struct mt_job_document {
    const struct mt_job_report *report;
    const struct mt_job_gate *gates;
    uint32_t gate_count, failed_count;
    uint32_t skipped_count; /* not evaluated, and not counted as failed */
    /* the command that gave the answer, ready to copy: "memtrace fleet traces/" */
    const char *command;
};

#endif
