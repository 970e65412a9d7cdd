/* The header of a trace: facts about the run, how it is replaced in place, and two facts with a
 * format of their own (how the process ended, a simulated device). */
#ifndef MT_TRACE_HEADER_H
#define MT_TRACE_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "source.h"

/* The header's fact that the device was simulated: the card, the number of devices, and the memory
 * of each. */

struct mt_dry_run {
    char card[64];         /* "H200 141 GB"; "" = not known */
    uint64_t devices;      /* 0 = not known */
    uint64_t memory_bytes; /* of each device; 0 = not known */
};

/* "version=1;card=H200 141 GB;devices=1;memory_bytes=150109880320" */
void mt_dry_run_write(const struct mt_dry_run *dry_run, struct mt_buf *out);

/* Reads the fact of the header. Returns false for NULL: a real device. Fills what can be read of a
 * damaged text or of a later version. */
bool mt_dry_run_read(const char *fact, struct mt_dry_run *dry_run);

/* "simulated H200 141 GB" */
void mt_header_add_simulated_card(struct mt_buf *out, const struct mt_dry_run *dry_run);

/* How a process ended: "exit:0", "signal:9", "timeout", "oom-killed", "unknown". */

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

/* Replaces the header frame of a trace in place, for facts that are known only after the process
 * has ended. */

/* Reads the header of the trace at `path` into *header; its texts go into the arena. Does not
 * follow symbolic links. */
enum mt_status mt_trace_read_header(const char *path, struct mt_arena *arena,
                                    struct mt_trace_header *header,
                                    struct mt_error *error) MT_MUST_USE;

/* Replaces the header of the trace with `header`. Returns MT_ERR_USAGE and writes nothing if it
 * does not fit, because only the recorder reserves room. Makes one write of the frame's length, so
 * an interruption can damage the header, but never the events. */
enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error) MT_MUST_USE;

#endif
