/* Host memory limits of this process's control group (version 2, 1, or both mounted). `root` is "",
 * or in tests a folder that replaces "/". */
#ifndef MT_BASE_CGROUP_H
#define MT_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the smallest limit of the group and its visible ancestors; 0 = no limit, or unknown.
 * Reads a few small files. */
uint64_t mt_cgroup_limit_bytes(const char *root);

/* Sets *kills to the number of times that the kernel killed a process of the group because memory
 * ran out. Returns false if it is unknown. */
bool mt_cgroup_oom_kills(const char *root, uint64_t *kills);

#endif
