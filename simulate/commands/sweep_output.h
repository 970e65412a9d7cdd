/* Writes the results of a sweep. */
#ifndef MT_CLI_SWEEP_OUTPUT_H
#define MT_CLI_SWEEP_OUTPUT_H

#include "json.h"
#include "search.h"
#include "sweep.h"
#include "sweep_plan.h"

/* Appends tables of peaks, roles and cards, and the cost of each increment of a value. */
void mt_sweep_add_text(struct mt_buf *out, const struct mt_sweep *sweep);

/* Appends a document "memtrace.sweep/1". It has the names of traces and logs only if `has_files` is
 * set. */
void mt_sweep_add_json(struct mt_buf *out, struct mt_sweep_plan *plan, bool has_files);

/* Parts of these answers that a plan shares: why numbers may differ from those of real runs, and a
 * run as an object. */
void mt_sweep_add_doubts(struct mt_buf *out, const struct mt_sweep *sweep);
void mt_json_sweep_run(struct mt_json *json, struct mt_sweep_plan *plan,
                       const struct mt_sweep_run *run, bool has_files);

/* What a search found. */
struct mt_plan_answer {
    struct mt_sweep_plan *plan; /* its runs are in the order of the grid */
    const struct mt_search *search;
    const struct mt_sweep *points;      /* mt_sweep_take_points of the plan */
    const struct mt_card *const *cards; /* ascending by memory, like those of the search */
    size_t runs, cached;                /* dry runs of this command, and results of earlier ones */
    bool is_cut;                        /* more runs than allowed would be necessary */
    bool has_files;
    const char *shard;    /* "1/4"; NULL: the whole plan */
    const char *no_cache; /* why there is no cache, if the user does not know; otherwise NULL */
};

void mt_plan_add_text(struct mt_buf *out, const struct mt_plan_answer *answer);

/* Appends a document "memtrace.plan/1". */
void mt_plan_add_json(struct mt_buf *out, const struct mt_plan_answer *answer);

/* The metrics for which the output has a slope, in the order of the output. */
struct mt_sweep_metric {
    const char *words, *key;
    uint64_t (*bytes_of)(const struct mt_sweep_result *result);
};
enum { MT_SWEEP_METRICS = 2 };

/* Ranges of the peaks, from runs of the same command under other assumptions. */

/* Appends lines for one run: on what its peaks depend, and their ranges. A dependence that moves no
 * peak has no line. */
void mt_assumed_add_ranges(struct mt_buf *out, const struct mt_sweep_result *result);

/* Appends tables of the runs of a sweep whose peaks depend on timing and on data. */
void mt_sweep_add_assumed(struct mt_buf *out, const struct mt_sweep *sweep);

/* Adds the members "depended_on_timing" of a run of a sweep, and "assumed". */
void mt_json_sweep_timing(struct mt_json *json, const struct mt_sweep_result *result);
void mt_json_assumed(struct mt_json *json, const struct mt_sweep_result *result);

#endif
