/* Turns holdings into sums by site, phase of allocation and role, at one instant or for the
 * difference between two. */
#ifndef MT_ANALYZER_ATTRIBUTION_H
#define MT_ANALYZER_ATTRIBUTION_H

#include "attributed.h"
#include "report.h"
#include "snapshot.h"

/* Every site of a snapshot, largest first; bytes and blocks sum to those of the snapshot. */
void mt_attribute_sites(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                        struct mt_site_use **sites, uint32_t *count);

/* The sites behind the difference from one snapshot (NULL = nothing) to another: at most `most`
 * rows and one for the rest, which sum to it. */
void mt_attribute_change(struct mt_attribution *attribution, const struct mt_snapshot *from,
                         const struct mt_snapshot *to, uint32_t most,
                         struct mt_contribution **contributions, uint32_t *count);

#endif
