/* Names of threads that change after their first event (the core records the first name): set by
 * NVTX, or by a rename. A trace names a thread once, when its first event is drained, with the
 * name known at that time. */
#ifndef MT_INJECT_THREAD_NAMES_H
#define MT_INJECT_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "inject_source.h"

extern const struct mt_inject_source mt_thread_names_source;

/* Sets a name that later renames of the thread do not replace. Copies it. The thread need not have
 * emitted an event. Any thread may call it. */
void mt_thread_name_set(uint32_t os_thread, const char *name, size_t length);

#endif
