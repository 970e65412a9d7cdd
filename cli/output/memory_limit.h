/* The memory budget of memtrace itself, and the end of the program if memory runs out: it removes
 * unfinished files, prints one line (the input, the reason, and what to do), and exits with status
 * 3. */
#ifndef MT_CLI_MEMORY_LIMIT_H
#define MT_CLI_MEMORY_LIMIT_H

#include <stdint.h>

#include "status.h"
#include "temporary_file.h"

/* Sets the budget to the value of MEMTRACE_MAX_MEMORY. Without that variable, the budget is half of
 * the machine's memory or of the container's limit, whichever is less. From now on, lack of memory
 * ends the program and removes the files of `list` (borrowed). Returns -1, or the exit code after a
 * message about an invalid variable. */
int mt_memory_limit_start(struct mt_unfinished *list);

/* Sets the budget to the value of --max-memory. */
void mt_memory_limit_set(uint64_t bytes);

#define MT_MEMORY_TEXT 160

/* Writes the reason of a failed allocation to `text` and returns it. If the budget was the cause:
 * "needs more than 12 GiB (half of this machine's memory); raise it with --max-memory". Otherwise:
 * "out of memory". */
const char *mt_memory_reason(char text[MT_MEMORY_TEXT]);

/* Sets the input that the message names: the only one of the process, or the one that is being read
 * (mt_open_input sets it). "": none, rather than the wrong one. */
void mt_memory_input_set(const char *path);

/* Sets the exit status, which is MT_EXIT_INPUT otherwise: `record` has the status of its command.
 */
void mt_memory_exit_code_set(int code);

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
