/* The first screen of report.html: how much memory the run needs, what holds the memory, and the
 * first change to make. */
#ifndef MT_RENDER_PAGE_ANSWERS_H
#define MT_RENDER_PAGE_ANSWERS_H

#include "buf.h"
#include "report.h"

/* Appends the answers for the worst device (mt_worst_device), which is also the subject of the text
 * answer. Appends nothing if there is no device or if its peak is unknown. */
void mt_add_page_answers(struct mt_buf *out, const struct mt_report *report);

#endif
