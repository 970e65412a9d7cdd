#include "originals.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static const char inside; /* an address in this library */

void *mt_original_library(const void *address)
{
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname || !*info.dli_fname)
        return NULL;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static bool is_ours(void *function)
{
    Dl_info theirs, ours;

    return dladdr(function, &theirs) && dladdr(&inside, &ours) &&
           theirs.dli_fbase == ours.dli_fbase;
}

/* A handle searches its library and the dependencies, not preloaded libraries. */
void *mt_original_symbol(void *library, const char *name)
{
    void *symbol = library ? dlsym(library, name) : NULL;

    if (!symbol || is_ours(symbol))
        symbol = dlsym(RTLD_NEXT, name);
    return symbol && !is_ours(symbol) ? symbol : NULL;
}

void *mt_original_for(const void *caller, const char *name)
{
    void *library = mt_original_library(caller);
    void *symbol = mt_original_symbol(library, name);

    if (library)
        dlclose(library);
    return symbol;
}
