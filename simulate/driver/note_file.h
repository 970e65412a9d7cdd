/* Notes of a process of a dry run, which `memtrace dry-run` reads when the program has ended. */
#ifndef MT_NOTE_FILE_H
#define MT_NOTE_FILE_H

/* Replaces this process's note about `subject` by `text`. The file is complete or not there. Does
 * nothing if nobody reads notes ($MEMTRACE_DRY_RUN_NOTES is not set). */
void sim_note_write(const char *subject, const char *text);

#endif
