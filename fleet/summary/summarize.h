/* Makes the records of a rank from a report, one record for each device. */
#ifndef MT_FLEET_SUMMARIZE_H
#define MT_FLEET_SUMMARIZE_H

#include "identity.h"
#include "rank_set.h"
#include "report.h"

/* Adds a record for each device of the report to `set`. O(size of the report). */
enum mt_status mt_summarize(const struct mt_report *report, const struct mt_identity *identity,
                            struct mt_rank_set *set, struct mt_error *error) MT_MUST_USE;

#endif
