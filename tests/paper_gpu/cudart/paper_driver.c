#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "paper_runtime.h"

#define TEXT(name) #name
#define NAME(name) TEXT(name)

static struct paper_driver calls;
static void *library;
static bool usable;

static void open_driver(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return;
    }
#define LOAD(name) *(void **)&calls.name = dlsym(library, NAME(name));
    PAPER_DRIVER_CALLS(LOAD)
#undef LOAD
    usable = calls.cuInit != NULL && calls.cuInit(0) == CUDA_SUCCESS;
}

const struct paper_driver *paper_driver(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    return usable ? &calls : NULL;
}

void *paper_driver_symbol(const char *name)
{
    return paper_driver() != NULL ? dlsym(library, name) : NULL;
}

unsigned paper_option(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}
