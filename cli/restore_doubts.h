/* What makes restored pools (analyzer/replay/pool_restores.h) approximate in a replay: the same
 * words in `replay` and `analyze`. */
#ifndef MT_CLI_RESTORE_DOUBTS_H
#define MT_CLI_RESTORE_DOUBTS_H

#include "replay_result.h"

enum { MT_RESTORE_DOUBTS = 3, MT_RESTORE_DOUBT_TEXT = 256 };

/* The doubt of a number below MT_RESTORE_DOUBTS, in `text`; NULL if the replay does not have it. */
const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT]);

#endif
