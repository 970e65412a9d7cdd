/* The result of a dry run after its command has ended. */
#ifndef MT_CLI_DRY_RUN_RESULT_H
#define MT_CLI_DRY_RUN_RESULT_H

#include "cards.h"
#include "dry_run_notes.h"
#include "gate_run.h"

struct mt_simulated_site; /* simulated_site.h */

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
    const struct mt_dry_run_trace *traces;
    size_t trace_count;
    struct mt_dry_run_unread unread;
    const struct mt_simulated_site
        *site; /* NULL: the environment already had simulated libraries */
    struct mt_common *common;
    struct mt_gate_options *gates;
    struct mt_gate_run *gate_run;
};

#endif
