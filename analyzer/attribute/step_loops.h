/* The loops of a program that call its models, from the turns of its intervals. A program has
 * several: to warm up and to measure, to train and to validate. Of nested loops, the outermost one
 * in which control returns twice counts; but a loop that only repeats several loops of the same
 * function does not. A single return counts if no loop has two, and if a line calls a model before
 * and after it: that of the outermost loop, with all calls in it. */
#ifndef MT_ANALYZER_STEP_LOOPS_H
#define MT_ANALYZER_STEP_LOOPS_H

#include "work_intervals.h"

struct mt_step_loop {
    uint32_t at;    /* node of its first line */
    uint32_t end;   /* number of its last line, in the same function */
    uint32_t turns; /* returns to the first line */
    uint32_t steps; /* filled by step_groups.h */
    bool trains;    /* the same: its line calls backward */
};

struct mt_step_loops {
    struct mt_step_loop *list;
    size_t count, capacity;
    uint32_t *of; /* by interval: index + 1 of its loop, 0 = none */
};

/* `taken`, by interval: those that belong to other steps; NULL = none. */
void mt_step_loops_find(struct mt_step_loops *loops, const struct mt_work_intervals *intervals,
                        const bool *taken);

/* Whether interval i begins a turn of its loop. */
bool mt_step_loops_turns(const struct mt_step_loops *loops,
                         const struct mt_work_intervals *intervals, size_t i);

/* Adds a loop whose first line is at that node; returns its index + 1. */
uint32_t mt_step_loops_add(struct mt_step_loops *loops, uint32_t at);
/* The same for loop `loop` of others, unless it is there. */
uint32_t mt_step_loops_take(struct mt_step_loops *loops, const struct mt_step_loops *others,
                            uint32_t loop);
/* The line after which each loop is named, by index: its first one; if another loop has the same,
 * the caller's. The caller frees it. */
uint32_t *mt_step_loops_lines(const struct mt_step_loops *loops,
                              const struct mt_loop_places *places);
void mt_step_loops_release(struct mt_step_loops *loops);

#endif
