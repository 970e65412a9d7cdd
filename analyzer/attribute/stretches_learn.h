/* The first pass before a trace is cut into stretches: the names of ranges, threads, and the
 * program's own ranges. */
#ifndef MT_ANALYZER_SEGMENTS_LEARN_H
#define MT_ANALYZER_SEGMENTS_LEARN_H

#include "stretches_state.h"

/* Takes an event of the first pass. When mt_stretches_complete returns true, the ranges of the
 * program suffice. This may be known long before the end of the pass. */
void mt_stretches_learn(struct mt_stretches *stretches, const struct mt_event *event);
static inline bool mt_stretches_complete(const struct mt_stretches *stretches)
{
    return stretches->user_steps && stretches->user_parts;
}

/* Call it between the passes. */
void mt_stretches_prepare(struct mt_stretches *stretches);

/* Maximum number of open ranges that are tracked. */
#define MT_SEGMENTS_RANGES 32

/* Facts about a name in one word: its kind, and */
#define MT_NAME_KIND     0x0Fu
#define MT_NAME_STEP     0x10u
#define MT_NAME_PLUMBING 0x20u

/* Finds or adds the index of a name in `names`. Each name is parsed once. */
void mt_stretches_name(struct mt_stretches *stretches, uint32_t name, uint32_t *id);

/* Returns the state of a thread, created if missing. */
struct mt_stretch_thread *mt_stretches_thread(struct mt_stretches *stretches, uint16_t id);

#endif
