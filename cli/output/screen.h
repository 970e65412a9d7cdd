/* Output for a person at a terminal: what the terminal can show, and a line of progress. */
#ifndef MT_CLI_SCREEN_H
#define MT_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Progress of a command: one line on standard error, which is rewritten and at the end removed. It
 * appears if standard error is a terminal, after half a second. */

#define MT_SHARE_UNKNOWN (-1.0)

/* Zeroed memory is an idle progress. Used by one thread. */
struct mt_progress {
    uint64_t started_ns, shown_ns;
    bool off, shown;
};

/* If `quiet` is true, nothing is shown. */
void mt_progress_start(struct mt_progress *progress, bool quiet);

/* Shows `what` and the share that is done, 0 to 1, as a percentage; or for MT_SHARE_UNKNOWN the
 * seconds since the start. Call it often: ten lines a second are shown, other calls cost one
 * reading of the clock. */
void mt_progress_update(struct mt_progress *progress, const char *what, double share);

uint64_t mt_progress_elapsed_ns(const struct mt_progress *progress); /* 0 if nothing is shown */

/* Removes the line. Call it before anything else is printed. */
void mt_progress_end(struct mt_progress *progress);

/* The same for any progress of this process, before it ends early. Also restores a terminal with a
 * full screen. Any thread may call it. */
void mt_progress_clear(void);

/* Sets what restores the terminal; NULL = it is as it was. */
void mt_screen_note_restore(void (*restore)(void));

#endif
