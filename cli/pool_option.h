/* --pool: pools that the run did not have, and their part of the answer
 * (analyzer/replay/pool_routes.h). */
#ifndef MT_CLI_POOL_OPTION_H
#define MT_CLI_POOL_OPTION_H

#include "arena.h"
#include "cli.h"
#include "json.h"
#include "replay.h"

/* Gives every pool of --pool to every PyTorch policy of the list; the new texts are in the arena.
 * Returns MT_EXIT_OK, or an exit code after an error message. */
int mt_pools_to_policies(const struct mt_text_list *pools, struct mt_text_list *policies,
                         struct mt_arena *arena);

/* The contents of the pools in the text of the policy: one line per pool, or the member "pools".
 * Nothing without pools. */
void mt_add_pool_shares(struct mt_buf *out, const char *policy, const struct mt_pool_share *shares);
void mt_json_pool_shares(struct mt_json *json, const char *policy,
                         const struct mt_pool_share *shares);

#endif
