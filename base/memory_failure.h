/* Whether the system ever refused memory to this process. Arenas, buffers, arrays and maps (this
 * folder) set the flag; nothing resets it. Many functions that make text have no status, and an
 * answer with a missing word looks like a complete one. The program therefore checks the flag once,
 * before it hands out what it made. The flag belongs to the process, not to a structure, so it is
 * the one variable that libraries share. The library in traced processes sets it and never reads
 * it. Any thread may call these functions. */
#ifndef MT_BASE_MEMORY_FAILURE_H
#define MT_BASE_MEMORY_FAILURE_H

#include <stdbool.h>

void mt_memory_note_failure(void);
bool mt_memory_has_failed(void);

#endif
