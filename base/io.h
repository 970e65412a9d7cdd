/* System calls on files, repeated where a signal interrupts them. Every layer but the collector's
 * injected part reads and writes files through these. They set errno as the calls do. */
#ifndef MT_BASE_IO_H
#define MT_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* open with O_CLOEXEC; `mode` matters only with O_CREAT. -1: errno says why. */
int mt_io_open(const char *path, int flags, mode_t mode);

/* read, and pread. The result may be short; 0 is the end. */
ssize_t mt_io_read(int fd, void *bytes, size_t length);
ssize_t mt_io_pread(int fd, void *bytes, size_t length, uint64_t offset);

/* These read until `length` bytes are there or the file ends; -1: errno says why. */
ssize_t mt_io_read_full(int fd, void *bytes, size_t length);
ssize_t mt_io_pread_full(int fd, void *bytes, size_t length, uint64_t offset);

/* All bytes, through short writes; false: errno says why. */
bool mt_io_write(int fd, const void *bytes, size_t length);

/* false: what was written may be lost, errno says why. The descriptor is gone in either case. */
bool mt_io_close(int fd);

#endif
