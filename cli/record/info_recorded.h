/* The part of `memtrace info` about traces of `memtrace record`: heaps, threads, samples, and why
 * events are missing. */
#ifndef MT_CLI_INFO_RECORDED_H
#define MT_CLI_INFO_RECORDED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "driver_ledger.h"
#include "json.h"
#include "screen.h"
#include "source.h"

struct mt_info_recorded {
    /* set by mt_info_recorded_add */
    uint16_t first_heap; /* the first heap with memory events */
    bool has_heap, has_more_heaps;
    uint64_t samples, most_used_bytes;
    struct mt_lost_events lost;
    /* set by mt_info_recorded_read if there are several heaps, or only the driver's */
    struct mt_arena arena;
    struct mt_phases phases;
    struct mt_driver_ledger ledger;
};

/* Adds one event of the first reading. Zeroed memory is ready for use. */
void mt_info_recorded_add(struct mt_info_recorded *recorded, const struct mt_event *event);

/* Call it after the first reading. If there are several heaps, or only the driver's, reads the
 * source again to find the memory of each heap. */
enum mt_status mt_info_recorded_read(struct mt_info_recorded *recorded, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;
void mt_info_recorded_release(struct mt_info_recorded *recorded);

/* Append lines with labels of 14 columns, or members of the document. Omit facts that the trace
 * does not have. */
void mt_info_recorded_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols);
void mt_info_dropped_text(struct mt_buf *out, const struct mt_info_recorded *recorded,
                          const struct mt_symbols *symbols);
void mt_info_recorded_json(struct mt_json *json, const struct mt_info_recorded *recorded,
                           const struct mt_symbols *symbols);

/* Writes summaries of traces that a command has just recorded. Each summary has its own process,
 * and several run in parallel. A failure of such a process, including lack of memory or time, does
 * not change the trace or the exit status of the command. A build without the annex fleet writes
 * none.
 *
 *     struct mt_recorded_summaries summaries = {.is_quiet = quiet};
 *     mt_recorded_summaries_add(&summaries, path);      // for each trace
 *     mt_recorded_summaries_finish(&summaries); */

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
        int gate[2]; /* a pipe: a byte in it means that the trace is complete */
        bool is_gated;
    } jobs[MT_SUMMARY_JOBS];
};

/* Starts to write the summary of the trace at `path`, which is borrowed until
 * mt_recorded_summaries_finish. If there are already as many writers as processors, first waits for
 * one of them. The calling process must have only one thread. */
void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path);

/* Starts to make the summary of a trace that is not written yet, from its events. The file is
 * written after mt_recorded_summaries_add with the same `path`. Does nothing if the source reads a
 * file: mt_recorded_summaries_add then starts to read the trace. The calling process must have only
 * one thread, and at most one summary begins so. */
void mt_recorded_summaries_begin(struct mt_recorded_summaries *summaries, const char *path,
                                 struct mt_source *source);

/* Ends all processes that make summaries, without a message. */
void mt_recorded_summaries_abandon(struct mt_recorded_summaries *summaries);

/* Waits for all summaries. Prints which are missing, and why. */
void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries);

#endif
