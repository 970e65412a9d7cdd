/* Where the functions of zstd come from in a traced process. zstd_linked.c: they are part of this
 * library, with hidden names. zstd_loaded.c: the system has only a shared library. */
#ifndef MT_INJECT_ZSTD_LIBRARY_H
#define MT_INJECT_ZSTD_LIBRARY_H

#include <stdbool.h>

/* Makes zstd usable. Call it before the first call of a function of zstd; a function that is called
 * without it fails as zstd does. Returns false if the library cannot be loaded. May load a library,
 * so the caller holds no lock that the program can take. Any thread. */
bool mt_zstd_load(void);

#endif
