/* Reasons why restored pools (analyzer/replay/pool_tracks.h) make a replay approximate. `replay`
 * and `analyze` print the same texts. */
#ifndef MT_CLI_RESTORE_DOUBTS_H
#define MT_CLI_RESTORE_DOUBTS_H

#include "replay_result.h"

enum { MT_RESTORE_DOUBTS = 3, MT_RESTORE_DOUBT_TEXT = 256 };

/* Writes reason `number` (less than MT_RESTORE_DOUBTS) to `text` and returns it. Returns NULL if
 * the reason does not apply to the replay. */
const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT]);

#endif
