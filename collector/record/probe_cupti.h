/* Can the collector have CUPTI on this machine? */
#ifndef MT_RECORD_PROBE_CUPTI_H
#define MT_RECORD_PROBE_CUPTI_H

#include <limits.h>
#include <stdbool.h>

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

/* Initialises the driver and tries every copy (cupti_copies.h) until one can be
 * subscribed to. Only in a process of its own. */
void mt_cupti_try(const char *interpreter, struct mt_cupti_answer *answer);

#endif
