/* Parts of a trace's name that depend on its process. */
#ifndef MT_INJECT_RUN_NAMES_H
#define MT_INJECT_RUN_NAMES_H

#include <stddef.h>

/* The host's name, safe as a part of a file's name. */
void mt_run_host(char *out, size_t capacity);

#endif
