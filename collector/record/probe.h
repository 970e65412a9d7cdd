/* Checks which parts of the collector work on this machine. Every check runs in a separate
 * process, because foreign libraries may crash, hang or print. */
#ifndef MT_RECORD_PROBE_H
#define MT_RECORD_PROBE_H

#include "probe_result.h"

struct mt_probe {
    const char *name; /* "driver", ... */
    const char *what; /* its purpose, in a few words */
    /* Fills in a zeroed result (OK). Runs in a separate process. */
    void (*check)(struct mt_probe_result *result);
    unsigned limit_s;
};

/* All checks, each after those that it depends on; ends with NULL. */
extern const struct mt_probe mt_probes[];

/* Runs one check. If it crashes or hangs, the result is MISSING with the reason. */
void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result);

#endif
