/* The result of a dry run after its command has ended. */
#ifndef MT_CLI_DRY_RUN_RESULT_H
#define MT_CLI_DRY_RUN_RESULT_H

#include "cards.h"
#include "dry_run_notes.h"
#include "gate_run.h"
#include "sweep.h"

struct mt_simulated_site; /* simulated_site.h */

enum { MT_MAX_OTHER_OUTCOMES = 3, MT_PLACE_BYTES = 512 };

/* What a run assumes about what a dry run does not know. The default is all zero. */
struct mt_assumption {
    bool frees_early;
    unsigned share_percent; /* of what masks, selections and boxes leave; 0 = the default */
    bool inverts;           /* decisions have the other outcome */
    /* Guesses that made the program fail, and have the other outcome: "truth 1 FILE:LINE", in the
     * words of guesses.py. */
    char others[MT_MAX_OTHER_OUTCOMES][MT_PLACE_BYTES];
    unsigned other_count;
};

/* A trace that the run left. */
struct mt_dry_run_trace {
    char *path;
    uint64_t reserved_peak_bytes, process_id;
    bool is_pytorch;  /* contains segments of PyTorch */
    bool died_of_oom; /* nothing was allocated after an out-of-memory error */
};

/* Numbers of traces with unknown peaks. */
struct mt_dry_run_unread {
    size_t running; /* of processes that were still running when the command ended */
    size_t failed, incomplete;
};

struct mt_dry_run_answer {
    const struct mt_card *card;
    uint64_t devices, memory_bytes; /* memory of each device */
    bool has_limit;                 /* memory_bytes is from an option, not from the card */
    int exit_status;                /* of the command; 128 + signal if a signal ended it */
    int signal;                     /* the signal that ended the command; 0: none */
    bool timed_out, was_not_run;
    const char *imbalance; /* --imbalance; NULL: not given */
    const struct mt_dry_run_notes *notes;
    const struct mt_assumption *assumption; /* of the run; NULL: the default */
    const struct mt_sweep_result *measured; /* with the ranges of the peaks; NULL: not measured */
    const struct mt_dry_run_trace *traces;
    size_t trace_count;
    struct mt_dry_run_unread unread;
    const struct mt_simulated_site
        *site;           /* NULL: the environment already had simulated libraries */
    const char *command; /* words for a shell; NULL: several runs */
    struct mt_common *common;
    struct mt_gate_options *gates;
    struct mt_gate_run *gate_run;
};

#endif
