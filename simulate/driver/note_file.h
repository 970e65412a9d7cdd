/* Notes of a process in a dry run. `memtrace dry-run` reads them after the program has ended. */
#ifndef MT_NOTE_FILE_H
#define MT_NOTE_FILE_H

/* Replaces the note of this process about `subject` with `text`. A reader finds a complete file or
 * none. Does nothing if $MEMTRACE_DRY_RUN_NOTES is not set. */
void sim_note_write(const char *subject, const char *text);

#endif
