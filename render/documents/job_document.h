/* The inputs of the page and the summary of a job. */
#ifndef MT_RENDER_JOB_DOCUMENT_H
#define MT_RENDER_JOB_DOCUMENT_H

#include "job_report.h"

/* Does the job pass? A rule that could not be evaluated may be either. */
enum mt_job_gate_mark { MT_JOB_GATE_PASS, MT_JOB_GATE_WARN, MT_JOB_GATE_FAIL };

/* A rule for a group of ranks, and whether it holds. */
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
    uint32_t skipped_count; /* not evaluated, which is no failure */
    const char *command;    /* that answered, "memtrace fleet traces/", as a person may copy it */
};

#endif
