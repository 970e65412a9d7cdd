/* Finds the libraries that are loaded into the traced process. */
#ifndef MT_RECORD_COLLECTOR_LIBRARY_H
#define MT_RECORD_COLLECTOR_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "status.h"

#define MT_COLLECTOR_NAME  "libmemtrace-inject.so" /* all sources */
#define MT_INTERPOSER_NAME "libmemtrace-cuda.so"   /* replaces CUPTI where it cannot work */

/* Returns false for a build that can only import and analyze. */
bool mt_collector_is_built(void);

/* Sets `path` to the absolute path of a library: MEMTRACE_INJECT for the collector if it is set,
 * otherwise beside this program or in the private folder of an installation
 * (../libexec/memtrace). Returns MT_ERR_IO with the reason if the library is missing or
 * unreadable. */
enum mt_status mt_collector_library(const char *name, char path[PATH_MAX],
                                    struct mt_error *error) MT_MUST_USE;

#endif
