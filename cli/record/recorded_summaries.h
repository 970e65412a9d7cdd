/* Writes summaries of traces that a command has just recorded. Each summary has its own process,
 * and several run in parallel. A failure of such a process, including lack of memory or time, does
 * not change the trace or the exit status of the command. A build without the annex fleet writes
 * none.
 *
 *     struct mt_recorded_summaries summaries = {.is_quiet = quiet};
 *     mt_recorded_summaries_add(&summaries, path);      // for each trace
 *     mt_recorded_summaries_finish(&summaries); */
#ifndef MT_CLI_RECORDED_SUMMARIES_H
#define MT_CLI_RECORDED_SUMMARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "progress.h"

enum {
    MT_SUMMARY_JOBS = 16,                     /* maximum number in parallel */
    MT_SUMMARY_DEFAULT_TIMEOUT_MS = 60 * 1000 /* for each summary */
};

struct mt_recorded_summaries {
    /* set by the caller */
    bool is_quiet;       /* prints nothing about missing summaries */
    bool force;          /* also replaces a file that is not a summary */
    uint64_t timeout_ms; /* for each summary; 0 = MT_SUMMARY_DEFAULT_TIMEOUT_MS */
    /* PRIVATE */
    struct mt_progress progress;
    bool is_begun;
    struct mt_summary_job {
        pid_t process; /* 0 = none */
        const char *path;
        uint64_t started_ms;
    } jobs[MT_SUMMARY_JOBS];
};

/* Starts to write the summary of the trace at `path`, which is borrowed until
 * mt_recorded_summaries_finish. If there are already as many writers as processors, first waits for
 * one of them. The calling process must have only one thread. */
void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path);

/* Waits for all summaries. Prints which are missing, and why. */
void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries);

#endif
