/* The rows of an answer: a whole snapshot, grouped. */
#ifndef MT_ANALYZER_LIVE_ROWS_H
#define MT_ANALYZER_LIVE_ROWS_H

#include "attributed.h"
#include "question.h"
#include "report.h"
#include "snapshot.h"

/* Groups a whole snapshot into the answer's rows, which sum to it. Sites are as fine as in
 * mt_attribute_change. `most`: limit of told_count, 0 = all. */
void mt_attribute_live(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                       enum mt_group_by by, uint32_t most, struct mt_answer *answer);

#endif
