/* Damage and losses of the input. */
#ifndef MT_TRACE_INTEGRITY_H
#define MT_TRACE_INTEGRITY_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

/* Counts what was wrong with the input. Final after the source has ended. */
struct mt_integrity {
    uint64_t frames_read, frames_damaged; /* damaged: includes header and index */
    bool header_damaged;                  /* the header is damaged */
    uint64_t events_read, events_dropped; /* dropped: reported by the recorder */
    uint64_t events_unknown;              /* of kinds this version does not know */
    uint64_t events_invalid;              /* refer to things that do not exist */
    uint64_t phases_unmatched;            /* ends of phases without a start */
    bool cut;                             /* the file ends before its end record */
    bool closed;                          /* an END event was seen */
    uint64_t cut_offset;                  /* where it is cut */
    struct mt_error first_error;          /* status MT_OK = none */
};

#endif
