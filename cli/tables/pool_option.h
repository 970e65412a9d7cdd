/* --pool: replays a run with additional pools (analyzer/foresight/foresight.h), and adds their
 * contents to the answer. */
#ifndef MT_CLI_POOL_OPTION_H
#define MT_CLI_POOL_OPTION_H

#include "arena.h"
#include "cli.h"
#include "json.h"
#include "replay.h"

/* Adds all pools of --pool to every PyTorch policy of the list. The new texts are in the arena.
 * Returns MT_EXIT_OK, or an exit code after an error message. */
int mt_pools_to_policies(const struct mt_text_list *pools, struct mt_text_list *policies,
                         struct mt_arena *arena);

/* Add the contents of the pools of a policy: a line for each pool, or the member "pools". Add
 * nothing if there are no pools. */
void mt_pool_option_add_shares(struct mt_buf *out, const char *policy,
                               const struct mt_pool_share *shares);
void mt_json_pool_shares(struct mt_json *json, const char *policy,
                         const struct mt_pool_share *shares);

#endif
