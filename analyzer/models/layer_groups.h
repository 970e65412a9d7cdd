/* The group of a block in a timeline's layers: its phase of allocation, its site, or its stream, by
 * name. */
#ifndef MT_ANALYZER_LAYER_GROUPS_H
#define MT_ANALYZER_LAYER_GROUPS_H

#include "attribution.h"
#include "model_feed.h"

struct mt_analysis;

#define MT_LAYER_GROUPS 4096 /* later ones share number 0 */

/* The facts that determine the name of a site. */
struct mt_layer_origin {
    uint32_t stack, tied, kind, group;
};

struct mt_layer_groups {
    const struct mt_analysis *analysis;
    enum mt_layer_by by;
    const char *names[MT_LAYER_GROUPS]; /* by number */
    uint32_t count, late;               /* late: groups that share number 0 */
    /* PRIVATE */
    struct mt_attribution attribution;
    struct mt_strings words;
    struct mt_map groups_of_names;   /* id of word -> group */
    struct mt_map groups_of_origins; /* hash -> origin */
    struct mt_layer_origin *origins;
    uint32_t origin_count, origin_capacity;
};

/* Uses the options of the analysis. */
void mt_layer_groups_init(struct mt_layer_groups *groups, struct mt_analysis *analysis);
void mt_layer_group(struct mt_layer_groups *groups, const struct mt_block_life *life,
                    uint32_t *group);
void mt_layer_groups_release(struct mt_layer_groups *groups);

#endif
