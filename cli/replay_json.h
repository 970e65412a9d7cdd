/* The outcome of a replay as JSON, shared by analyze and replay. */
#ifndef MT_CLI_REPLAY_JSON_H
#define MT_CLI_REPLAY_JSON_H

#include "json.h"
#include "replay.h"

/* limit_bytes: recorded or requested. It is null if there is none, or if only a range is known;
 * limit_deduced then has the range. */
void mt_json_limit(struct mt_json *json, const struct mt_replay_result *result);

/* One entry of memtrace.replay/1's policies[]. */
void mt_json_replay_result(struct mt_json *json, const char *policy,
                           const struct mt_replay_result *result);

/* The field "restores". */
void mt_json_restores(struct mt_json *json, const struct mt_restore_share *share);

#endif
