/* Summaries of traces that a command has just written. Each is made in a process of its own, some
 * at the same time: whatever goes wrong in it, memory and time included, the trace and the exit
 * status of the command stay as they are.
 *
 *     struct mt_recorded_summaries summaries = {.is_quiet = quiet};
 *     mt_recorded_summaries_add(&summaries, path);      // for each trace
 *     mt_recorded_summaries_finish(&summaries);
 */
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
    bool is_quiet;       /* no word about a summary that is missing */
    bool force;          /* replaces a file that is no summary */
    uint64_t timeout_ms; /* of each; 0 = MT_SUMMARY_DEFAULT_TIMEOUT_MS */
    /* PRIVATE */
    struct mt_summary_job {
        pid_t process; /* 0 = none */
        const char *path;
        uint64_t started_ms;
    } jobs[MT_SUMMARY_JOBS];
};

/* Starts to write the summary of the trace at `path`, which is borrowed until the end; waits for
 * another one if there are as many as processors. The calling process must have one thread. */
void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path);

/* Waits for all of them; says which are missing, and why. */
void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries);

#endif
