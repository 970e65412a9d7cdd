/* What report.js reads: the history of a device as JSON, small enough for a page.
 *
 * {"device", "unit": bytes of which all sizes and changes are multiples,
 *  "plot": [x, y, width, height] of the timeline chart, "xs": of the edges of
 *  columns in it, "t", "event", "where", "reserved": of each column's instant, "strings",
 *  "frames": [[name, place or -1, origin], ...], "nodes": [parent or -1, frame, ...],
 *  "groups": [node or -1, site, phase or -1, role, size, detail, ...],
 *  "blocks": [[key, bytes, requested, birth ns or -1 (older than the history), end event or -1,
 *              end ns or -1, role, where, site, operation or -1, node or -1], ...],
 *  "changes": [[group, bytes, blocks, ...] of each column], "small": bytes}
 * Names are numbers of strings; bytes of changes and sizes count in units. Rows of blocks are
 * those of the charts of blocks and of addresses, by the keys that shapes there have
 * (block_key.h); times count from the first event. */
#ifndef MT_RENDER_PAGE_DATA_H
#define MT_RENDER_PAGE_DATA_H

#include "buf.h"
#include "history_model.h"
#include "report.h"

/* Appends the document of a device that has a history and a timeline. If it would take more than
 * `most_bytes`, reduces the history a little (mt_history_reduce); if that is not enough, leaves
 * out the rows of blocks and reduces it as far as needed. Appends nothing if it still does not
 * fit. *has_blocks: "blocks" has rows. The only error is MT_ERR_MEMORY. */
enum mt_status mt_add_page_data(struct mt_buf *out, const struct mt_report *report,
                                const struct mt_device_report *device, size_t most_bytes,
                                bool *has_blocks) MT_MUST_USE;

#endif
