/* A command under the collector, from the look at its program to the end of its traces: what
 * `record` and `dry-run` share. In this order:
 *
 *     struct mt_recording recording = {.command = argv + start, ...};
 *     mt_launch_init(&recording.launch);
 *     code = mt_recording_prepare(&recording);
 *     if (code < 0) code = mt_recording_run(&recording);
 *     if (code < 0) mt_recording_finish(&recording, on_trace, context);
 *     mt_recording_release(&recording);
 */
#ifndef MT_CLI_RECORDING_H
#define MT_CLI_RECORDING_H

#include <limits.h>

#include "cli.h"
#include "environment.h"
#include "launch.h"
#include "program_kind.h"
#include "redaction.h"
#include "trace_end.h"
#include "trace_place.h"

struct mt_recording {
    /* of the caller */
    char **command;
    const char *output; /* -o; NULL = not given */
    bool quiet, json, redact;
    bool summarizes; /* the trace of each process gets its summary (summary_of_trace.h) */
    /* CUPTI and the driver are simulated: no substitute for them is wanted, and nobody wants what
     * the command computes, so that it ends with us. */
    bool is_simulated;
    struct mt_record_settings settings; /* its paths are set from this struct */
    /* Called in the command's process, before its environment is made from `environ`: to set
     * variables. False: no memory. NULL = nothing to set. */
    bool (*before)(void *context);
    void *context;
    uint64_t timeout_ms; /* 0 = none: then the whole process tree is ended */
    /* PRIVATE */
    struct mt_program program;
    struct mt_trace_place place;
    struct mt_arena arena;
    struct mt_launch launch;
    struct mt_redaction redaction;
    int manifest_lock; /* open until the process ends */
    char **traces;     /* their paths, after mt_recording_finish; in the arena */
    size_t trace_count;
    char library[PATH_MAX], interposer[PATH_MAX], manifest[PATH_MAX], trace[PATH_MAX];
};

/* Reads the options of `command`, and finds the words of the command that it is to run: behind
 * "--", or from the first word that is no option and no option's value. *words is in argv. -1, or
 * an exit code; what is wrong was said. */
int mt_parse_command(const struct mt_command *command, const struct mt_option *options, int argc,
                     char **argv, char ***words);

/* -1, or an exit code; what is wrong was said. The first looks at the command alone, and makes
 * nothing; the second begins with that look and makes the place of the traces. */
int mt_recording_check_command(struct mt_recording *recording);
int mt_recording_prepare(struct mt_recording *recording);
/* Runs it to its end; -1 or an exit code, then nothing was recorded. */
int mt_recording_run(struct mt_recording *recording);
/* Ends every trace, each with a call of `on_trace`. False if anything that was recorded is not in
 * them, or if one could not be redacted. */
bool mt_recording_finish(struct mt_recording *recording,
                         void (*on_trace)(void *context, const struct mt_trace_end *end),
                         void *context);
void mt_recording_release(struct mt_recording *recording);

#endif
