/* Tables of report.html, of one device each. Rows have the exact numbers by which a
 * script can sort in data-v, and in words for people; without scripts they stand as
 * they are. Of very many rows those that matter most are shown, and the rest is
 * counted. */
#ifndef MT_RENDER_PAGE_TABLES_H
#define MT_RENDER_PAGE_TABLES_H

#include "buf.h"
#include "report.h"

/* The four peaks, and when each was. */
void mt_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
/* What is alive at the allocated peak, by site; the script puts other instants there. */
void mt_add_live_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device);
/* Nothing if the trace has none. */
void mt_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
void mt_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                         const struct mt_device_report *device);
void mt_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device);

/* Text of a trace, escaped, and so short that no name can swell the page. */
void mt_add_page_name(struct mt_buf *out, const char *name);

#endif
