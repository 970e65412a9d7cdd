/* Traced processes continue without memory: the callers of base/ get NULL or MT_ERR_MEMORY. */
#include "process_memory.h"

void mt_memory_failed(void) {}
