/* What commands share that run a trace through several policies, several at the
 * same time. */
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
    struct mt_source *source; /* the calling thread's, who runs the first policy with it */
    const char *path, *heap;  /* to open it again; heap: NULL, or as in mt_choose_heap */
    const struct mt_common *common;
    const struct mt_text_list *policies;
    const char *what; /* for the progress */
    uint64_t jobs;    /* at the same time; 0 = as many as there are processors */
    mt_policy_run *run;
    void *context;
};

/* Runs each policy of the list, until one fails. What comes of it does not depend
 * on `jobs`. Returns enum mt_exit, having said what went wrong with the first policy
 * of the list that failed. */
int mt_run_policies(const struct mt_policy_runs *runs);

#define MT_ORDERS_OPTION(target)                                                                   \
    {                                                                                              \
        "orders", 0, MT_OPTION_POSITIVE, "N",                                                      \
            "number of orders of addresses to try, 1 to 8 (default: 8)", target                    \
    }

/* *orders: what --orders says; 0 becomes all. False, and said, if there are not that many. */
bool mt_orders_are_valid(uint64_t *orders);

#define MT_JOBS_OPTION(target)                                                                     \
    {                                                                                              \
        "jobs", 'j', MT_OPTION_POSITIVE, "N", "simulate at most N policies in parallel", target    \
    }

/* The heap of --heap; `name` may be NULL: as mt_heap_view_choose() does. Returns
 * enum mt_exit, having said what went wrong. */
int mt_choose_heap(struct mt_source *source, const char *path, const char *name);

/* What the requests are, if they are not those of an allocator above the driver:
 * a line, or "requests": "driver" (or the heap of --heap). Nothing else, and
 * nothing without a source. */
void mt_add_requests(struct mt_buf *out, const struct mt_source *source);
void mt_json_requests(struct mt_json *json, const struct mt_source *source);

/* Says why a policy could not run, with did-you-mean; the exit code for it. */
int mt_policy_error(const char *path, const char *policy, const struct mt_error *error);

#endif
