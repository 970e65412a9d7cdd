/* The order in which a page adds the ranks of a job until the page is full: notable ranks, each
 * with the reason, then one rank of each group of replicas, then the others. */
#ifndef MT_RENDER_JOB_PAGE_RANKS_H
#define MT_RENDER_JOB_PAGE_RANKS_H

#include "job_report.h"

struct mt_page_rank {
    uint32_t row;
    const char *why; /* "highest reserved peak, ran out of memory first"; NULL: not notable */
};

struct mt_page_ranks {
    struct mt_page_rank *list; /* has every row of the report once */
    uint32_t count, notable_count;
};

/* Allocates the list in `arena`. O(rows). */
void mt_page_ranks_choose(const struct mt_job_report *report, struct mt_arena *arena,
                          struct mt_page_ranks *ranks);

/* Returns how the rank ended: "ran out of memory after 60.0 s: it asked for 2.00 GiB in forward
 * model.py:88". */
const char *mt_page_rank_end(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t row);

#endif
