/* The environment of the command. It makes the loader, the driver and NVTX load the collector, and
 * it has the settings of the collector (collector/inject/collect/settings.h). */
#ifndef MT_RECORD_ENVIRONMENT_H
#define MT_RECORD_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena.h"
#include "status.h"

#define MT_SEARCH_PATH "LD_LIBRARY_PATH"

struct mt_record_settings {
    const char *library;    /* libmemtrace-inject.so; NULL: leave everything as it is */
    const char *interposer; /* libmemtrace-cuda.so, also preloaded; NULL = no */
    bool no_preload;        /* do not touch LD_PRELOAD */
    const char *output;     /* absolute; a folder if it ends in / */
    const char *manifest;   /* absolute */
    bool auto_stacks; /* Python stacks, or native stacks without Python; overrides the next two */
    bool python_stacks, native_stacks;
    bool free_stacks;      /* frees also get stacks */
    const char *phases;    /* "nvtx,torch,autograd", any of them; "none" */
    uint64_t sample_hz;    /* 0 = never */
    uint64_t ring_seconds; /* keep only the last events, at least of this time; 0 = all */
    uint64_t
        ring_above_bytes; /* save the ring if the memory of a device rises above this; 0 = no */
    bool idle;            /* do not record before mt_tape_ask */
    bool follow, quiet, with_env;
    bool xla_requests; /* XLA and TensorFlow request each block from the driver, without an arena */
    pid_t root;        /* of the command */
};

/* Returns `inherited` with the changes of the settings. The array ends with NULL and is in the
 * arena; strings of `inherited` are borrowed. NULL: out of memory.
 *
 * The inherited value of LD_PRELOAD follows the libraries of memtrace. If their folder has a space,
 * it follows the inherited value of LD_LIBRARY_PATH. Other injection libraries
 * that were set move to MEMTRACE_CUDA_NEXT and MEMTRACE_NVTX_NEXT; the collector calls them
 * first. */
char **mt_record_environment(char *const *inherited, const struct mt_record_settings *settings,
                             struct mt_arena *arena);

/* Returns the word for a library in LD_PRELOAD, which cannot contain a space: `library`, an
 * absolute path, or only its file name if the path has one. The loader then needs its folder in
 * MT_SEARCH_PATH. Borrowed from `library`. */
const char *mt_record_preload_word(const char *library);

/* Finds the libraries that are loaded into the traced process. */

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
