/* Flame chart: x is time, rows are step, phase, then the call stacks of consecutive events, merged
 * while the prefix is equal, broken at phase ends. A cell has the change of allocated bytes while
 * it was on the stack. Bounded: cells narrower than a bin are merged with their neighbors into one
 * cell with their number.
 *
 * Cells of one row do not overlap. A cell is inside one cell of a row above (or none); merged ones
 * may extend up to three bins beyond it. The net change of a cell is the sum of its direct
 * children's and of the changes outside of these. Plumbing frames, phases that the framework
 * inserted, and phases that only surround the window are omitted. */
#ifndef MT_ANALYZER_FLAMECHART_MODEL_H
#define MT_ANALYZER_FLAMECHART_MODEL_H

#include "report.h"
#include "symbols.h"
#include "timeline_model.h"

struct mt_flamechart {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event; /* window */
    int64_t step;          /* MT_NO_STEP = whole trace, or the phase is in none */
    int32_t phase;         /* the window is this phase and not a step, or MT_NO_PHASE */
    struct mt_cell *cells; /* by row, then start */
    uint32_t cell_count, row_count;
    uint32_t frame_row; /* first row of call stacks; the row before has cells without a stack */
    /* Number of leading rows of call stacks with a single function throughout (<module>, main,
     * train): charts may omit them. */
    uint32_t common_rows;
    /* allocated over the window, by equal time and by equal numbers of events */
    struct mt_curve_bin *curve, *event_curve;
    uint32_t curve_count, event_curve_count;
    uint64_t enter_allocated, exit_allocated;
    uint64_t peak_allocated, peak_t_ns, peak_event; /* in the window */
    uint64_t events;                                /* ALLOC and FREE_REQUESTED */
};

struct mt_flamechart_builder;

struct mt_flamechart_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event; /* ends inclusive */
    int64_t step;
    uint32_t bins;               /* 0 = 2048; at most 8192 */
    const struct mt_phase *zoom; /* of `phases`: the window is this phase; NULL = none, or a step */
};

/* Phases are the report's, complete; symbols the source's, which may grow. All
 * memory comes from the arena: a builder needs no release. */
void mt_flamechart_builder_new(struct mt_arena *arena, const struct mt_flamechart_window *window,
                               const struct mt_phase *phases, uint32_t phase_count,
                               const struct mt_symbols *symbols,
                               struct mt_flamechart_builder **builder);

/* Adds an event. Pass every ALLOC and FREE_REQUESTED of the device, in order. Those outside of the
 * window count only for the curve's start. `phase` is the innermost one around the event. */
void mt_flamechart_builder_add(struct mt_flamechart_builder *builder, const struct mt_event *event,
                               int32_t phase, int64_t delta_allocated, uint64_t allocated_after);

void mt_flamechart_builder_finish(struct mt_flamechart_builder *builder,
                                  struct mt_flamechart **flamechart);

#endif
