/* Parts of a trace's name that depend on its process. */
#ifndef MT_INJECT_RUN_NAMES_H
#define MT_INJECT_RUN_NAMES_H

#include <stddef.h>

/* Writes the host's name to `out`, in characters that are safe in a file name. */
void mt_run_host(char *out, size_t capacity);

#endif
