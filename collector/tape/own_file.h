/* A file that memtrace keeps open in a foreign process.
 *
 * Daemons and servers close descriptors that they do not know (closefrom, close_range,
 * os.closerange). The program's next file or socket then gets the same number. So each use first
 * compares the device and the inode. If they differ, the number belongs to the program: it is never
 * closed, and the file is opened again by its path.
 *
 *     if (!mt_own_file_create(&file, path)) ...errno...
 *     done = mt_own_file_write(&file, bytes, length, offset);
 *     mt_own_file_close(&file);
 *
 * Not thread-safe. */
#ifndef MT_COLLECTOR_OWN_FILE_H
#define MT_COLLECTOR_OWN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "status.h"
#include "temporary_file.h"

struct mt_own_file {
    const char *path; /* absolute; borrowed */
    int fd;           /* -1: none */
    dev_t device;
    ino_t inode;
    bool sandboxed_before; /* seccomp filters were there before the file */
    const char *trouble;   /* why the file can no longer be used; NULL: it can */
};

#define MT_OWN_FILE_NONE ((struct mt_own_file){.fd = -1})

/* Creates the file, which must not exist, readable and writable by its owner only. Its descriptor
 * gets a high number. Returns false and sets errno on failure; `file` is then MT_OWN_FILE_NONE.
 * `path` must outlive `file`. */
bool mt_own_file_create(struct mt_own_file *file, const char *path);

/* Returns a descriptor that refers to this file, for the next system call only: call it again
 * before each one. Opens the file again if the program closed it. Returns -1 with errno ESTALE
 * and `trouble` if it is gone, is another file, or is shorter than `length_bytes`. Cost: one
 * fstat. */
int mt_own_file_fd(struct mt_own_file *file, uint64_t length_bytes);

/* Writes at an offset of a file that has at least `offset` bytes, like pwrite(2). `file` is a
 * struct mt_own_file (void, so that it fits struct mt_trace_output). */
ssize_t mt_own_file_write(void *file, const void *bytes, size_t length, uint64_t offset);

/* Returns true if the program installed a seccomp filter after the file was created. It may kill
 * the program for a system call that it does not need, such as open. */
bool mt_own_file_is_sandboxed(const struct mt_own_file *file);

/* Reserves disk space for a part of the file; returns false and sets errno on failure. */
bool mt_own_file_reserve(struct mt_own_file *file, uint64_t offset, uint64_t bytes);

/* Closes the descriptor if it still refers to this file, and sets `file` to MT_OWN_FILE_NONE. */
void mt_own_file_close(struct mt_own_file *file);

/* Like mt_own_file_close. Also removes the file if its path still leads to it. */
void mt_own_file_remove(struct mt_own_file *file);

/* The next two functions are for files that another process of this user created. */

/* Returns true for a regular file of this user with one link. */
bool mt_own_file_is_mine(const struct stat *facts);

/* Removes `name` from the folder that is open as `folder` (AT_FDCWD: `name` is a path) if it is
 * the file that is open as `fd` and mt_own_file_is_mine. Does not follow links. */
void mt_own_file_unlink(int fd, int folder, const char *name);

/* Recognizes the list of the traces of a run (record/manifest.h). Used by the processes of the run
 * and by the cleanup. */

/* Prefix of its name. Six characters from mkstemp follow. */
#define MT_MANIFEST_PREFIX ".memtrace-"

/* The first line makes the file system allocate the file's first block, so that names can be
 * appended even when the disk is full. */
#define MT_MANIFEST_FIRST_LINE "# traces of a run of memtrace record\n"

/* The second line is one of these, which have the same length. With `record --idle`, it shows
 * processes that start what was requested of those that run (enum mt_tape_ask). */
#define MT_MANIFEST_IDLE    "# idle\n"
#define MT_MANIFEST_BEGUN   "# runs\n"
#define MT_MANIFEST_STOPPED "# over\n"

/* Returns true if `name`, without folders, is the name of a list of traces. */
bool mt_manifest_is_name(const char *name);

/* Returns true if the file at `name` (with or without folders), open for reading as `fd`, is a
 * list of traces of this user. Checks its name and its first line, and that it is a regular file
 * with one link. */
bool mt_manifest_is_mine(int fd, const char *name);

/* Returns true if `line` is the second line of the list that is open for reading as `fd`. */
bool mt_manifest_has_line(int fd, const char *line);

/* Removes `name` from the folder that is open as `folder` (AT_FDCWD: `name` is a path) if it is
 * such a list and the file that is open as `fd`. The caller knows that it is no longer needed. */
void mt_manifest_remove(int fd, int folder, const char *name);

/* A claim on the name of a trace. Only the process that has the claim may remove a trace of this
 * name.
 *
 * The claim is an empty file beside the trace. Its name is a hash of the name of the trace. The
 * process that holds the lock (flock) on the file has the claim, so a claim ends with its process.
 * If a killed process leaves the file, the next claim takes it over, or it is removed: by the
 * command when it ends, or as a leftover (manifest.h). */

/* Zeroed memory: no claim. */
struct mt_trace_claim {
    char *file; /* PRIVATE; from malloc; NULL: none */
    int fd;
    struct mt_unfinished *list;
};

/* Claims the trace at `path`. MT_OK with *is_ours false: another process has it. A fatal signal
 * removes the file if `list` (borrowed, may be NULL) has room for it. MT_ERR_OUTPUT: no file can be
 * created in the folder.
 *
 * If the file system has no locks, a claim lasts as long as its file: the file of a killed process
 * reserves the name until somebody removes it. */
enum mt_status mt_trace_claim_take(struct mt_trace_claim *claim, const char *path,
                                   struct mt_unfinished *list, bool *is_ours,
                                   struct mt_error *error) MT_MUST_USE;

/* Gives the name back and removes the file. Accepts zeroed memory. */
void mt_trace_claim_release(struct mt_trace_claim *claim);

/* Names of traces that are derived from the name that the user chose: words come before the
 * extension, as in run-12399.trace.zst. */

/* Returns the length of `path` without its last extension. ".trace.zst" counts as one. */
size_t mt_trace_stem_length(const char *path);

#endif
