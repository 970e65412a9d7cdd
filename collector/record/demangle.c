#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

/* The time that the demangler takes may grow much faster than the length of the name. */
enum { MAX_MANGLED_BYTES = 8192 };

static void find_library(struct mt_demangler *demangler)
{
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    void *symbol = NULL;

    demangler->tried = 1;
    for (size_t i = 0; i < MT_ARRAY_LEN(names) && !symbol; i++) {
        demangler->library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!demangler->library)
            continue;
        symbol = dlsym(demangler->library, "__cxa_demangle");
        if (!symbol)
            dlclose(demangler->library);
    }
    memcpy(&demangler->demangle, &symbol, sizeof symbol);
    if (!symbol)
        demangler->library = NULL;
}

const char *mt_demangle(struct mt_demangler *demangler, const char *name)
{
    int status = -1;

    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, MAX_MANGLED_BYTES) == MAX_MANGLED_BYTES)
        return name;
    if (!demangler->tried)
        find_library(demangler);
    if (!demangler->demangle)
        return name;
    free(demangler->result);
    demangler->result = demangler->demangle(name, NULL, NULL, &status);
    if (!demangler->result || status != 0)
        return name;
    if (strnlen(demangler->result, MT_MAX_DEMANGLED_BYTES) == MT_MAX_DEMANGLED_BYTES)
        demangler->result[MT_MAX_DEMANGLED_BYTES - 1] = '\0';
    return demangler->result;
}

void mt_demangler_release(struct mt_demangler *demangler)
{
    free(demangler->result);
    if (demangler->library)
        dlclose(demangler->library);
    memset(demangler, 0, sizeof *demangler);
}
