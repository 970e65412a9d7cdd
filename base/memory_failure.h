/* Whether the host ever refused memory to this process. Arenas, buffers, arrays and maps (this
 * folder) set it; it stays. Much text is made by functions that have no status, and a word that is
 * missing from an answer looks like an answer: so a program asks once, before it hands out what it
 * made. It is the state of the process and no structure's, hence the one variable that libraries
 * share. The library in traced processes sets it and never asks. Any thread may call these. */
#ifndef MT_BASE_MEMORY_FAILURE_H
#define MT_BASE_MEMORY_FAILURE_H

#include <stdbool.h>

void mt_memory_note_failure(void);
bool mt_memory_has_failed(void);

#endif
