/* Tables of report.html, for one device each. Long tables show the most important rows and count
 * the rest. */
#ifndef MT_RENDER_PAGE_TABLES_H
#define MT_RENDER_PAGE_TABLES_H

#include "buf.h"
#include "report.h"

/* The four peaks and their times. */
void mt_add_peaks_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
/* What is alive at the allocated peak, by site; the script replaces the rows by those of other
 * instants. */
void mt_add_live_table(struct mt_buf *out, const struct mt_device_report *device);
/* Memory at the allocated peak, by layer and module. Nothing if the trace has no modules. */
void mt_add_modules_table(struct mt_buf *out, const struct mt_device_report *device);
/* The pools of PyTorch's allocator. Nothing if the run had no private pool. */
void mt_add_pools_table(struct mt_buf *out, const struct mt_device_report *device);
/* The next three write nothing if the trace has no steps, phases or out-of-memory errors. */
void mt_add_steps_table(struct mt_buf *out, const struct mt_report *report,
                        const struct mt_device_report *device);
void mt_add_phases_table(struct mt_buf *out, const struct mt_report *report,
                         const struct mt_device_report *device);
void mt_add_ooms_table(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device);

#endif
