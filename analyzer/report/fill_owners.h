/* Owners of driver memory outside of the framework: libraries, and communicators of NCCL. */
#ifndef MT_ANALYZER_FILL_OWNERS_H
#define MT_ANALYZER_FILL_OWNERS_H

#include "attribution.h"
#include "communicators.h"

/* Adds the holdings of `outside` as rows of `out`. Bytes and blocks of the rows sum to those of its
 * sites. */
void mt_fill_owners(struct mt_attribution *attribution, const struct mt_snapshot *outside,
                    const struct mt_communicators *told, struct mt_driver_report *out);

#endif
