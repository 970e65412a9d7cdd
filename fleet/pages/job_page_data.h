/* The data that job.js and rank_timeline.js read: the memory of single ranks over time, as JSON.
 * Below, "string" stands for an index in "strings", and "curve" for an index in "curves". Times are
 * in nanoseconds since the rank began.
 *
 * {"axes": [name, ...], "roles" and "stack" as on the page of a run,
 *  "strings": [...], "curves": [...],
 *  "ranks": [{"row": row of the report, "rank": rank or -1 (not known),
 *             "name": string, "host": string, "trace": string, "end": string (how the rank ended),
 *             "at": [coordinate or -1 (not known), ...], one for each axis,
 *             "replicas": number, "median": bytes (the reserved peaks of the replicas),
 *             "time": duration, "peaks": bytes [requested, allocated, active, reserved],
 *             "when": [time of the allocated peak, time of the reserved peak],
 *             "most": bytes of the highest level of both curves,
 *             "allocated": curve or -1, "reserved": curve or -1,
 *             "device": bytes of the device, "limit": bytes or 0 (none),
 *             "steps": [number of a step, time at which it begins, ...],
 *             "last": number of the last step or -1,
 *             "held": [bytes of each role at the allocated peak],
 *             "sites": [string, role, bytes, blocks, ...], the largest ones at that peak,
 *             "others": number of sites that are omitted,
 *             "beside": null or [bytes outside the allocator, bytes of the context or -1],
 *             "libraries": [string, bytes, ...], "growth": bytes per step or -1,
 *             "needed": bytes, "exact": 0 or 1, "planned": 0 or 1 (a dry run)}, ...],
 *  "notable": [index in "ranks", reason as text, ...],
 *  "index": null or {"ranks": [rank, length, ...], for runs of rows with consecutive ranks,
 *                    "clusters": [cluster, length, ...], for runs of rows in the same cluster,
 *                    "peaks": [reserved bytes of each row],
 *                    "outcomes": text with a digit for each row (enum mt_outcome)}}
 *
 * A curve has the highest level in each of 512 equal parts of the rank's duration. A level is two
 * digits in base 64 (A-Z a-z 0-9 - _), where 4095 stands for "most". "~" and a digit n repeat the
 * previous level n + 1 times. Rounding changes a level by at most 1/8190 of "most". */
#ifndef MT_RENDER_JOB_PAGE_DATA_H
#define MT_RENDER_JOB_PAGE_DATA_H

#include "buf.h"
#include "job_report.h"

struct mt_page_rank;

/* The order in which a page adds the ranks of a job until the page is full: notable ranks, each
 * with the reason, then one rank of each group of replicas, then the others. */

struct mt_page_ranks {
    struct mt_page_rank *list; /* has every row of the report once */
    uint32_t count, notable_count;
};

/* Allocates the list in `arena`. O(rows). */
void mt_page_ranks_choose(const struct mt_job_report *report, struct mt_arena *arena,
                          struct mt_page_ranks *ranks);

/* A job with more rows has no index. */
#define MT_PAGE_INDEX_ROWS 32768

struct mt_job_page_data {
    uint32_t rank_count; /* number of ranks whose data is included: the first ones of `ranks` */
    uint32_t notable_count;
    bool has_index;
};

/* Appends the JSON document. Adds ranks in the order of `ranks` until their data takes about
 * `most_bytes`. A rank takes at most 64 KiB. */
void mt_job_page_add_data(struct mt_buf *out, const struct mt_job_report *report,
                          const struct mt_page_ranks *ranks, size_t most_bytes,
                          struct mt_job_page_data *data);

#endif
