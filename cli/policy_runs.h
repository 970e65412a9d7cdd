/* What commands share that run a trace through several policies, one after the
 * other. */
#ifndef MT_CLI_POLICY_RUNS_H
#define MT_CLI_POLICY_RUNS_H

#include "cli.h"
#include "json.h"

/* One policy over the whole source, from its start. Returns enum mt_exit, having
 * said what went wrong; index: of the policy in the list. */
typedef int mt_policy_run(void *context, const char *policy, size_t index);

/* Runs each policy of the list, with progress called `what`, until one fails. */
int mt_run_policies(struct mt_source *source, const char *path, const struct mt_common *common,
                    const char *what, const struct mt_text_list *policies, mt_policy_run *run,
                    void *context);

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
