/* Where the libraries are that go into the traced process. */
#ifndef MT_RECORD_COLLECTOR_LIBRARY_H
#define MT_RECORD_COLLECTOR_LIBRARY_H

#include <limits.h>

#include "status.h"

#define MT_COLLECTOR_NAME "libmemtrace-inject.so" /* all sources */
#define MT_INTERPOSER_NAME                                                                         \
    "libmemtrace-cuda.so" /* stands before libcuda where CUPTI cannot work                         \
                           */

/* The absolute path of one of them: what MEMTRACE_INJECT says if it is the
 * collector, else beside this program or in the lib folder beside its own.
 * MT_ERR_IO and the reason if it is nowhere or cannot be read. */
enum mt_status mt_collector_library(const char *name, char path[PATH_MAX],
                                    struct mt_error *error) MT_MUST_USE;

#endif
