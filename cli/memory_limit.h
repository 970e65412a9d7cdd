/* The memory budget: its default, --max-memory, and what a command does if memory runs out. A
 * command that runs out of memory prints one line with what failed, why, and what to do, and ends
 * with status 3, whether it was reading, printing, or writing a file. */
#ifndef MT_CLI_MEMORY_LIMIT_H
#define MT_CLI_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "status.h"

/* Sets the budget: MEMTRACE_MAX_MEMORY, otherwise half of the machine's memory or of the
 * container's limit, whichever is less. Returns -1, or the exit code after a message about an
 * invalid variable. */
int mt_memory_limit_start(void);

/* --max-memory. */
void mt_memory_limit_set(uint64_t bytes);

#define MT_MEMORY_TEXT 160

/* Returns true if an allocation has failed, because of the budget or the machine. Results may then
 * be incomplete. */
bool mt_memory_ran_out(void);

/* Returns true if memory is the cause of this error. Code that ran out of memory may report another
 * reason. For example, a reader may report invalid input. Internal errors never count as lack of
 * memory. */
bool mt_is_memory_failure(const struct mt_error *error);

/* "needs more than 12 GiB (half of this machine's memory); raise it with --max-memory" if the
 * budget refused an allocation, else "out of memory". Writes to `text` and returns it. */
const char *mt_memory_reason(char text[MT_MEMORY_TEXT]);

/* "memtrace: WHAT: <reason>"; returns the exit status for lack of memory. */
int mt_say_no_memory(const char *what);

/* Call it after the command. Returns true if memory ran out and no message was printed. */
bool mt_memory_is_unsaid(void);

/* Returns the memory that other processes may take now: the minimum of the machine's available
 * memory and the rest of the container's limit. UINT64_MAX: unknown. */
uint64_t mt_memory_available(void);

/* Returns the available memory of the machine from the text of /proc/meminfo. For tests. */
uint64_t mt_memory_available_in(const char *meminfo);

/* Returns the lowest limit of a cgroup and its ancestors: `root` is the mount point of cgroups,
 * `self` the content of /proc/self/cgroup. UINT64_MAX if there is none. For tests. */
uint64_t mt_memory_cgroup_limit(const char *root, const char *self);

/* Returns the least memory that these limits leave: each limit minus the use of its group, without
 * the file cache that the kernel can reclaim. If the use of a group is unknown, its limit counts in
 * full. For tests. */
uint64_t mt_memory_cgroup_available(const char *root, const char *self);

#endif
