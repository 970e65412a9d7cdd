/* How whole the input was. */
#ifndef MT_TRACE_INTEGRITY_H
#define MT_TRACE_INTEGRITY_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

/* What was wrong with the input, counted. Final once the source has ended. */
struct mt_integrity {
    uint64_t frames_read, frames_damaged; /* damaged: header and index count, too */
    bool header_damaged;                  /* ... and the header is one of them */
    uint64_t events_read, events_dropped; /* dropped: said by the recorder */
    uint64_t events_unknown;              /* of kinds this version does not know */
    uint64_t events_invalid;              /* refer to things that do not exist */
    uint64_t phases_unmatched;            /* ends of phases without a beginning */
    bool cut;                             /* the file ends before its end record */
    bool closed;                          /* an END event was seen */
    uint64_t cut_offset;                  /* where, if cut */
    struct mt_error first_error;          /* status MT_OK = none */
};

#endif
