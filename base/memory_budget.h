/* How much memory the program may take. The program `memtrace` counts every block that its own
 * code takes (memory_wrap.c); a block that would go beyond the budget is refused as if the host
 * had no memory, so that every error path is the one that exists anyway. Nothing is counted in the
 * library in traced processes, which has bounds of its own. Any thread may call any of these. */
#ifndef MT_BASE_MEMORY_BUDGET_H
#define MT_BASE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* From now on. 0 = no budget, which is the state at the start. Forgets what was refused. */
void mt_memory_budget_set(uint64_t bytes);
uint64_t mt_memory_budget(void);

/* Would `size_bytes` more stay within the budget? Remembers if not. */
bool mt_memory_allows(uint64_t size_bytes);

/* Counts what was taken, and what was given back. */
void mt_memory_taken(uint64_t size_bytes);
void mt_memory_given_back(uint64_t size_bytes);
uint64_t mt_memory_in_use(void);

/* The first sum that was refused: what the program would have had in use. 0 = none was. */
uint64_t mt_memory_refused(void);

#endif
