/* What of the collector works on this machine. Every check runs in a process of
 * its own: foreign libraries may crash, hang or print what they like. */
#ifndef MT_RECORD_PROBE_H
#define MT_RECORD_PROBE_H

#include "probe_result.h"

struct mt_probe {
    const char *name; /* "driver", ... */
    const char *what; /* what it is for, a few words */
    /* Fills in a zeroed result (OK). Runs in a process of its own. */
    void (*check)(struct mt_probe_result *result);
    unsigned limit_s;
};

/* All checks, in the order in which one depends on another; ends with NULL. */
extern const struct mt_probe mt_probes[];

/* Runs one check; MISSING and how it died if it does not come back. */
void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result);

#endif
