/* One random trace, played to a policy and to its model at the same time. */
#ifndef MT_TESTS_POLICY_PLAY_H
#define MT_TESTS_POLICY_PLAY_H

#include "oracle.h"

struct played {
    char options[400];
    unsigned event;              /* at which it ended */
    char trouble[400];           /* how policy and model first differed, "" = not at all */
    struct mt_counters counters; /* the model's */
};

/* The trace of that seed; `tell`: prints every event. Was nothing wrong? */
bool play_trace(const struct oracle_rules *rules, uint64_t seed, bool tell, struct played *result);

#endif
