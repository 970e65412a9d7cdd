/* How a process ended: "exit:0", "signal:9", "timeout", "oom-killed", "unknown". */
#ifndef MT_TRACE_ENDING_H
#define MT_TRACE_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

enum mt_ending {
    MT_ENDED_UNKNOWN,
    MT_ENDED_EXIT,      /* number is the exit status, 0 to 255 */
    MT_ENDED_SIGNAL,    /* number is the signal, 1 to 127 */
    MT_ENDED_TIMEOUT,   /* memtrace ended it: the time that it was given was over */
    MT_ENDED_OOM_KILLED /* by SIGKILL, after the kernel had killed a process of its control group,
                           most often this one, for want of memory of the host */
};

enum { MT_ENDING_TEXT = 16 }; /* bytes of the text, with its zero */

/* `number` counts for EXIT and SIGNAL; one that is out of range is written as "unknown". */
const char *mt_ending_text(enum mt_ending ending, int32_t number, char text[MT_ENDING_TEXT]);

/* Why a run that ended like this may need more than it shows; NULL: it ended by itself, or nothing
 * is known. */
const char *mt_ending_doubt(enum mt_ending kind, int32_t number);

/* Reads what mt_ending_text wrote. False, MT_ENDED_UNKNOWN and 0 for any other text, or NULL. */
bool mt_ending_read(const char *text, enum mt_ending *ending, int32_t *number);

#endif
