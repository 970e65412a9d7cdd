/* The parts of a flame chart: cells, and bins of the curve above them. */
#ifndef MT_ANALYZER_FLAMECHART_CELL_H
#define MT_ANALYZER_FLAMECHART_CELL_H

#include <stdint.h>

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

#endif
