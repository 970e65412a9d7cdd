/* Dry runs of one command with several values and ranks: the need of each, which of them fit on a
 * card, and the cost of one unit of the value. Plain data; texts are borrowed. */
#ifndef MT_DATA_SWEEP_H
#define MT_DATA_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "cards.h"
#include "card_use.h"
#include "dry_run_notes.h"
#include "holding.h"
#include "rank.h"
#include "report.h"

enum {
    MT_MAX_SWEEP_NAMES = 4, /* that the user gives */
    MT_MAX_SWEEP_RUNS = 64, /* of dry-run --sweep; a search chooses among more */
    MT_MAX_SWEEP_WORD = 32, /* bytes of a name */
    MT_MAX_SWEEP_VALUE = 64 /* bytes of a value */
};

enum mt_sweep_outcome {
    MT_SWEEP_NOT_RUN, /* it could not run, or its trace could not be read */
    MT_SWEEP_FINISHED,
    MT_SWEEP_NO_DEVICE, /* finished, but no recorded process used the device */
    MT_SWEEP_OUT_OF_MEMORY,
    MT_SWEEP_FAILED,
    MT_SWEEP_TIMED_OUT
};

/* Runs of the same command that assume something else about what a dry run does not know. */
enum mt_assumed {
    MT_ASSUMED_EARLY, /* memory that a real run may free earlier is freed as early as possible */
    MT_ASSUMED_LESS,  /* half as much of the made-up data; decisions have the other outcome */
    MT_ASSUMED_MORE   /* twice as much of it */
};
enum { MT_ASSUMED_COUNT = MT_ASSUMED_MORE + 1 };

struct mt_assumed_peaks {
    enum mt_sweep_outcome outcome; /* MT_SWEEP_NOT_RUN: the peaks are not known */
    uint64_t allocated_bytes, reserved_bytes;
    uint64_t card_bytes; /* 0 = not known */
};

/* The place of the program whose made-up answers explain most of a peak. */
struct mt_guess_cause {
    char place[128];               /* the end of "FILE:LINE"; "" = no place is known */
    char kind[16];                 /* of the answers (notes.py) */
    uint64_t size, of, peak_bytes; /* 0 = not known */
};

/* The result of one run. It describes one process: the one that ran out of memory, otherwise the
 * one with the largest reserved peak. Within it, it describes one device: the one that ran out of
 * memory, otherwise the one that needs most. Has no pointers, because processes pass it on. */
struct mt_sweep_result {
    enum mt_sweep_outcome outcome;
    int exit_status; /* of the command; 128 + the number of a signal */
    int signal;      /* that ended the command; 0 = none */
    int exit_code;   /* of a dry run with only this value */
    /* Peaks until the end of the run, even if it failed. is_measured: there is a trace. */
    bool is_measured;
    unsigned device;
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t role_bytes[MT_ROLE_COUNT]; /* at the allocated peak; their sum is that peak */
    /* Only for a run that finished. */
    bool has_need;
    struct mt_card_use card; /* `why_more` is not passed on */
    unsigned cuda_major;     /* of the row of CUDA itself in `card`; 0: the table has no row */
    enum mt_card_cost_kind cuda_kind; /* of that row */
    /* For a run that ran out of memory. */
    uint64_t oom_request_bytes;
    char oom_site[96];    /* "" = no stack */
    char oom_phase[64];   /* "step 1, backward" */
    uint64_t fake_groups; /* as in mt_dry_run_notes, and the next */
    bool exchanged_counts;
    uint64_t sizes_from_data, decisions_from_data; /* the peaks may depend on them */
    struct mt_guess_cause cause;                   /* of the dependence on them */
    struct mt_undecided undecided;
    struct mt_assumed_peaks assumed[MT_ASSUMED_COUNT];
    bool has_doubts; /* some processes are not in the peaks, or ran without the whole simulation */
    bool has_gates;
    unsigned gate_state; /* enum mt_gate_state */
    char trace[256];     /* name of the measured file; "" = none */
};

struct mt_sweep_run {
    const char *values[MT_MAX_SWEEP_NAMES + 1]; /* of the names; the rank is the last */
    const char *label;                          /* "batch=4, seq=128, rank 0" */
    const char *point_label;                    /* the same without the rank */
    size_t point; /* equal for the runs that differ only in their ranks, which are neighbors */
    struct mt_rank rank; /* world 0: the command is not distributed */
    bool is_ended;       /* has a result */
    bool is_cached;      /* from an earlier command; its files are not there */
    struct mt_sweep_result result;
};

/* Release it with free(sweep.runs), unless a plan owns it. */
struct mt_sweep {
    const char *names[MT_MAX_SWEEP_NAMES + 1]; /* "rank" is the last one if there are ranks */
    size_t name_count;
    const struct mt_card *card; /* the simulated card */
    uint64_t devices, memory_bytes;
    /* of the run with most ranks; 0: the runs are not ranks of a program */
    uint64_t world, local_world;
    struct mt_sweep_run *runs; /* the last name changes fastest */
    size_t run_count, run_capacity;
};

/* The title of the column with the names of runs, and the name of a run in it: the value of the
 * only name, or all values. */
const char *mt_sweep_column(const struct mt_sweep *sweep);
const char *mt_sweep_run_name(const struct mt_sweep *sweep, const struct mt_sweep_run *run);

/* "finished", "out of memory", ... */
const char *mt_sweep_outcome_name(enum mt_sweep_outcome outcome);

/* Reads a whole number of at most 18 digits; returns false for other texts. */
bool mt_sweep_number(const char *value, uint64_t *number);

/* Returns whether the sweep has exactly one name, all its values are numbers, and these are
 * quantities, not ranks. */
bool mt_sweep_is_numeric(const struct mt_sweep *sweep);

/* Returns whether the moment at which the memory of collectives is freed changes the result, or may
 * change it. */
bool mt_sweep_depends_on_timing(const struct mt_sweep_result *result);

/* Fills *points with one run for each point: its rank that ran out of memory or did not finish,
 * else the one that needs the most. Its names have no rank. */
void mt_sweep_take_points(const struct mt_sweep *sweep, struct mt_sweep *points);

/* Returns the run of a point; NULL: there is none. The runs are in the order of the points. */
const struct mt_sweep_run *mt_sweep_find_point(const struct mt_sweep *points, size_t point);

/* What the other runs show about sizes and decisions that depended on data. */
enum mt_guess_weight {
    MT_GUESSES_NONE,     /* there were none */
    MT_GUESSES_UNTRIED,  /* the command did not run again */
    MT_GUESSES_HARMLESS, /* no peak moves by more than MT_HARMLESS_PERCENT */
    MT_GUESSES_BOUNDED,
    MT_GUESSES_UNBOUNDED /* a run with other data ended for another reason */
};
enum { MT_HARMLESS_PERCENT = 1 };
enum mt_guess_weight mt_sweep_guess_weight(const struct mt_sweep_result *result);

/* Returns whether the run under this assumption has peaks that can be compared: it ended like one
 * that has its full peaks. A run that ended for another reason, for example because the files of
 * the first run exist, has lower peaks that mean nothing. */
bool mt_assumed_has_peaks(const struct mt_assumed_peaks *peaks);

/* Returns whether a run has memory of this role at its peak. */
bool mt_sweep_uses_role(const struct mt_sweep *sweep, int role);

/* The run with the largest reserved peak, the first among equals; NULL: no run used a device. */
const struct mt_sweep_run *mt_sweep_worst(const struct mt_sweep *sweep);

/* What a card must have for a run that finished: the most of it and of its runs with other data.
 * UINT64_MAX: one of these ran out of memory. */
uint64_t mt_sweep_need_bytes(const struct mt_sweep_result *result);

/* The memory that the run needs on another card than `simulated`, where CUDA itself takes a
 * different amount. Call it if the result has a need. */
struct mt_card_use mt_sweep_need_on(const struct mt_sweep_result *result,
                                    const struct mt_card *simulated, const struct mt_card *card);

/* Returns whether the memory of CUDA, or the kernels, are not those of this card. */
bool mt_sweep_is_estimate(const struct mt_card_use *use, const struct mt_card *simulated,
                          const struct mt_card *card);

/* The runs that finished and fit on a card. The largest is chosen by value in a numeric sweep,
 * otherwise by the card's need. NULL: none. */
struct mt_sweep_fit {
    const struct mt_sweep_run *fits;
    size_t fit_count, known_count; /* known: runs with a verdict */
    /* A run with a larger value did not finish, for a reason that may not apply to this card, so it
     * may fit. Only in a numeric sweep. */
    bool may_be_more;
};
struct mt_sweep_fit mt_sweep_fit_of(const struct mt_sweep *sweep, const struct mt_card *card);

/* The cost of one unit of the value in a numeric sweep: the slope between each two neighboring
 * values among the finished runs. A repeated value counts once. */
enum { MT_SWEEP_SLOPE_POINTS = 3 }; /* fewer cannot confirm a line */

struct mt_sweep_slope {
    size_t points; /* below MT_SWEEP_SLOPE_POINTS there is no line: two points always lie on one */
    uint64_t from, to;
    bool is_exact;                   /* all points lie on a line with a slope of whole bytes */
    int64_t least_bytes, most_bytes; /* equal if exact; otherwise rounded down and up */
};
struct mt_sweep_slope mt_sweep_slope_of(const struct mt_sweep *sweep,
                                        uint64_t (*bytes_of)(const struct mt_sweep_result *));

/* Takes the measurements of a sweep from the report of one run. */

/* Returns true if the run ended with a request that the device could not serve. */
bool mt_dry_run_ran_out(const struct mt_report *report);

/* Fills the measurements of *result. result->outcome must be set from the exit status. Changes the
 * outcome if the failure was an out-of-memory error. The report must be made with the option
 * `needs`. */
void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report);

#endif
