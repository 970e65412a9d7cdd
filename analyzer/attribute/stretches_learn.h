/* The first reading before a trace is cut into stretches: the names of ranges, threads, and what
 * the program itself says. */
#ifndef MT_ANALYZER_SEGMENTS_LEARN_H
#define MT_ANALYZER_SEGMENTS_LEARN_H

#include "stretches_state.h"

/* First reading. mt_stretches_complete: the ranges of the program tell all there
 * is; that may be known long before the end. */
enum mt_status mt_stretches_learn(struct mt_stretches *stretches,
                                  const struct mt_event *event) MT_MUST_USE;
static inline bool mt_stretches_complete(const struct mt_stretches *stretches)
{
    return stretches->user_steps && stretches->user_parts;
}

/* Between the readings. */
enum mt_status mt_stretches_prepare(struct mt_stretches *stretches) MT_MUST_USE;

/* Ranges open at once that are told apart. */
#define MT_SEGMENTS_RANGES 32

/* Facts of a name in one word: its kind, and */
#define MT_NAME_KIND     0x0Fu
#define MT_NAME_STEP     0x10u
#define MT_NAME_PLUMBING 0x20u

/* Index of a name in `names`, looked at once. */
enum mt_status mt_stretches_name(struct mt_stretches *stretches, uint32_t name,
                                 uint32_t *id) MT_MUST_USE;

/* NULL without memory. */
struct mt_stretch_thread *mt_stretches_thread(struct mt_stretches *stretches, uint16_t id);

#endif
