/* The data that report.js reads: the history of a device as JSON. Below, "string" stands for an
 * index in "strings". A size in units is a multiple of "unit" bytes. Times are in nanoseconds since
 * the first event.
 *
 * {"device": number, "unit": bytes, "small": bytes (smaller groups may be merged; 0 = none are),
 *  "plot": [x, y, width, height] of the plot of the timeline chart,
 *  "xs": [x of each edge of the columns in the plot],
 *  "t", "event", "reserved", "where": arrays with the time, the event, the reserved bytes and the
 *      phase and step (string) of each column's instant,
 *  "strings": [...],
 *  "frames": [[name (string), place (string) or -1, origin], ...],
 *  "nodes": [parent or -1, frame, ...], the tree of call stacks,
 *  "groups": [node or -1, site (string), phase (string) or -1, role, size of a block in units,
 *             detail (enum mt_history_detail), ...],
 *  "blocks": [[key, bytes, requested bytes, start or -1 (before the history), end event or -1,
 *              end time or -1, role, phase and step (string), site (string),
 *              operation (string) or -1, node or -1], ...],
 *  "changes": [[group, change in units, change of the number of blocks, ...] of each column]}
 *
 * "blocks" has the blocks that are drawn in the charts of blocks and of addresses. Their keys are
 * those of the shapes in these charts (block_key.h). */
#ifndef MT_RENDER_PAGE_DATA_H
#define MT_RENDER_PAGE_DATA_H

#include "buf.h"
#include "history.h"
#include "report.h"

/* Appends the JSON document of a device that has a history and a timeline. Reduces the history
 * (mt_history_reduce) until the document takes at most `most_bytes`. Omits the rows of blocks if a
 * slightly reduced history with them does not fit. Appends nothing if no reduction fits. Sets
 * *has_blocks if the document has rows of blocks. */
void mt_page_add_data(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device, size_t most_bytes, bool *has_blocks);

#endif
