/* Memory over time, reduced without losing a peak: each bin has the state at its fullest instant,
 * so layers add up exactly; reserved is the maximum in the bin. Two sets of bins: equal time
 * (without idle gaps) and equal numbers of events. Built in one streaming pass; size does not
 * depend on the length of the trace. */
#ifndef MT_ANALYZER_TIMELINE_MODEL_H
#define MT_ANALYZER_TIMELINE_MODEL_H

#include "report.h"
#include "timeline_bins.h"

/* Remaining spans after folding the gaps that exceed a tenth of the busy time (inside of a phase:
 * three tenths) and contain no start or end of a phase. `gaps` is sorted by time. */
void mt_timeline_spans(struct mt_arena *arena, uint64_t first_t_ns, uint64_t last_t_ns,
                       const struct mt_gap *gaps, size_t gap_count, const struct mt_phase *phases,
                       size_t phase_count, struct mt_span **spans, uint32_t *span_count);

/* Position of t on the busy axis, 0..1; times in a gap map to its edge. */
double mt_timeline_position(const struct mt_timeline *timeline, uint64_t t_ns);

struct mt_timeline_builder;
struct mt_layers_builder; /* layers_model.h */

void mt_timeline_builder_new(struct mt_arena *arena, struct mt_span *spans, uint32_t span_count,
                             uint64_t first_event, uint64_t last_event, uint32_t bin_count,
                             struct mt_timeline_builder **builder);

/* Before the first event: sets the layers that follow each bin. */
void mt_timeline_builder_follow(struct mt_timeline_builder *builder,
                                struct mt_layers_builder *layers);

/* Sets the state at the start of the history, with which the bins start. Call it before the first
 * event. If it is called repeatedly, the last call counts. */
void mt_timeline_builder_start(struct mt_timeline_builder *builder, uint64_t event,
                               const struct mt_bytes *bytes, const uint64_t *role_bytes);

/* State after an event; in order. O(1). */
void mt_timeline_builder_add(struct mt_timeline_builder *builder, uint64_t t_ns, uint64_t event,
                             const struct mt_bytes *bytes, const uint64_t *role_bytes);

/* The model, in the arena of the builder. */
struct mt_timeline *mt_timeline_builder_finish(struct mt_timeline_builder *builder);

#endif
