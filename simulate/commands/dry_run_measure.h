/* The result of a dry run after its command has ended: reads the trace that determines how much
 * memory a card must have, and checks the gates, which apply to every process that used the device.
 */
#ifndef MT_CLI_DRY_RUN_MEASURE_H
#define MT_CLI_DRY_RUN_MEASURE_H

#include "analyze_options.h"
#include "cards.h"
#include "dry_run_notes.h"
#include "gate_run.h"
#include "json.h"
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

/* `result` is filled as far as it is known. Release it with mt_dry_run_measured_release. */
struct mt_dry_run_measured {
    const struct mt_dry_run_trace *trace; /* borrowed; NULL: no process used the device */
    struct mt_source *source;             /* of the trace; NULL if there is none, also the next */
    struct mt_report *report;
    struct mt_sweep_result result;
};

/* Returns the trace that determines how much memory a card must have: one that ended with an
 * out-of-memory error, otherwise the one with the largest reserved peak. NULL: no process used the
 * device. */
const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer);

/* Analyzes the worst trace of a run; `options` needs no path, and `needs` is set. The report has
 * the doubt of the answer. Returns MT_EXIT_OK, also without a trace, or the exit code after an
 * error message. Release *measured in any case. */
int mt_dry_run_measure(const struct mt_dry_run_answer *answer,
                       const struct mt_analyze_options *options,
                       struct mt_dry_run_measured *measured);
void mt_dry_run_measured_release(struct mt_dry_run_measured *measured);

/* Checks the gates of answer->gate_run for the measured trace, if there is one. If no gate fails,
 * analyzes the other traces until a gate fails. Leaves the worst results in answer->gate_run. Sets
 * *failing to the trace with these results, or to NULL if that is the measured one. If the run may
 * need more memory than was measured, gates that do not fail are "not evaluated". Prints errors and
 * returns their exit code. A failed gate is not an error. */
int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_measured *measured,
                           const struct mt_dry_run_trace **failing);

/* Returns true if there are rules but no trace. The program may have run on the CPU. */
bool mt_dry_run_lacks_evaluation(const struct mt_dry_run_answer *answer);

/* Returns the exit code of the whole command. Call it after the gates are checked. `report` is NULL
 * if there is no trace. */
int mt_dry_run_exit_code(const struct mt_dry_run_answer *answer, const struct mt_report *report);

/* Reasons why the answer is incomplete, or why its peaks may differ from those of a real run
 * (dry_run_doubts.c): a command that failed, processes whose traces are missing or that ran without
 * the simulated device or without the Python part, made-up data, timing. */

/* Returns a clause that explains why the run may need more memory than the measured peak. NULL:
 * there is no reason. */
const char *mt_dry_run_lower_bound(const struct mt_dry_run_answer *answer);

/* Returns true if the peaks may be wrong because processes are missing from the answer, or because
 * processes ran without the simulated device, without the Python part, or with another PyTorch. */
bool mt_dry_run_has_doubts(const struct mt_dry_run_answer *answer);

/* Appends a line for each doubt. If `is_out_of_memory` is set, omits how the command ended, because
 * the answer already contains it. */
void mt_dry_run_add_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                           bool is_out_of_memory);

/* Appends why no recorded process used the device, and a remedy. */
void mt_dry_run_add_nothing(struct mt_buf *out, const struct mt_dry_run_answer *answer);

/* Adds the members "python" and "processes". */
void mt_json_dry_run_doubts(struct mt_json *json, const struct mt_dry_run_answer *answer);

#endif
