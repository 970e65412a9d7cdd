/* The parts of a record that take more than a line to fill. Arrays and texts are in `arena`, and
 * live as long as it does. Private to summarize.c. */
#ifndef MT_FLEET_SUMMARIZE_PARTS_H
#define MT_FLEET_SUMMARIZE_PARTS_H

#include "identity.h"
#include "rank_set.h"
#include "report.h"
#include "site.h"

/* One device of a report, and the record that is made from it. */
struct mt_summarizing {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_identity *identity;
    struct mt_rank_set *set; /* receives call paths */
    struct mt_arena *arena;
    struct mt_rank_record *record; /* zeroed at first; the functions fill it */
};

/* Finds or adds the path of a site in the set; MT_NO_PATH if the site has no frame. See struct
 * mt_record_leaf. */
uint32_t mt_summarize_site(const struct mt_summarizing *work, struct mt_site site);

/* Sets leaves, growth_site and parameter_hash. */
void mt_summarize_leaves(const struct mt_summarizing *work);

#endif
