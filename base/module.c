#include "module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process_memory.h"
#include "util.h"

/* Relative to the program's folder: a build folder, then the private folder of `cmake --install`
 * (cmake/install.cmake). */
static const char *const folders[] = {"", PRIVATE_FOLDER};

/* Sets the folder of this program, with a slash at the end. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);

    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    slash[1] = '\0';
    return true;
}

enum mt_status mt_private_file(const char *name, char path[PATH_MAX], struct mt_error *error)
{
    char own[PATH_MAX]; /* the folder, then the name of a candidate */

    if (!own_folder(own))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the folder of memtrace is unknown");
    size_t length = strlen(own);
    for (size_t i = 0; i < MT_ARRAY_LEN(folders); i++) {
        int more = snprintf(own + length, sizeof own - length, "%s%s", folders[i], name);

        if (more > 0 && (size_t)more < sizeof own - length && realpath(own, path) &&
            access(path, R_OK) == 0)
            return MT_OK;
    }
    own[length] = '\0';
    return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                   "%s is neither in %.100s nor in its %s: reinstall memtrace with all its files",
                   name, own, PRIVATE_FOLDER);
}

/* The loader reports a text, in which the reason may be missing. */
static bool is_about_memory(const char *why)
{
    static const char *const words[] = {"annot allocate", "out of memory",
                                        "cannot create shared object descriptor",
                                        "cannot create search path array"};

    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++)
        if (strstr(why, words[i]))
            return true;
    return errno == ENOMEM;
}

void *mt_module_function(const struct mt_module *module, const char *name, struct mt_error *error)
{
    char path[PATH_MAX];

    if (mt_private_file(module->file, path, NULL) != MT_OK) {
        mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "%s", module->absent);
        return NULL;
    }
    errno = 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, name) : NULL;
    if (function)
        return function;
    const char *why = dlerror();
    why = why ? why : "out of memory";
    if (is_about_memory(why)) {
        mt_memory_failed();
        mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory to load %s", module->file);
        return NULL;
    }
    mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "%.120s; install %s", why, module->install);
    return NULL;
}

void mt_module_share_memory_rules(const struct mt_module *module)
{
    void *symbol = mt_module_function(module, "mt_memory_rules_set", NULL);
    __typeof__(&mt_memory_rules_set) set;

    if (!symbol)
        return;
    memcpy(&set, &symbol, sizeof set);
    set(mt_memory_rules());
}
