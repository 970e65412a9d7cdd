/* The control group that this process is in, as far as memory of the host goes: version 2, 1, or
 * both mounted. `root` is "" except in tests, where it is a folder that stands for "/". */
#ifndef MT_BASE_CGROUP_H
#define MT_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest limit of the group and those above it that can be seen; 0 = none, or not known.
 * Reads a few small files. */
uint64_t mt_cgroup_limit_bytes(const char *root);

/* How often the kernel has killed a process of the group for want of memory. False: not known. */
bool mt_cgroup_oom_kills(const char *root, uint64_t *kills);

#endif
