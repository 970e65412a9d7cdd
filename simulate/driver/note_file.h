/* Notes of a process in a dry run. `memtrace dry-run` reads them after the program has ended. */
#ifndef MT_NOTE_FILE_H
#define MT_NOTE_FILE_H

#include <stdint.h>
#include <sys/types.h>

/* Replaces the note of this process about `subject` with `text`. A reader finds a complete file or
 * none. Does nothing if $MEMTRACE_DRY_RUN_NOTES is not set. */
void sim_note_write(const char *subject, const char *text);

/* A count of what a real run may decide otherwise: the member "undecided" of the object `subject`
 * in its note. A child of fork starts at 0. */
struct sim_count {
    const char *subject;
    uint64_t count, noted; /* noted: in the last note */
    pid_t pid;             /* the process that counted */
};

/* Adds to the count, and writes the note each time the count has doubled, so that the note of a
 * killed process has at least half of it. The caller serializes the calls. */
void sim_count_add(struct sim_count *count, uint64_t more);
/* Writes the note at the end of the process, if it lacks something. */
void sim_count_end(struct sim_count *count);

#endif
