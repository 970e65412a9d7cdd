/* The first screen of report.html: what the device must have, who holds its memory, what to change
 * first. */
#ifndef MT_RENDER_PAGE_ANSWERS_H
#define MT_RENDER_PAGE_ANSWERS_H

#include "buf.h"
#include "report.h"

/* Of the device that the text speaks of (mt_worst_device); nothing if there is none, or if its peak
 * is not known. */
void mt_add_page_answers(struct mt_buf *out, const struct mt_report *report);

#endif
