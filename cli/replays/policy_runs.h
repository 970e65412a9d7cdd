/* Replays a trace under several policies in parallel. Used by several commands. */
#ifndef MT_CLI_POLICY_RUNS_H
#define MT_CLI_POLICY_RUNS_H

#include "cli.h"
#include "json.h"

/* Replays a whole source under one policy. The source is at its start. `index` is the position of
 * the policy in the list. Several threads call the function, each with its own source, so it must
 * not print and may write only to data of `index`. */
typedef enum mt_status mt_policy_run(void *context, struct mt_source *source, const char *policy,
                                     size_t index, struct mt_error *error);

struct mt_policy_runs {
    struct mt_source *source; /* used by the calling thread, which runs the first policy */
    const char *path, *heap;  /* for opening the source again; heap: NULL, or that of --heap */
    const struct mt_common *common;
    const struct mt_text_list *policies;
    const char *what; /* text of the progress */
    uint64_t jobs;    /* policies in parallel; 0 = as many as there are processors */
    mt_policy_run *run;
    void *context;
};

/* Runs each policy of the list until one fails. The result does not depend on `jobs`. Prints the
 * error of the first policy in the list that failed; returns enum mt_exit. */
int mt_policy_runs_run(const struct mt_policy_runs *runs);

#define MT_JOBS_OPTION(target)                                                                     \
    {                                                                                              \
        "jobs", 'j', MT_OPTION_POSITIVE, "N", "simulate at most N policies in parallel", target    \
    }

/* Add a remark if the requests are not from an allocator above the driver: a note, or "requests":
 * "driver" (or the heap of --heap). Otherwise, or for a NULL source, add nothing. */
void mt_policy_runs_add_requests(struct mt_buf *out, const struct mt_source *source);
void mt_json_requests(struct mt_json *json, const struct mt_source *source);

/* Prints why a policy could not run, and for an unknown name a suggestion. Returns the exit
 * code. */
int mt_policy_error(const char *path, const char *policy, const struct mt_error *error);

#endif
