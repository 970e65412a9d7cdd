/* Holders of the memory of every bin of a timeline: by phase of allocation, site or stream.
 * Parallel to the timeline's bins, at their instants, so layers sum to allocated in each. The seven
 * largest, over time and at the peak, have layers of their own; all others share one. One streaming
 * pass, O(1) per event. */
#ifndef MT_ANALYZER_LAYERS_MODEL_H
#define MT_ANALYZER_LAYERS_MODEL_H

#include <stdint.h>

#include "holding.h"
#include "model_feed.h"
#include "question.h"

struct mt_layer_groups;
struct mt_analysis;
struct mt_timeline;
struct mt_layers_builder;

/* The parts of a timeline: its bins, and the time shown. */

struct mt_bin {
    uint64_t t_ns, event;               /* of the instant */
    uint64_t role_bytes[MT_ROLE_COUNT]; /* sum = allocated */
    uint64_t allocated, requested, active;
    uint64_t reserved_max;  /* in the bin */
    uint64_t allocated_min; /* in the bin */
};

/* Drawn time, in order; between two spans is a folded gap. */
struct mt_span {
    uint64_t begin_t_ns, end_t_ns;
};

struct mt_timeline {
    struct mt_bin *time_bins, *event_bins;
    uint32_t bin_count;
    struct mt_span *spans;
    uint32_t span_count;
    uint64_t busy_ns; /* sum of spans */
    uint64_t first_event, last_event;
    const struct mt_layers *layers; /* NULL: by role, as in the bins */
};

#define MT_MAX_LAYERS 8 /* including the one of all others */

struct mt_layer {
    const char *name;
    enum mt_role role;   /* of most of its bytes, over all bins */
    uint64_t peak_bytes; /* at the allocated peak */
};

struct mt_layers {
    enum mt_layer_by by;
    struct mt_layer layers[MT_MAX_LAYERS]; /* the steadiest first, the others last */
    uint32_t count;
    uint32_t other_groups; /* in the last layer; 0 = it is an ordinary layer */
    /* of bin i and layer j at [i * count + j]; sum over j = the bin's allocated */
    uint64_t *time_bytes, *event_bytes;
};

/* The options of the analysis choose the kind of layers. */
void mt_layers_builder_new(struct mt_analysis *analysis, struct mt_layers_builder **builder);

/* Blocks that become allocated, or are freed, with the next event. */
void mt_layers_birth(struct mt_layers_builder *builder, const struct mt_block_life *life);
void mt_layers_end(struct mt_layers_builder *builder, const struct mt_block_life *life,
                   uint64_t end_event);

/* For the timeline only, which has the bins. `axis`: 0 = time, 1 = events. */
enum { MT_LAYERS_TIME, MT_LAYERS_EVENTS, MT_LAYERS_AXES };

/* Ends the bin of the last event; the next starts with the current state. */
void mt_layers_next_bin(struct mt_layers_builder *builder, int axis);

/* Applies the changes passed in since the last event. */
void mt_layers_happen(struct mt_layers_builder *builder);

/* Makes the current state that of the bin: this is its fullest instant so far. */
void mt_layers_keep(struct mt_layers_builder *builder, int axis);

/* In the arena of the report. peak_event: of the allocated peak. */
void mt_layers_finish(struct mt_layers_builder *builder, const struct mt_timeline *timeline,
                      uint64_t peak_event, struct mt_layers **layers);
void mt_layers_release(struct mt_layers_builder *builder);

/* The group of a block in a timeline's layers: its phase of allocation, its site, or its stream, by
 * name. */

/* Uses the options of the analysis. */
void mt_layer_group(struct mt_layer_groups *groups, const struct mt_block_life *life,
                    uint32_t *group);

#endif
