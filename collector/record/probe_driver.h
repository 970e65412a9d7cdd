/* Checks of the driver, of NVML, which is part of it, and of CUPTI; see probe.h. */
#ifndef MT_RECORD_PROBE_DRIVER_H
#define MT_RECORD_PROBE_DRIVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "program_kind.h"

/* Checks whether the collector can subscribe to CUPTI on this machine. */

enum mt_cupti_state {
    MT_CUPTI_NO_DRIVER,
    MT_CUPTI_NOT_FOUND,
    MT_CUPTI_FREE,
    MT_CUPTI_TAKEN,
    MT_CUPTI_TOO_NEW,
    MT_CUPTI_REFUSES
};

struct mt_cupti_answer {
    enum mt_cupti_state state;
    char path[PATH_MAX], version[24]; /* of the last copy that was tried */
    char holder[64];                  /* TAKEN: name of the tool that is subscribed */
    char reason[64];
    int error;
};

/* Tries every copy of CUPTI until one accepts a subscriber. Starts the driver, which can
 * take seconds. If not `thorough`, does not subscribe: it assumes that any copy that is not newer
 * than the driver accepts a subscriber. Call it only in a separate process. */
void mt_cupti_try(const struct mt_program *program, bool thorough, struct mt_cupti_answer *answer);

/* Returns true if the driver's functions must be interposed in `program` because CUPTI cannot be
 * used. `why` is then the reason as text for the user; it is empty if the user chose this with
 * MEMTRACE_CUPTI=none. Tries CUPTI in a separate process. Takes milliseconds if CUPTI can be
 * used. */
bool mt_cupti_needs_substitute(const struct mt_program *program, char *why, size_t capacity);

#endif
