/* One setting of the allocator for all ranks of a job: which ranks to replay, and which setting to
 * choose. Plain data; the caller replays (fleet_parts.h).
 *
 *     mt_job_settings_plan()      chooses the rows to replay, and those of them to tune
 *     ... candidates from tune of the tuned rows; a replay of each on each row ...
 *     mt_job_trial_shortlist()    chooses the settings whose smallest limits are searched
 *     ... the searches ...
 *     mt_job_trial_choose(), mt_job_trial_own_best()
 *
 * The need of a row is that of its allocator (struct mt_need) plus the process's memory outside of
 * the allocator, which no setting changes. */
#ifndef MT_FLEET_JOB_SETTINGS_H
#define MT_FLEET_JOB_SETTINGS_H

#include "job_report.h"

#define MT_JOB_TUNED     16 /* clusters that are tuned: those that need the most */
#define MT_JOB_WORST     4  /* rows of the job that are replayed, whatever their cluster */
#define MT_JOB_SHORTLIST 8  /* settings whose smallest limit is searched on every row */
#define MT_NO_SETTING    UINT32_MAX

/* A row to replay. */
struct mt_job_check {
    uint32_t row;
    bool is_tuned; /* it represents its cluster */
};

/* Chooses the rows to replay among those with `can_replay` (one per row): the row with the largest
 * need of each of the MT_JOB_TUNED clusters with the largest needs, which is tuned; the
 * MT_JOB_WORST rows with the largest needs; and all other devices of their processes, which have
 * the same setting. *checks is in `arena`, by need, largest first, then by row; it has at most
 * (MT_JOB_TUNED + MT_JOB_WORST) * MT_MAX_DEVICES. O(rows * processes that are replayed). */
void mt_job_settings_plan(const struct mt_job_report *report, const bool *can_replay,
                          struct mt_arena *arena, struct mt_job_check **checks, uint32_t *count);

/* Returns true if the records are devices of one process. */
bool mt_job_is_one_process(const struct mt_rank_record *a, const struct mt_rank_record *b);

/* The result of a row under one setting. */
struct mt_job_cell {
    uint64_t peak_bytes;   /* reserved, without a limit */
    uint64_t driver_calls; /* without a limit: allocations and frees */
    bool is_searched;      /* the members below are known */
    bool serves;           /* there is a limit with which the row can run */
    bool is_exact;         /* need_bytes is exact; otherwise it is a lower bound */
    uint64_t limit_bytes;  /* smallest limit of the allocator with which the row can run, in every
                              order of addresses */
    uint64_t need_bytes;   /* of the allocator at this limit */
};

/* Results of the replays. Rows are those of the plan. */
struct mt_job_trial {
    uint32_t row_count;
    const uint64_t *beside_bytes;     /* of a row, outside of its allocator */
    const struct mt_job_cell *before; /* of a row, under its own setting; searched */
    uint32_t setting_count;
    const char *const *confs;        /* distinct, as PYTORCH_CUDA_ALLOC_CONF spells them */
    const struct mt_job_cell *cells; /* setting * row_count + row */
};

/* Marks the `most` settings whose largest peak over the rows is smallest. A row's peak includes its
 * memory outside of the allocator. Ties go to the first setting. O(settings^2 + settings *
 * rows). */
void mt_job_trial_shortlist(const struct mt_job_trial *trial, uint32_t most, bool *is_listed);

/* The largest need over all rows. */
struct mt_job_largest {
    uint32_t row; /* of the trial: the first with the largest need */
    uint64_t needed_bytes;
    uint64_t limit_bytes; /* the smallest limit with which all rows can run; may be that of another
                             row */
    bool is_exact;        /* the needs of all rows are exact */
};

struct mt_job_choice {
    uint32_t setting;                    /* MT_NO_SETTING: none needs less than the rows' own */
    struct mt_job_largest before, after; /* after: equal to `before` if no setting is chosen */
};

/* Among the settings that were searched on every row and with which all rows can run, chooses the
 * one whose largest need over the rows is smallest. Ties are decided by the smaller limit, then by
 * the smaller sum of needs, fewer calls of the driver, fewer options, and the lower index.
 * O(settings * rows). */
void mt_job_trial_choose(const struct mt_job_trial *trial, struct mt_job_choice *choice);

/* Among the settings that were searched on this row, returns the one with the smallest need. Ties
 * are decided as in mt_job_trial_choose. MT_NO_SETTING: no setting needs less than the row's
 * own. */
uint32_t mt_job_trial_own_best(const struct mt_job_trial *trial, uint32_t row);

/* Returns the memory that the process needs in this cell. */
uint64_t mt_job_trial_needed(const struct mt_job_trial *trial, const struct mt_job_cell *cell,
                             uint32_t row);

/* How certain the answer is for a row of the report. */
enum mt_job_row_check {
    MT_JOB_CHECKED,    /* replayed under the setting */
    MT_JOB_ALIKE,      /* a row of its cluster was replayed */
    MT_JOB_NOT_CHECKED /* no row of its cluster was replayed */
};

/* Fills `states`, one for each row of the report. O(rows). */
void mt_job_settings_states(const struct mt_job_report *report, const struct mt_job_check *checks,
                            uint32_t count, struct mt_arena *arena, enum mt_job_row_check *states);

/* The answer. All arrays are in `arena`. */
struct mt_job_settings {
    struct mt_arena arena;
    struct mt_job_check *checks; /* trial.row_count of them */
    struct mt_job_trial trial;
    struct mt_job_choice choice;
    const char **own_confs; /* the setting of the run, for a check that was tuned; otherwise NULL */
    enum mt_job_row_check *states; /* one per row of the report */
    const char **reasons;          /* one per row: why it cannot be replayed; NULL: it can */
    uint64_t tune_settings;        /* number of settings that tune tried, over all tuned traces */
    uint64_t readings;             /* passes over traces: replays, and their preparation */
    uint32_t trace_count;          /* traces that were replayed */
    uint32_t tuned_count;          /* those of them that were tuned */
    uint32_t unreadable_count;     /* traces that are there but cannot be read */
};

void mt_job_settings_free(struct mt_job_settings *settings);

#endif
