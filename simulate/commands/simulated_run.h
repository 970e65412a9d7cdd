/* One command on simulated devices, from the check of its PyTorch to its traces; shared by every
 * kind of dry run. In this order:
 *
 *     struct mt_run_settings settings = {.command = words, .card = card, .devices = 1};
 *     mt_run_settings_init(&settings); ...other settings...
 *     mt_simulated_run_init(&run, &settings);
 *     code = mt_simulated_run_prepare(&run);
 *     if (code < 0) code = mt_simulated_run_finish(&run);
 *     if (code < 0) ...mt_launch_exit_code(&run.recording.launch), run.traces, run.notes...
 *     mt_simulated_run_release(&run); */
#ifndef MT_CLI_SIMULATED_RUN_H
#define MT_CLI_SIMULATED_RUN_H

#include <sys/types.h>

#include "cards.h"
#include "dry_run_answer.h"
#include "dry_run_notes.h"
#include "rank.h"
#include "recording.h"
#include "simulated_site.h"

/* What the caller decides about a run. Everything is borrowed. */
struct mt_run_settings {
    char **command;
    const char *output; /* -o; NULL = not given */
    const struct mt_card *card;
    uint64_t devices;           /* 1 to MT_MAX_SIMULATED_DEVICES */
    uint64_t limit_bytes;       /* memory of each device; 0 = that of the card */
    uint64_t timeout_ms;        /* 0 = no limit */
    const struct mt_rank *rank; /* the rank that runs; NULL: the command is not distributed */
    const char *apply;     /* changes of the program on paper, with '+' between them; NULL: none */
    const char *imbalance; /* share of the fullest expert rank in the mean, "1.3"; NULL: balanced */
    struct mt_assumption assumption;
    bool quiet, json, summarizes; /* as in struct mt_recording */
    bool
        names_python; /* prints which Python it runs to find PyTorch, unless it is the first word */
    bool runs_once;   /* never again under another assumption */
    bool is_silent; /* the command has no input, except that of a regular file; its output is lost,
                       and no defect is reported */
    /* set by mt_run_settings_init */
    struct mt_launch launch; /* what the command inherits */
    off_t input_begin; /* of standard input before the first run, plus 1; 0: it cannot be rewound */
};

struct mt_simulated_run {
    struct mt_run_settings settings;
    struct mt_recording recording;
    /* set by mt_simulated_run_finish */
    struct mt_dry_run_notes notes;
    struct mt_dry_run_trace *traces; /* traces that have events */
    size_t trace_count;
    struct mt_dry_run_unread unread;
    /* PRIVATE */
    bool is_checked;
    struct mt_simulated_site site;
    char asker[PATH_MAX]; /* path of the program that queries the real cuDNN; "": there is none */
    char *notes_path;
    struct mt_buf fact; /* a fact for the header of the trace */
};

/* Keeps what commands inherit, as it is at the start of memtrace. Call it once in a process. */
void mt_run_settings_init(struct mt_run_settings *settings);

/* Finds the card that `option` names. Returns -1, or the exit code after an error message. */
int mt_dry_run_find_card(const char *option, const char *name, const struct mt_card **card);

/* Returns the memory of each device. */
uint64_t mt_run_settings_memory_bytes(const struct mt_run_settings *settings);

/* Returns what the answer about a run takes from its settings. */
struct mt_dry_run_answer mt_run_settings_answer(const struct mt_run_settings *settings);

/* Sets *run, which may have any content, to a run that has not begun. */
void mt_simulated_run_init(struct mt_simulated_run *run, const struct mt_run_settings *settings);

/* Releases a run that has ended, and sets it to the state after mt_simulated_run_init. */
void mt_simulated_run_renew(struct mt_simulated_run *run);

/* Checks the command, and builds its simulated libraries. This takes 1 s the first time and 0.1 s
 * later. Creates nothing else. Returns -1, or the exit code after an error message. */
int mt_simulated_run_check(struct mt_simulated_run *run);

/* Returns 0 if the devices have room for a CUDA context. Otherwise returns the bytes that CUDA
 * itself needs. Call it after mt_simulated_run_check. */
uint64_t mt_simulated_run_lacks(const struct mt_simulated_run *run);

/* Returns the simulated libraries. NULL: the environment already had such libraries. */
const struct mt_simulated_site *mt_simulated_run_site(const struct mt_simulated_run *run);

/* Checks the command if mt_simulated_run_check was not called. Fails if the devices have no room
 * for a context. Creates the folder of the traces. Returns -1 or an exit code. */
int mt_simulated_run_prepare(struct mt_simulated_run *run);

/* Runs the command to its end, and completes its traces. The command shares the terminal, the
 * signals and the standard input of memtrace. Returns -1, or an exit code if nothing was
 * recorded, or if the command succeeded and a change of `apply` found nothing to change. */
int mt_simulated_run_finish(struct mt_simulated_run *run);

/* Returns the inputs of the answer, to which the caller adds options and gates. They borrow the
 * run. */
struct mt_dry_run_answer mt_simulated_run_answer(const struct mt_simulated_run *run);

void mt_simulated_run_release(struct mt_simulated_run *run);

/* Finds the cheapest changes with which the run, which is on one device, fits on a card, by dry
 * runs of its command. Prints what each change saves, and the patch. Returns the exit code. */
int mt_apply_fit(const struct mt_run_settings *settings, const char *card,
                 struct mt_common *common);

#endif
