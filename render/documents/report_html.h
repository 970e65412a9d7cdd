/* A report as one page: charts, findings, tables, and the live blocks at every time. The page needs
 * no network and works without scripts. Scripts let a reader choose an instant, search, and zoom
 * into a range of time. For any trace, the page has less than MT_REPORT_HTML_BYTES, and it names
 * what it omits. */
#ifndef MT_RENDER_REPORT_HTML_H
#define MT_RENDER_REPORT_HTML_H

#include "buf.h"
#include "diff.h"
#include "gate_result.h"
#include "question.h"

#define MT_REPORT_HTML_BYTES  1000000
#define MT_REPORT_SMALL_BYTES 200000

/* Returns the models of the report that the page reads: enum mt_model_bit. */
unsigned mt_report_html_models(void);

struct mt_report_html {
    const struct mt_report *report;
    const struct mt_gates *gates; /* NULL = none */
    const char *answer;           /* the text answer; NULL = none */
    /* For notebooks: only the timeline of this device, what can be selected on it, and the live
     * blocks, in less than MT_REPORT_SMALL_BYTES. NULL: the whole page. The device has a history
     * and a timeline. */
    const struct mt_device_report *only;
};

void mt_report_html_add(struct mt_buf *out, const struct mt_report_html *page);

/* Two runs on one page: their timelines on one axis, what changed by role, site, phase and call
 * stack, and the answer as text. The page has the rules and the limit of the page of one run. */

/* Returns the models of both reports that the page reads: enum mt_model_bit. */
unsigned mt_diff_html_models(void);

struct mt_diff_html {
    const struct mt_diff *diff;
    const struct mt_device_diff *device; /* a device of `diff`; NULL = no device is in both runs */
    const struct mt_question *question;
    const char *answer; /* the text answer */
};

void mt_diff_html_add(struct mt_buf *out, const struct mt_diff_html *page);

#endif
