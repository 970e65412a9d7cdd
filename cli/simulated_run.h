/* One command on simulated devices, from the check of its PyTorch to its traces; shared by every
 * kind of dry run. In this order:
 *
 *     struct mt_simulated_run run = {.recording = {.command = words}, .card = card, .devices =
 *     1};
 *     mt_simulated_run_init(&run);
 *     code = mt_simulated_run_prepare(&run);
 *     if (code < 0) code = mt_simulated_run_finish(&run);
 *     if (code < 0) ...mt_launch_exit_code(&run.recording.launch), run.traces, run.notes...
 *     mt_simulated_run_release(&run); */
#ifndef MT_CLI_SIMULATED_RUN_H
#define MT_CLI_SIMULATED_RUN_H

#include "cards.h"
#include "dry_run_answer.h"
#include "dry_run_notes.h"
#include "rank.h"
#include "recording.h"
#include "simulated_site.h"

struct mt_simulated_run {
    /* of the caller: of `recording` command, output, quiet, json and timeout_ms */
    struct mt_recording recording;
    const struct mt_card *card;
    uint64_t devices;           /* 1 to MT_MAX_SIMULATED_DEVICES */
    uint64_t limit_bytes;       /* of each device; 0 = the card's own */
    const struct mt_rank *rank; /* the rank that the command is; NULL: not distributed */
    /* The memory of collectives is freed as early as in any real run, otherwise as late. */
    bool frees_early;
    /* after mt_simulated_run_finish */
    struct mt_dry_run_notes notes;
    struct mt_dry_run_trace *traces; /* those with events */
    size_t trace_count;
    struct mt_dry_run_unread unread;
    bool failed; /* out of memory: traces are missing */
    /* PRIVATE */
    bool is_checked;
    struct mt_simulated_site site;
    char asker[PATH_MAX]; /* path of the program that queries the real cuDNN; "": there is none */
    char *notes_path;
    struct mt_buf fact; /* of the trace's header */
};

enum { MT_MAX_SIMULATED_DEVICES = 8 }; /* as simulate/driver/simulated_driver.h */

/* Sets the options of recording for every dry run. Call it after the caller's fields are set. */
void mt_simulated_run_init(struct mt_simulated_run *run);

uint64_t mt_simulated_memory_bytes(const struct mt_simulated_run *run);

/* Checks the command, and builds its simulated libraries (0.1 s; the first time 1 s). Creates
 * nothing else. Returns -1 or an exit code; errors were printed. */
int mt_simulated_run_check(struct mt_simulated_run *run);

/* Returns 0 if a context can be created. Otherwise the devices have no more memory than CUDA
 * itself takes, and the result is that number of bytes. Call it after mt_simulated_run_check. */
uint64_t mt_simulated_run_lacks(const struct mt_simulated_run *run);

/* The simulated libraries; NULL: the environment already had some. */
const struct mt_simulated_site *mt_simulated_run_site(const struct mt_simulated_run *run);

/* Checks the command unless that was done, fails if a device has no room for a context, and
 * creates the folder of the traces. Returns -1 or an exit code. */
int mt_simulated_run_prepare(struct mt_simulated_run *run);

/* Runs the command to its end, and completes its traces. The command has the same terminal,
 * signals and standard input. Returns -1, or an exit code if nothing was recorded. */
int mt_simulated_run_finish(struct mt_simulated_run *run);

/* The inputs of the answer; the caller adds options and gates. Borrows the run. */
struct mt_dry_run_answer mt_simulated_run_answer(const struct mt_simulated_run *run);

void mt_simulated_run_release(struct mt_simulated_run *run);

#endif
