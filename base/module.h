/* Files that are installed with the program, and modules: parts of memtrace that need a library
 * which a machine may lack, such as cairo. A module is loaded when it is needed, so the program
 * runs without that library. */
#ifndef MT_BASE_MODULE_H
#define MT_BASE_MODULE_H

#include <limits.h>

#include "status.h"

/* Sets `path` to the absolute path of a file that belongs to this program: beside it, as in a build
 * folder, or in the private folder of an installation (../libexec/memtrace). Returns MT_ERR_IO with
 * the reason if it is missing or unreadable. */
enum mt_status mt_private_file(const char *name, char path[PATH_MAX],
                               struct mt_error *error) MT_MUST_USE;

struct mt_module {
    const char *file;    /* "libmemtrace-png.so" */
    const char *absent;  /* the reason if the file does not exist: an option of the build */
    const char *install; /* what to install if the loader does not find a library: "cairo" */
};

/* Returns a function of a module, which stays loaded until the process ends, or NULL with
 * MT_ERR_UNSUPPORTED and the reason (`error` may be NULL). If memory ran out, the status is
 * MT_ERR_MEMORY. Costs a few system calls. */
void *mt_module_function(const struct mt_module *module, const char *name, struct mt_error *error);

/* Makes code of the module end the process as the program does if memory runs out, or return the
 * failure: a module has its own copy of process_memory.h. Call it before other functions. */
void mt_module_share_memory_rules(const struct mt_module *module);

#endif
