/* Plays one random trace to a policy and to its model at the same time. */
#ifndef MT_TESTS_POLICY_PLAY_H
#define MT_TESTS_POLICY_PLAY_H

#include "oracle.h"

struct played {
    char options[400];
    unsigned event;              /* at which it ended */
    char trouble[400];           /* the first difference between policy and model, "" = none */
    struct mt_counters counters; /* the model's */
};

/* Plays the trace of that seed. `tell`: prints every event. Returns whether everything was equal.
 */
bool play_trace(const struct oracle_rules *rules, uint64_t seed, bool tell, struct played *result);

#endif
