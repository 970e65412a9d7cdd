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

/* Tries every copy (cupti_copies.h) until one accepts a subscriber. This includes the start of
 * the driver: up to seconds. If not `thorough`, assumes that a copy that is not newer than the
 * driver is available. Call it only in a separate process. */
void mt_cupti_try(const struct mt_program *program, bool thorough, struct mt_cupti_answer *answer);

/* Returns true if the driver's functions must be interposed in `program` because CUPTI cannot be
 * used. `why` is then the reason for the user, unless the user chose this. Tries CUPTI in a
 * separate process; takes milliseconds where CUPTI fits. */
bool mt_cupti_needs_substitute(const struct mt_program *program, char *why, size_t capacity);

#endif
