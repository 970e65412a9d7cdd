/* Memory budget of this process, and whether an allocation ever failed. Any thread may call these
 * functions.
 *
 * Budget: the program `memtrace` counts every block that its own code allocates (memory_wrap.c). A
 * block that would exceed the budget is refused as if the host had no memory, so the existing error
 * paths handle it. The library in traced processes has its own bounds and counts nothing.
 *
 * Failure: arenas, buffers, arrays and maps (in this folder) set a flag that nothing resets. Many
 * functions that produce text return no status, and output with a missing word looks complete. The
 * program therefore checks the flag once, before it emits its results. The flag belongs to the
 * process, not to a structure, so it is the only variable that libraries share. The library in
 * traced processes sets it and never reads it. */
#ifndef MT_BASE_PROCESS_MEMORY_H
#define MT_BASE_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the budget. 0 = no budget, the initial state. Forgets earlier refusals. */
void mt_memory_budget_set(uint64_t bytes);
uint64_t mt_memory_budget(void);

/* Returns whether `size_bytes` more stay within the budget, and records a refusal. */
bool mt_memory_allows(uint64_t size_bytes);

/* Count allocated and freed bytes. */
void mt_memory_taken(uint64_t size_bytes);
void mt_memory_given_back(uint64_t size_bytes);
uint64_t mt_memory_in_use(void);

/* Returns the first refused total: the bytes that the program would have had in use. 0 = nothing
 * was refused. */
uint64_t mt_memory_refused(void);

void mt_memory_note_failure(void);
bool mt_memory_has_failed(void);

#endif
