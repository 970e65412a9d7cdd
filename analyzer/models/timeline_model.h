/* Memory over time, reduced without losing a peak: each bin has the state at its fullest instant,
 * so layers add up exactly; reserved is the maximum in the bin. Two sets of bins: equal time
 * (without idle gaps) and equal numbers of events. Built in one streaming pass; size does not
 * depend on the length of the trace. */
#ifndef MT_ANALYZER_TIMELINE_MODEL_H
#define MT_ANALYZER_TIMELINE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "counters.h"
#include "layers_model.h"
#include "report.h"

struct mt_timeline_builder;
struct mt_analysis;

/* The parts of a flame chart: cells, and bins of the curve above them. */

enum mt_cell_kind { MT_CELL_STEP, MT_CELL_PHASE, MT_CELL_FRAME, MT_CELL_NO_STACK };

struct mt_cell {
    enum mt_cell_kind kind;
    uint32_t row;    /* 0 = step, then phases by depth, then frames */
    int32_t phase;   /* STEP and PHASE: itself; otherwise the phase around it */
    uint32_t frame;  /* FRAME: frame id (symbols); MT_NO_ID: several merged frames */
    uint32_t merged; /* > 1: the number of narrow cells merged into it */
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    int64_t net_bytes; /* change of allocated */
    uint64_t peak_allocated;
};

/* Fullest instant of a bin, and the emptiest and last level in it; bins without events are
 * omitted. */
struct mt_curve_bin {
    uint64_t t_ns, event, max, min, last;
    uint64_t last_t_ns, last_event; /* instant of `last` */
};

/* Remaining spans after folding the gaps that exceed a tenth of the busy time (inside of a phase:
 * three tenths) and contain no start or end of a phase. `gaps` is sorted by time. */
void mt_timeline_spans(struct mt_arena *arena, uint64_t first_t_ns, uint64_t last_t_ns,
                       const struct mt_gap *gaps, size_t gap_count, const struct mt_phase *phases,
                       size_t phase_count, struct mt_span **spans, uint32_t *span_count);

/* The time in the spans. */
uint64_t mt_timeline_busy(const struct mt_span *spans, uint32_t span_count);

/* Position of t on the busy axis, 0..1; times in a gap map to its edge. */
double mt_timeline_position(const struct mt_timeline *timeline, uint64_t t_ns);

void mt_timeline_builder_new(struct mt_arena *arena, struct mt_span *spans, uint32_t span_count,
                             uint64_t first_event, uint64_t last_event, uint32_t bin_count,
                             struct mt_timeline_builder **builder);

/* State after an event; in order. O(1). */
void mt_timeline_builder_add(struct mt_timeline_builder *builder, uint64_t t_ns, uint64_t event,
                             const struct mt_bytes *bytes, const uint64_t *role_bytes);

/* The model, in the arena of the builder. */
struct mt_timeline *mt_timeline_builder_finish(struct mt_timeline_builder *builder);

/* A level over one axis (time or events), reduced to bins of equal width
 * without losing a peak. */

struct mt_level_curve {
    struct mt_curve_bin *bins;
    uint32_t count, bin_count;
    uint64_t begin, width;  /* of the window, width > 0 */
    uint64_t next_position; /* start of the bin after the current one */
};

/* Bins of [begin, end], at most `bins` + 1 of them, in the arena. */
void mt_level_curve_init(struct mt_level_curve *curve, struct mt_arena *arena, uint64_t begin,
                         uint64_t end, uint32_t bins);

/* The level after an event at `position`, which never decreases. O(1). */
void mt_level_curve_add(struct mt_level_curve *curve, uint64_t position, uint64_t t_ns,
                        uint64_t event, uint64_t level);

/* The part of a run that some models show, chosen by the options of the analysis. */

struct mt_model_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event; /* ends inclusive */
    int64_t step;                                          /* MT_NO_STEP = the whole run */
    int32_t phase;                                         /* the window, or MT_NO_PHASE */
    bool missing; /* the requested part does not exist: the whole run instead */
};

/* The end of what the models of a device show (mt_shown_end). */
struct mt_shown_end mt_model_end(const struct mt_analysis *analysis, uint32_t slot);

/* The part that the options request, up to that end; the whole run if it does not exist. */
struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot);

/* Resolution of the models, in bins. */
uint32_t mt_model_bins(const struct mt_analysis *analysis);

#endif
