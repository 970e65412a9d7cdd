/* System calls on files, repeated where a signal interrupts them. They set errno like the calls
 * themselves. Every layer reads and writes files through these, with these exceptions:
 * - trace/writer.c calls write and pwrite once per step of its own loops, which repeat them.
 * - own_file.c writes the trace of a traced process with pwrite, or in a sandbox with lseek and
 *   write. It checks the descriptor before each call, and the writer repeats the call after EINTR
 *   and after a short write.
 * - source_torch_allocator.c and lifecycle.c in the traced process open with plain calls: after a
 *   failure the fact is simply missing.
 * - collect.c writes one line to standard error, and check.c writes one before it aborts.
 * - main.c opens /dev/null to fill closed standard streams.
 * - launch.c sends one error number through a pipe, and mkostemp has no counterpart here. */
#ifndef MT_BASE_IO_H
#define MT_BASE_IO_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "status.h"

/* open with O_CLOEXEC; `mode` is used only with O_CREAT. Returns -1 and sets errno on failure. */
int mt_io_open(const char *path, int flags, mode_t mode);
/* The same with openat: `name` is relative to the open folder. */
int mt_io_open_at(int folder, const char *name, int flags, mode_t mode);

/* Returns true if the path is that of a regular file, or of a link to one. */
bool mt_io_is_file(const char *path);

/* Returns the entries of an open folder, which stays open. NULL: sets errno. */
DIR *mt_io_open_entries(int folder);

/* read, and pread. The result may be short; 0 is the end. */
ssize_t mt_io_read(int fd, void *bytes, size_t length);
ssize_t mt_io_pread(int fd, void *bytes, size_t length, uint64_t offset);

/* Read until `length` bytes are read or the file ends. Return -1 and set errno on failure. */
ssize_t mt_io_read_full(int fd, void *bytes, size_t length);
ssize_t mt_io_pread_full(int fd, void *bytes, size_t length, uint64_t offset);

/* Reads at most `capacity` - 1 bytes of a small file, such as one in /proc, and ends them with NUL.
 * Returns their number; 0 if it cannot be read or is a pipe, which keeps its bytes. If another
 * thread closed the descriptor meanwhile, its file of that number stays open and does not move. */
size_t mt_io_read_text(const char *path, char *text, size_t capacity);

/* flock. Returns false and sets errno on failure. */
bool mt_io_lock(int fd, int operation);

/* fsync. Returns false and sets errno on failure. A file system that does not support it counts as
 * a success: there is nothing to synchronize. */
bool mt_io_synchronize(int fd);

/* rename. Returns false and sets errno on failure. */
bool mt_io_rename(const char *from, const char *to);

/* Writes all bytes, despite short writes. Returns false and sets errno on failure. */
bool mt_io_write(int fd, const void *bytes, size_t length);

/* Fills *error with "WHAT: <the text of errno>" and returns `status`. */
enum mt_status mt_io_fail(struct mt_error *error, enum mt_status status, const char *what);

/* The same with only the text of errno, for an output file: MT_ERR_MEMORY or MT_ERR_OUTPUT. */
enum mt_status mt_io_fail_output(struct mt_error *error);

/* Returns false and sets errno if written data may be lost. Closes the descriptor in either
 * case. */
bool mt_io_close(int fd);

#endif
