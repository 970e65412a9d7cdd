/* A command under the collector, from the check of its program to the end of its traces; shared
 * by `record` and `dry-run`. In this order:
 *
 *     struct mt_recording recording = {.command = argv + start, ...};
 *     mt_launch_init(&recording.launch);
 *     code = mt_recording_prepare(&recording);
 *     if (code < 0) code = mt_recording_run(&recording);
 *     if (code < 0) mt_recording_finish(&recording, on_trace, context);
 *     mt_recording_release(&recording); */
#ifndef MT_CLI_RECORDING_H
#define MT_CLI_RECORDING_H

#include <limits.h>

#include "cli.h"
#include "environment.h"
#include "launch.h"
#include "program_kind.h"
#include "redaction.h"
#include "ring_saves.h"
#include "trace_end.h"
#include "trace_target.h"

struct mt_recording {
    /* set by the caller */
    char **command;
    const char *output; /* -o; NULL = not given */
    bool quiet, json, redact;
    bool summarizes; /* the trace of each process gets its summary (summary_of_trace.h) */
    /* CUPTI and the driver are simulated, so the command runs without the interposer. The results
     * of the command do not matter, so it is killed if memtrace ends. */
    bool is_simulated;
    struct mt_record_settings settings; /* the functions below set its paths */
    /* Called in the command's process to set variables, before its environment is made from
     * `environ`. NULL = nothing to set. */
    bool (*before)(void *context);
    void *context;
    uint64_t timeout_ms; /* after this time, the whole process tree is ended; 0 = no limit */
    /* PRIVATE */
    struct mt_program program;
    struct mt_trace_target place;
    struct mt_arena arena;
    struct mt_launch launch;
    struct mt_redaction redaction;
    struct mt_ring_saves saves; /* of a ring, while the command runs */
    int manifest_lock;          /* open until the process ends */
    char **traces;              /* paths, set by mt_recording_finish; in the arena */
    size_t trace_count;
    char library[PATH_MAX], interposer[PATH_MAX], manifest[PATH_MAX], trace[PATH_MAX];
};

/* Parses the options of `command`, and finds the command to run. It begins after "--", or at the
 * first word that is neither an option nor the value of an option. *words points into argv. Returns
 * -1, or the exit code after an error message. */
int mt_parse_command(const struct mt_command *command, const struct mt_option *options, int argc,
                     char **argv, char ***words);

/* Reads the value of an option: "90", "90s", "10m" or "2h". Returns -1 and leaves *time_ms as it is
 * for NULL; otherwise -1, or the exit code after an error message. */
int mt_record_read_time(const char *option, const char *text, uint64_t *time_ms);

/* The first function only checks whether the command can run. The second also prepares the
 * recording and creates the folder of the traces. Both return -1, or the exit code after an error
 * message. */
int mt_recording_check_command(struct mt_recording *recording);
int mt_recording_prepare(struct mt_recording *recording);
/* Runs the command to its end. Returns -1, or an exit code if nothing was recorded. */
int mt_recording_run(struct mt_recording *recording);
/* Completes every trace and calls `on_trace` for it. Returns MT_RECORDING_INCOMPLETE if recorded
 * events are missing from a trace, or if a trace could not be redacted; MT_RECORDING_LOST if a
 * trace is gone, or the list of traces, so that nothing is known about them. */
enum mt_recording_end { MT_RECORDING_COMPLETE, MT_RECORDING_INCOMPLETE, MT_RECORDING_LOST };
enum mt_recording_end mt_recording_finish(struct mt_recording *recording,
                                          void (*on_trace)(void *context,
                                                           const struct mt_trace_end *end),
                                          void *context);
void mt_recording_release(struct mt_recording *recording);

#endif
