/* Names of threads beyond what they are called at their first event (which the
 * core records): given by NVTX, or because the program renamed the thread. A
 * trace names a thread once, when the first event of it is drained; what is
 * known by then counts. */
#ifndef MT_INJECT_THREAD_NAMES_H
#define MT_INJECT_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "inject_source.h"

extern const struct mt_inject_source mt_thread_names_source;

/* A name that somebody gave on purpose: it stays, whatever the thread is called
 * later. Copies it; the thread need not have emitted anything yet. Any thread. */
void mt_thread_name_set(uint32_t os_thread, const char *name, size_t length);

#endif
