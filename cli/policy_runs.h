/* Runs a trace through several policies in parallel, for several commands. */
#ifndef MT_CLI_POLICY_RUNS_H
#define MT_CLI_POLICY_RUNS_H

#include "cli.h"
#include "json.h"

/* Runs one policy over a whole source, which is at its start. Several threads call it, each with
 * its own source: it prints nothing and writes only to data of `index`, the position of the policy
 * in the list. */
typedef enum mt_status mt_policy_run(void *context, struct mt_source *source, const char *policy,
                                     size_t index, struct mt_error *error);

struct mt_policy_runs {
    struct mt_source *source; /* of the calling thread, which runs the first policy with it */
    const char *path, *heap;  /* to open it again; heap: NULL, or as in mt_choose_heap */
    const struct mt_common *common;
    const struct mt_text_list *policies;
    const char *what; /* for the progress */
    uint64_t jobs;    /* at the same time; 0 = as many as there are processors */
    mt_policy_run *run;
    void *context;
};

/* Runs each policy of the list until one fails. The result does not depend on `jobs`. Prints the
 * error of the first policy in the list that failed; returns enum mt_exit. */
int mt_run_policies(const struct mt_policy_runs *runs);

#define MT_ORDERS_OPTION(target)                                                                   \
    {                                                                                              \
        "orders", 0, MT_OPTION_POSITIVE, "N",                                                      \
            "number of orders of addresses to try, 1 to 8 (default: 8)", target                    \
    }

/* *orders is the value of --orders; 0 becomes the largest number. Prints an error and returns
 * false if it is larger than that. */
bool mt_orders_are_valid(uint64_t *orders);

#define MT_JOBS_OPTION(target)                                                                     \
    {                                                                                              \
        "jobs", 'j', MT_OPTION_POSITIVE, "N", "simulate at most N policies in parallel", target    \
    }

/* Selects the heap of --heap. NULL keeps the heaps that mt_heap_view_choose() chose. Prints
 * errors; returns enum mt_exit. */
int mt_choose_heap(struct mt_source *source, const char *path, const char *name);

/* Names the requests if the trace has none of an allocator above the driver: as a note, or as
 * "requests": "driver" (or the heap of --heap). Otherwise, and for a NULL source, adds nothing. */
void mt_add_requests(struct mt_buf *out, const struct mt_source *source);
void mt_json_requests(struct mt_json *json, const struct mt_source *source);

/* Prints why a policy could not run, with a suggestion for an unknown name; returns the exit
 * code. */
int mt_policy_error(const char *path, const char *policy, const struct mt_error *error);

#endif
