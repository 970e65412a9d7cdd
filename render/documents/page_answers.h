/* The first screen of report.html: the memory that the device needs, what holds it, and the first
 * change to make. */
#ifndef MT_RENDER_PAGE_ANSWERS_H
#define MT_RENDER_PAGE_ANSWERS_H

#include "buf.h"
#include "report.h"

/* Describes the device that the text answer is about (mt_worst_device). Appends nothing if there
 * is none, or if its peak is unknown. */
void mt_add_page_answers(struct mt_buf *out, const struct mt_report *report);

#endif
