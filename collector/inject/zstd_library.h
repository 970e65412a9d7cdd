/* The functions of zstd in a traced process. With zstd_linked.c they are part of this library,
 * with hidden names. With zstd_loaded.c they are loaded from a shared library, because the
 * system has no other. */
#ifndef MT_INJECT_ZSTD_LIBRARY_H
#define MT_INJECT_ZSTD_LIBRARY_H

#include <stdbool.h>

/* Makes zstd usable. Call it before the first call of a function of zstd; without it, functions
 * of zstd return an error of zstd. Returns false if the library cannot be loaded. May load a
 * library, so the caller holds no lock that the program can take. Any thread. */
bool mt_zstd_load(void);

#endif
