/* Reasons why restored pools (analyzer/replay/pool_restores.h) make a replay approximate: the
 * same texts in `replay` and `analyze`. */
#ifndef MT_CLI_RESTORE_DOUBTS_H
#define MT_CLI_RESTORE_DOUBTS_H

#include "replay_result.h"

enum { MT_RESTORE_DOUBTS = 3, MT_RESTORE_DOUBT_TEXT = 256 };

/* Writes the doubt of a number below MT_RESTORE_DOUBTS to `text`; NULL if the replay does not
 * have it. */
const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT]);

#endif
