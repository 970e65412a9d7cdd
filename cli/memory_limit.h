/* The memory budget as users see it: its default, --max-memory, and the one rule for memory that
 * ran out. Whatever was being done, reading, printing or writing a file, the command ends with
 * status 3 and one line: what failed, the reason, and what to do. */
#ifndef MT_CLI_MEMORY_LIMIT_H
#define MT_CLI_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "status.h"

/* Sets the budget: MEMTRACE_MAX_MEMORY, else half of the machine's memory or of the container's
 * limit, whichever is less. -1, or the exit code after a line about a wrong variable. */
int mt_memory_limit_start(void);

/* --max-memory. */
void mt_memory_limit_set(uint64_t bytes);

#define MT_MEMORY_TEXT 160

/* Did memory run out, by the budget or on the host? What was made since may lack a part. */
bool mt_memory_ran_out(void);

/* Is this a failure of memory, whatever it was taken for? A reader blames its input for what it
 * could not take in. Errors of memtrace itself stay what they are. */
bool mt_is_memory_failure(const struct mt_error *error);

/* "needs more than 12 GiB (half of this machine's memory); raise it with --max-memory" if the
 * budget refused an allocation, else "out of memory". Writes to `text` and returns it. */
const char *mt_memory_reason(char text[MT_MEMORY_TEXT]);

/* "memtrace: WHAT: <reason>"; returns the exit status of memory that ran out. */
int mt_say_no_memory(const char *what);

/* After the command: has nobody said yet that memory ran out? */
bool mt_memory_is_unsaid(void);

/* The least limit of a cgroup and those above it: `root` is where cgroups are mounted, `self` what
 * /proc/self/cgroup holds. UINT64_MAX if there is none. For tests. */
uint64_t mt_memory_cgroup_limit(const char *root, const char *self);

#endif
