/* Sums of blocks by the tags that the program gave them. */
#ifndef MT_ANALYZER_FILL_TAGS_H
#define MT_ANALYZER_FILL_TAGS_H

#include "report.h"

/* Sums the holdings of `peak` by tag into out->peak_tags; adds nothing if no block has a tag. */
void mt_fill_tags(struct mt_arena *arena, const struct mt_symbols *symbols,
                  const struct mt_instant *peak, struct mt_device_report *out);

#endif
