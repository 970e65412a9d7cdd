/* Dry runs of one command with several values: what each of them needs, which of them fit on a
 * card, and what one step of the value costs. Plain data; texts are borrowed. */
#ifndef MT_DATA_SWEEP_H
#define MT_DATA_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "cards.h"
#include "role.h"

enum {
    MT_MAX_SWEEP_NAMES = 4,
    MT_MAX_SWEEP_RUNS = 64,
    MT_MAX_SWEEP_WORD = 32 /* bytes of a name, and of a value */
};

enum mt_sweep_outcome {
    MT_SWEEP_NOT_RUN, /* it could not be run, or its trace could not be read */
    MT_SWEEP_FINISHED,
    MT_SWEEP_NO_DEVICE, /* finished, and no recorded process used the device */
    MT_SWEEP_OUT_OF_MEMORY,
    MT_SWEEP_FAILED,
    MT_SWEEP_TIMED_OUT
};
enum { MT_SWEEP_OUTCOMES = MT_SWEEP_TIMED_OUT + 1 };

/* Of the device that ran out of memory, else the one that needs most, in the process that ran out
 * of memory, else in the one with the largest reserved peak. No pointers: it goes from process to
 * process. */
struct mt_sweep_result {
    enum mt_sweep_outcome outcome;
    int exit_status; /* the command's; 128 + the number of a signal */
    int signal;      /* that ended the command; 0 = none */
    int exit_code;   /* of a dry run of this value alone */
    /* Peaks until the end of the run, also if it failed. is_measured: there is a trace. */
    bool is_measured;
    unsigned device;
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t role_bytes[MT_ROLE_COUNT]; /* at the allocated peak; their sum is that peak */
    /* Only of a run that finished. */
    bool has_need;
    uint64_t need_bytes;   /* the smallest limit of the allocator */
    uint64_t in_all_bytes; /* what a card must have */
    bool in_all_is_known;  /* false: in_all_bytes lacks what was not measured on this card */
    uint64_t fit_bytes;    /* for mt_card_verdict */
    /* Of a run that was out of memory. */
    uint64_t oom_request_bytes;
    char oom_site[96];                             /* "" = no stack */
    char oom_phase[64];                            /* "step 1, backward" */
    uint64_t sizes_from_data, decisions_from_data; /* the peaks may differ by them */
    bool has_doubts; /* processes are not in the peaks, or ran without all of the simulation */
    bool has_gates;
    unsigned gate_state; /* enum mt_gate_state */
    char trace[256];     /* the name of the file that was measured; "" = none */
};

struct mt_sweep_run {
    const char *values[MT_MAX_SWEEP_NAMES];
    const char *label; /* "batch=4, seq=128" */
    struct mt_sweep_result result;
};

struct mt_sweep {
    const char *names[MT_MAX_SWEEP_NAMES];
    size_t name_count;
    const struct mt_card *card; /* simulated */
    uint64_t devices, memory_bytes;
    uint64_t world, local_world; /* the runs are ranks of one program; 0 = they are not */
    struct mt_sweep_run runs[MT_MAX_SWEEP_RUNS]; /* the last name changes fastest */
    size_t run_count;
};

/* "finished", "out of memory", ... */
const char *mt_sweep_outcome_name(enum mt_sweep_outcome outcome);

/* A whole number of at most 18 digits; else false. */
bool mt_sweep_number(const char *value, uint64_t *number);

/* One name, and all of its values are numbers, which mean more or less: not ranks. */
bool mt_sweep_is_numeric(const struct mt_sweep *sweep);

/* The one with the largest reserved peak, of several the first; NULL: no run used a device. */
const struct mt_sweep_run *mt_sweep_worst(const struct mt_sweep *sweep);

/* Of the runs that finished, those that a card has memory for. Which is the largest: by the value
 * of a numeric sweep, else by what a card must have. NULL: none. */
struct mt_sweep_fit {
    const struct mt_sweep_run *fits, *tight;
    size_t fit_count, tight_count, known_count; /* known: runs of which a verdict can be given */
    /* A run with a larger value did not finish, for a reason that need not hold on this card: it
     * may fit. Only of a numeric sweep. */
    bool may_be_more;
};
struct mt_sweep_fit mt_sweep_fit_of(const struct mt_sweep *sweep, const struct mt_card *card);

/* What one more of the value costs, from neighbour to neighbour over the runs of a numeric sweep
 * that finished, each value once. */
enum { MT_SWEEP_SLOPE_POINTS = 3 }; /* fewer say nothing about a line */

struct mt_sweep_slope {
    size_t points; /* fewer than MT_SWEEP_SLOPE_POINTS: two always lie on a line */
    uint64_t from, to;
    bool is_exact;                   /* all points lie on a line, with a slope of whole bytes */
    int64_t least_bytes, most_bytes; /* equal if exact; rounded apart otherwise */
};
struct mt_sweep_slope mt_sweep_slope_of(const struct mt_sweep *sweep,
                                        uint64_t (*bytes_of)(const struct mt_sweep_result *));

#endif
