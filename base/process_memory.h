/* What this process may take of memory, and whether it ever was refused any. Any thread may call
 * these functions.
 *
 * The budget: the program `memtrace` counts every block that its own code takes (memory_wrap.c); a
 * block that would go beyond the budget is refused as if the host had no memory, so that every
 * error path is the one that exists anyway. Nothing is counted in the library in traced processes,
 * which has bounds of its own.
 *
 * The failure: arenas, buffers, arrays and maps (this folder) set a flag that nothing resets. Many
 * functions that make text have no status, and an answer with a missing word looks like a complete
 * one. The program therefore checks the flag once, before it hands out what it made. The flag
 * belongs to the process, not to a structure, so it is the one variable that libraries share. The
 * library in traced processes sets it and never reads it. */
#ifndef MT_BASE_PROCESS_MEMORY_H
#define MT_BASE_PROCESS_MEMORY_H

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

void mt_memory_note_failure(void);
bool mt_memory_has_failed(void);

#endif
