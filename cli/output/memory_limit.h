/* The memory budget of memtrace itself, and the behavior if memory runs out. A command that runs
 * out of memory while it reads, prints or writes a file prints one line (what failed, why, and what
 * to do) and exits with status 3. */
#ifndef MT_CLI_MEMORY_LIMIT_H
#define MT_CLI_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "status.h"

/* Sets the budget to the value of MEMTRACE_MAX_MEMORY. Without that variable, the budget is half of
 * the machine's memory or of the container's limit, whichever is less. Returns -1, or the exit code
 * after a message about an invalid variable. */
int mt_memory_limit_start(void);

/* Sets the budget to the value of --max-memory. */
void mt_memory_limit_set(uint64_t bytes);

#define MT_MEMORY_TEXT 160

/* Returns true if an allocation has failed because of the budget or the machine. Results may then
 * be incomplete. */
bool mt_memory_ran_out(void);

/* Returns true if lack of memory caused this error. Code that runs out of memory may report another
 * reason. For example, a reader may report invalid input. Internal errors never count as lack of
 * memory. */
bool mt_is_memory_failure(const struct mt_error *error);

/* Writes the reason of a failed allocation to `text` and returns it. If the budget was the cause:
 * "needs more than 12 GiB (half of this machine's memory); raise it with --max-memory". Otherwise:
 * "out of memory". */
const char *mt_memory_reason(char text[MT_MEMORY_TEXT]);

/* Prints "memtrace: WHAT: <reason>". Returns the exit status for lack of memory. */
int mt_say_no_memory(const char *what);

/* Returns true if memory ran out and no message about it was printed. Call it after the command. */
bool mt_memory_is_unsaid(void);

/* Returns the memory that new processes can use now: the available memory of the machine or the
 * rest of the container's limit, whichever is less. UINT64_MAX: unknown. */
uint64_t mt_memory_available(void);

/* Returns the available memory of the machine from the text of /proc/meminfo. For tests. */
uint64_t mt_memory_available_in(const char *meminfo);

/* Returns the lowest memory limit of a cgroup and its ancestors; UINT64_MAX if there is none.
 * `root` is the mount point of cgroups, and `self` is the content of /proc/self/cgroup. For
 * tests. */
uint64_t mt_memory_cgroup_limit(const char *root, const char *self);

/* Returns the minimum of the memory that is left in the cgroup and its ancestors. In each group,
 * that is the limit minus the use, not counting the file cache that the kernel can reclaim. If the
 * use of a group is unknown, its whole limit counts as left. For tests. */
uint64_t mt_memory_cgroup_available(const char *root, const char *self);

#endif
