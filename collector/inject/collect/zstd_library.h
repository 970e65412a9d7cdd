/* The functions of zstd in a traced process. In builds with zstd_linked.c they are part of this
 * library, with hidden names. In builds with zstd_loaded.c (without libzstd.a, or with
 * MEMTRACE_ZSTD=SHARED) they come from a shared library. */
#ifndef MT_INJECT_ZSTD_LIBRARY_H
#define MT_INJECT_ZSTD_LIBRARY_H

#include <stdbool.h>

/* Makes zstd usable. Call it before any function of zstd; otherwise these functions return a zstd
 * error. Returns false if the library cannot be loaded. Do not call it while you hold a lock that
 * the program can take, because it may load a library. Any thread may call it. */
bool mt_zstd_load(void);

#endif
