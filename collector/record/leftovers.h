/* Files that a killed memtrace left in a folder of traces: lists of traces
 * (manifest.h) and traces that were not finished (temporary_file.h). Their makers
 * hold a lock on them while they live. */
#ifndef MT_RECORD_LEFTOVERS_H
#define MT_RECORD_LEFTOVERS_H

/* Removes those of this user that nobody holds. A file counts only if its name, its
 * owner, its kind and its first bytes say that memtrace made it; what cannot be
 * locked or read stays. `folder` ends in /. */
void mt_leftovers_remove(const char *folder);

#endif
