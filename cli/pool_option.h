/* --pool: pools that the run did not have, and what is said of them
 * (analyzer/replay/pool_routes.h). */
#ifndef MT_CLI_POOL_OPTION_H
#define MT_CLI_POOL_OPTION_H

#include "arena.h"
#include "cli.h"
#include "json.h"
#include "replay.h"

/* Gives every pool of --pool to every policy of the list that is PyTorch's; the
 * new texts are the arena's. MT_EXIT_OK, or an exit code after saying why. */
int mt_pools_to_policies(const struct mt_text_list *pools, struct mt_text_list *policies,
                         struct mt_arena *arena);

/* What went to the pools that the text of the policy names: a line each, and
 * "pools". Nothing without pools. */
void mt_add_pool_shares(struct mt_buf *out, const char *policy, const struct mt_pool_share *shares);
void mt_json_pool_shares(struct mt_json *json, const char *policy,
                         const struct mt_pool_share *shares);

#endif
