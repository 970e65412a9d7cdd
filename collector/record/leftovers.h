/* Files that a killed memtrace left in a folder of traces: lists of traces (manifest.h) and
 * unfinished traces (temporary_file.h). A memtrace that still runs holds a lock on its files. */
#ifndef MT_RECORD_LEFTOVERS_H
#define MT_RECORD_LEFTOVERS_H

/* Removes such files of this user that are not locked. Checks the name, the owner, the kind and
 * the first bytes of each file. Files that cannot be locked or read stay. `folder` ends in /. */
void mt_leftovers_remove(const char *folder);

#endif
