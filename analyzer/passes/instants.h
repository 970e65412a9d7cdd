/* The pass `wanted`: chooses instants for a closer look, and changes that need an explanation.
 * Their number is bounded. */
#ifndef MT_ANALYZER_INSTANTS_H
#define MT_ANALYZER_INSTANTS_H

#include "survey.h"

#define MT_INSTANT_NOTHING UINT64_MAX /* from_event: an empty device */

/* The instants of one device. */
struct mt_instants {
    struct mt_instant instants[96];
    uint32_t instant_count;
    struct mt_explanation explanations[40];
    uint64_t from_events[40], to_events[40]; /* of the explanations */
    uint32_t explanation_count;
};

/* Sets *is_main to an array in the arena with an entry per phase: whether it is one of the parts
 * that a step (or the program) consists of. These are the outermost ranges that a user named,
 * without steps and their parents; if there are none, those of the framework. */
void mt_main_phases(struct mt_arena *arena, const struct mt_phases *phases, bool **is_main);

void mt_instants_choose(struct mt_instants *chosen, const struct mt_survey *survey,
                        struct mt_survey_device *device, const bool *is_main);

#endif
