/* Tables of report.html. Each function appends a table about one device. Long tables show the most
 * important rows and the number of the others. */
#ifndef MT_RENDER_PAGE_TABLES_H
#define MT_RENDER_PAGE_TABLES_H

#include "buf.h"
#include "report.h"

/* Appends the four peaks and their times. */
void mt_page_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                             const struct mt_device_report *device);

/* Appends the memory that is live at the allocated peak, by site. The script replaces the rows with
 * those of other instants. */
void mt_page_add_live_table(struct mt_buf *out, const struct mt_device_report *device);

/* Appends the memory at the allocated peak, by layer and module. Appends nothing if the trace has
 * no modules. */
void mt_page_add_modules_table(struct mt_buf *out, const struct mt_device_report *device);

/* Appends the pools of PyTorch's allocator. Appends nothing if the run had no private pool. */
void mt_page_add_pools_table(struct mt_buf *out, const struct mt_device_report *device);

/* The next three functions append nothing if the trace has no steps, phases or out-of-memory
 * errors. */
void mt_page_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                             const struct mt_device_report *device);
void mt_page_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                              const struct mt_device_report *device);
void mt_page_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                            const struct mt_device_report *device);

/* The first screen of report.html: how much memory the run needs, what holds the memory, and the
 * first change to make. */

/* Appends the answers for the worst device (mt_worst_device), which is also the subject of the text
 * answer. Appends nothing if there is no device or if its peak is unknown. */
void mt_page_add_answers(struct mt_buf *out, const struct mt_report *report);

#endif
