/* Can the collector have CUPTI on this machine? */
#ifndef MT_RECORD_PROBE_CUPTI_H
#define MT_RECORD_PROBE_CUPTI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "program_kind.h"

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
    char holder[64];                  /* TAKEN: by whom */
    char reason[64];
    int error;
};

/* Tries every copy (cupti_copies.h) until one can be subscribed to. That takes as
 * long as the driver takes to start: up to seconds. If not `thorough`, a copy
 * that is not newer than the driver is believed to be free. Only in a process of
 * its own. */
void mt_cupti_try(const struct mt_program *program, bool thorough, struct mt_cupti_answer *answer);

/* Has `program`, which is about to be recorded, to have the driver's functions
 * wrapped, because CUPTI cannot be used? Then `why` says so for a person, if
 * that is not what the user asked for. Tries in a process of its own;
 * milliseconds where CUPTI fits. */
bool mt_cupti_needs_substitute(const struct mt_program *program, char *why, size_t capacity);

#endif
