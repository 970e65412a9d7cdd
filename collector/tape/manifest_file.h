/* Recognizes the list of the traces of a run (record/manifest.h). Used by the processes of the run
 * and by the cleanup. */
#ifndef MT_COLLECTOR_MANIFEST_FILE_H
#define MT_COLLECTOR_MANIFEST_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Prefix of its name. Six characters from mkstemp follow. */
#define MT_MANIFEST_PREFIX ".memtrace-"

/* The first line makes the file system allocate the file's first block, so that names can be
 * appended even when the disk is full. */
#define MT_MANIFEST_FIRST_LINE "# traces of a run of memtrace record\n"

/* Returns true if `name`, without folders, is the name of a list of traces. */
bool mt_is_manifest_name(const char *name);

/* Returns true if a file that starts with these `length` bytes looks like a list of traces. */
bool mt_manifest_probe(const char *bytes, size_t length);

/* Returns true if the file at `name` (with or without folders), open for reading as `fd`, is a
 * list of traces of this user. Checks its name and its first line, and that it is a regular file
 * with one link. */
bool mt_manifest_is_mine(int fd, const char *name);

/* Removes `name` from the folder that is open as `folder` (AT_FDCWD: `name` is a path) if it is
 * such a list and the file that is open as `fd`. The caller knows that it is no longer needed. */
void mt_manifest_remove(int fd, int folder, const char *name);

#endif
