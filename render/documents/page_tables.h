/* Tables of report.html, for one device each. Long tables show the most important rows and count
 * the rest. */
#ifndef MT_RENDER_PAGE_TABLES_H
#define MT_RENDER_PAGE_TABLES_H

#include "buf.h"
#include "report.h"

/* The four peaks, and when each was. */
void mt_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
/* What is alive at the allocated peak, by site; the script puts other instants there. */
void mt_add_live_table(struct mt_buf *out, const struct mt_device_report *device);
/* Who holds the memory then, by layer and module. Nothing if the trace shows none. */
void mt_add_modules_table(struct mt_buf *out, const struct mt_device_report *device);
/* The pools of PyTorch's allocator. Nothing if the run had no private one. */
void mt_add_pools_table(struct mt_buf *out, const struct mt_device_report *device);
/* Nothing if the trace has none. */
void mt_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
void mt_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                         const struct mt_device_report *device);
void mt_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device);

#endif
