/* From holdings to the words a person looks for: sums by site, phase of birth
 * and role, of one instant or of the difference between two. */
#ifndef MT_ANALYZER_ATTRIBUTION_H
#define MT_ANALYZER_ATTRIBUTION_H

#include "holders.h"
#include "site.h"

struct mt_attribution {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    struct mt_site_table sites;
    bool has_stacks;      /* any were recorded */
    uint64_t first_event; /* what was born before is the state that the trace began with */
};

enum mt_status mt_attribution_init(struct mt_attribution *attribution, struct mt_arena *arena,
                                   const struct mt_symbols *symbols,
                                   const struct mt_phases *phases) MT_MUST_USE;
void mt_attribution_release(struct mt_attribution *attribution);

/* Every site of a snapshot, largest first; bytes and blocks sum to its. */
enum mt_status mt_attribute_sites(struct mt_attribution *attribution,
                                  const struct mt_snapshot *snapshot, struct mt_site_use **sites,
                                  uint32_t *count) MT_MUST_USE;

/* Who made the difference from one snapshot (NULL = nothing) to another: at
 * most `most` lines and one for the rest, which sum to it. */
enum mt_status mt_attribute_change(struct mt_attribution *attribution,
                                   const struct mt_snapshot *from, const struct mt_snapshot *to,
                                   uint32_t most, struct mt_contribution **contributions,
                                   uint32_t *count) MT_MUST_USE;

/* Everything in a snapshot, grouped: the answer's rows, which sum to it. Sites
 * are as fine as in mt_attribute_change. `most`: of told_count, 0 = all. */
enum mt_status mt_attribute_live(struct mt_attribution *attribution,
                                 const struct mt_snapshot *snapshot, enum mt_group_by by,
                                 uint32_t most, struct mt_answer *answer) MT_MUST_USE;

#endif
