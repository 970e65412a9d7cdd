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
    MT_ENDED_TIMEOUT,   /* memtrace ended it at its time limit */
    MT_ENDED_OOM_KILLED /* by SIGKILL, after the kernel killed a process of its control group,
                           usually this one, because host memory ran out */
};

enum { MT_ENDING_TEXT = 16 }; /* bytes of the text with its NUL */

/* `number` is used for EXIT and SIGNAL; a value out of range is written as "unknown". */
const char *mt_ending_text(enum mt_ending ending, int32_t number, char text[MT_ENDING_TEXT]);

/* Returns why a run with this ending may need more memory than it shows, or NULL if it ended by
 * itself or nothing is known. */
const char *mt_ending_doubt(enum mt_ending kind, int32_t number);

/* Reads the result of mt_ending_text. For NULL and any other text, returns false and sets
 * MT_ENDED_UNKNOWN and 0. */
bool mt_ending_read(const char *text, enum mt_ending *ending, int32_t *number);

#endif
