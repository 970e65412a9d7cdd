/* How the list of the traces of a run (record/manifest.h) is recognized, by the processes of the
 * run as well as by those that clean up. */
#ifndef MT_COLLECTOR_MANIFEST_FILE_H
#define MT_COLLECTOR_MANIFEST_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* How its name begins; six letters of mkstemp follow. */
#define MT_MANIFEST_PREFIX ".memtrace-"

/* The first line keeps the file's first block, so that names can be appended when the disk is
 * full. */
#define MT_MANIFEST_FIRST_LINE "# traces of a run of memtrace record\n"

/* Is `name`, without folders, that of a list of traces? */
bool mt_is_manifest_name(const char *name);

/* Does a file begin (first `length` bytes) like a list of traces? */
bool mt_manifest_probe(const char *bytes, size_t length);

/* Is the file at `name` (with or without folders), open for reading as `fd`, a list of traces that
 * this user made: by its name and by its first line, a regular file without a second name? */
bool mt_manifest_is_mine(int fd, const char *name);

/* Removes `name` of the folder that is open as `folder` (AT_FDCWD: `name` is a path) if it is a
 * list of traces that this user made (above), and the one that is open as `fd`. The caller knows
 * that nobody needs it. */
void mt_manifest_remove(int fd, int folder, const char *name);

#endif
