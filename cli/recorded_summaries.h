/* Writes summaries of traces that a command has just recorded. Each is written in a separate
 * process, several in parallel: a failure there, including lack of memory or time, does not
 * change the trace or the exit status of the command.
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

enum {
    MT_SUMMARY_JOBS = 16,                     /* at the same time, at most */
    MT_SUMMARY_DEFAULT_TIMEOUT_MS = 60 * 1000 /* of each */
};

struct mt_recorded_summaries {
    /* of the caller */
    bool is_quiet;       /* prints nothing about a missing summary */
    bool force;          /* also replaces a file that is not a summary */
    uint64_t timeout_ms; /* of each; 0 = MT_SUMMARY_DEFAULT_TIMEOUT_MS */
    /* PRIVATE */
    struct mt_summary_job {
        pid_t process; /* 0 = none */
        const char *path;
        uint64_t started_ms;
    } jobs[MT_SUMMARY_JOBS];
};

/* Starts writing the summary of the trace at `path`, which is borrowed until the end. Waits for
 * another one if as many run as there are processors. The calling process must have one thread. */
void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path);

/* Waits for all of them. Prints which are missing, and why. */
void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries);

#endif
