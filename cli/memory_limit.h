/* The memory budget as people meet it: its default, --max-memory, and the line that says that it
 * was too small. */
#ifndef MT_CLI_MEMORY_LIMIT_H
#define MT_CLI_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

/* Sets the budget: MEMTRACE_MAX_MEMORY, else half of the machine's memory or of the container's
 * limit, whichever is less. -1, or the exit code after a line about a wrong variable. */
int mt_memory_limit_start(void);

/* --max-memory. */
void mt_memory_limit_set(uint64_t bytes);

#define MT_MEMORY_TEXT 160

/* "needs more than 12 GiB (half of this machine's memory); raise it with --max-memory", if an
 * allocation was refused for the budget; else false, and nothing is written. */
bool mt_memory_limit_text(char *text, size_t size);

/* The least limit of a cgroup and those above it: `root` is where cgroups are mounted, `self` what
 * /proc/self/cgroup holds. UINT64_MAX if there is none. For tests. */
uint64_t mt_memory_cgroup_limit(const char *root, const char *self);

#endif
