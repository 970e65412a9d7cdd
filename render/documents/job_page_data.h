/* What job.js reads: the course of single ranks, as JSON that is small enough for a page.
 *
 * {"axes": names, "roles": names, "strings", "curves",
 *  "ranks": [{"row", "rank": -1 = not known, "name", "host", "trace", "end": strings,
 *             "at": coordinates, -1 = not known; "replicas", "median": of their reserved peaks,
 *             "time": ns that it ran,
 *             "peaks": bytes [requested, allocated, active, reserved],
 *             "when": ns after its begin [allocated peak, reserved peak],
 *             "most": bytes of the highest level of the curves, "allocated", "reserved": curves
 *             or -1, "device", "limit": bytes or 0, "steps": [number, ns, ...] of their begins,
 *             "last": number of the last step or -1, "held": bytes by role at the allocated peak,
 *             "sites": [string, role, bytes, blocks, ...], "others": holders that are not listed,
 *             "beside": null or [bytes outside the allocator, context or -1],
 *             "libraries": [string, bytes, ...], "growth": bytes per step or -1,
 *             "needed", "exact": 0 or 1, "planned": 0 or 1}, ...],
 *  "notable": [index in ranks, reason, ...],
 *  "index": null or {"ranks": [first, count, ...] of consecutive rows and ranks,
 *                    "clusters": [cluster, count, ...], "peaks": reserved bytes of each row,
 *                    "outcomes": a digit for each row}}
 *
 * Names are numbers of strings. A curve has a level for each of 512 parts of the time that the rank
 * ran, as two digits of base 64 (A-Z a-z 0-9 - _) each: 4095 is "most". "~" and a digit n repeat
 * the level before n + 1 times. So a level is exact to 1/8190 of "most". */
#ifndef MT_RENDER_JOB_PAGE_DATA_H
#define MT_RENDER_JOB_PAGE_DATA_H

#include "buf.h"
#include "job_page_ranks.h"

/* Largest number of rows with an index: a job with more rows has none. */
#define MT_PAGE_INDEX_ROWS 32768

struct mt_job_page_data {
    uint32_t rank_count; /* number of ranks whose curves are included: the first of `ranks` */
    uint32_t notable_count;
    bool has_index;
};

/* Appends the document. Adds ranks in the order of `ranks` until they have about `most_bytes`;
 * one rank takes at most 64 KiB. */
enum mt_status mt_add_job_page_data(struct mt_buf *out, const struct mt_job_report *report,
                                    const struct mt_page_ranks *ranks, size_t most_bytes,
                                    struct mt_job_page_data *data) MT_MUST_USE;

#endif
