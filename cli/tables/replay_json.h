/* The result of a replay as JSON, shared by analyze and replay. */
#ifndef MT_CLI_REPLAY_JSON_H
#define MT_CLI_REPLAY_JSON_H

#include "json.h"
#include "replay.h"
#include "replay_result.h"

/* Adds "limit_bytes" and "limit_deduced". limit_bytes is the recorded or requested limit; null if
 * there is none. If only a range is known, limit_deduced has the range and limit_bytes is null. */
void mt_json_limit(struct mt_json *json, const struct mt_replay_result *result);

/* Adds an entry to the list "policies" of memtrace.replay/1. */
void mt_json_replay_result(struct mt_json *json, const char *policy,
                           const struct mt_replay_result *result);

/* Adds the members "frees" to "exact_counters": what a claim of exactness compared and covers. */
void mt_json_covered(struct mt_json *json, const struct mt_replay_verify *verify);

/* Adds the member "restores". */
void mt_json_restores(struct mt_json *json, const struct mt_restore_share *share);

/* Reasons why restored pools (analyzer/replay/pool_tracks.h) make a replay approximate. `replay`
 * and `analyze` print the same texts. */

enum { MT_RESTORE_DOUBTS = 4, MT_RESTORE_DOUBT_TEXT = 256 };

/* Writes reason `number` (less than MT_RESTORE_DOUBTS) to `text` and returns it. Returns NULL if
 * the reason does not apply to the replay. */
const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT]);

#endif
