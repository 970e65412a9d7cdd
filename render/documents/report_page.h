/* Parts of the page about a run: its data, its tables and answers. */
#ifndef MT_RENDER_REPORT_PAGE_H
#define MT_RENDER_REPORT_PAGE_H

#include "buf.h"
#include "history.h"
#include "report.h"

/* The data that report.js reads: the history of a device as JSON. Below, "string" stands for an
 * index in "strings". A size in units is a multiple of "unit" bytes. Times are in nanoseconds since
 * the first event.
 *
 * {"device": number, "unit": bytes, "small": bytes (smaller groups may be merged; 0 = none are),
 *  "by_event": 0 or 1 (the axis has events, not time), "events": [first, last] of the axis,
 *  "first_step": percent of the time that the first step takes if by_event is 1 for that, or 0,
 *  "spans": [begin, end, ...] of the axis: idle time between them is folded,
 *  "begin", "begin_event", "reserved": the start of each column and its reserved bytes, as
 *      differences from the previous column,
 *  "t", "event": the instant of each column, as differences from its start,
 *  "exact": [first column, number of columns, ...] that have a single event each,
 *  "where": [number of columns, phase and step (string), ...],
 *  "peak": [time, event, bytes] of the allocated bytes, "limit": bytes, 0 = none,
 *  "ooms": [time, event, requested bytes, ...], the first ones,
 *  "steps": [step, begin, end, begin event, end event, ...] (none if there are too many),
 *  "step_columns", "phase_columns": [first, last, ...] columns whose changes are those of each step
 *      and phase; -1, -1 if there are too many,
 *  "steps_in_all", "phases_in_all", "ooms_in_all": how many there are in the run,
 *  "phases": [name (string), color, begin, end, begin event, end event, ...] (the longest if there
 *      are too many),
 *  "strings": [...],
 *  "frames": [[name (string), place (string) or -1, origin], ...],
 *  "nodes": [parent or -1, frame, ...], the tree of call stacks,
 *  "groups": [node or -1, site (string), phase (string) or -1, role, size of a block in units,
 *             detail (enum mt_history_detail), stream, pool and tag (strings), ...],
 *  "blocks_in_all": number of blocks of the run, "address_unit": bytes, "time_unit": ns,
 *  "kinds": [bytes, requested bytes, role, site (string), operation (string) or -1, node or -1,
 *            group, 1 = older than the history, ...],
 *  "blocks": a text of numbers in base 64 (add_digits), by birth. For each block: kind; the
 *      differences of its address from the previous block of its kind, and of phase and step
 *      (string), event and time of its start from the previous block; events from its start to the
 *      request to free it, 0 = there is none; if there is one, the time from its start, and how
 *      long its memory waited for other streams: 0 = not at all, 1 = to the end of the trace, or
 *      the number of events, and the time,
 *  "changes": [[group, change in units, change of the number of blocks, ...] of each column]}
 *
 * "blocks" has all blocks that are drawn in the charts of blocks and of addresses. Address and
 * event make the keys of the shapes in these charts (block_key.h). */

/* Appends the JSON document of a device that has a history and a timeline. Reduces the history
 * (mt_history_reduce) until the document takes at most `most_bytes`. Omits the rows of blocks if a
 * slightly reduced history with them does not fit. Appends nothing if no reduction fits. Sets
 * *has_blocks if the document has rows of blocks; if it is false at first, there are none. */
void mt_page_add_data(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device, size_t most_bytes, bool *has_blocks);

/* Appends ,"roles": names, "stack": the order of layers, the lowest first. */
void mt_page_add_roles(struct mt_buf *out);

/* Tables of report.html. Each function appends a table about one device. Long tables show the most
 * important rows and the number of the others. */

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
 * answer. Appends nothing if there is no device or if its peak is unknown. links: the page has
 * the findings. */
void mt_page_add_answers(struct mt_buf *out, const struct mt_report *report, bool links);

#endif
