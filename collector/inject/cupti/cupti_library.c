/* See cupti_library.h. Two copies of CUPTI in one process are independent, so a mapped copy comes
 * first. The copy of a framework fits its CUDA better than that of the machine. */
#include "cupti_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "originals.h"
#include "util.h"

static const char *const sonames[] = {
    "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
    "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
    "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so",
};

struct search {
    mt_cupti_try *try;
    void *user;
    bool done, lacked_memory;
};

static bool resolve(struct mt_cupti_library *library)
{
    const struct {
        const char *name;
        void *slot;
        bool needed;
    } symbols[] = {
        {"cuptiSubscribe", &library->subscribe, true},
        {"cuptiSubscribe_v2", &library->subscribe_v2, false},
        {"cuptiEnableCallback", &library->enable, true},
        {"cuptiGetCallbackName", &library->name, true},
        {"cuptiGetVersion", &library->version, true},
        {"cuptiGetResultString", &library->result_string, true},
        {"cuptiGetDeviceId", &library->device_id, false},
        {"cuptiUnsubscribe", &library->unsubscribe, false},
        {"cuptiEnableDomain", &library->enable_domain, false},
        {"cuptiGetCallbackState", &library->state, false},
        {"cuptiActivityDisable", &library->disable_activity, false},
        {"cuptiFinalize", &library->finalize, false},
    };
    for (size_t i = 0; i < MT_ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(library->handle, symbols[i].name);
        if (!symbol && symbols[i].needed)
            return false;
        memcpy(symbols[i].slot, &symbol, sizeof symbol);
    }
    return true;
}

static void try_path(struct search *search, const char *path, int flags)
{
    struct mt_cupti_library library = {.handle = NULL};
    if (search->done || (strchr(path, '/') && access(path, R_OK) != 0))
        return;
    errno = 0;
    library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (!library.handle) {
        search->lacked_memory |= errno == ENOMEM;
        return;
    }
    snprintf(library.path, sizeof library.path, "%s", path);
    search->done = resolve(&library) && search->try(search->user, &library);
    if (!search->done)
        dlclose(library.handle);
}

static void try_folder(struct search *search, const char *folder)
{
    char path[1024];
    for (size_t i = 0; i < MT_ARRAY_LEN(sonames) && !search->done; i++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, sonames[i]) < sizeof path)
            try_path(search, path, 0);
}

static const char *const cupti_names[] = {"libcupti.so", NULL};

/* Paths of mapped libraries whose names have one of some prefixes. They are collected first,
 * because nothing can be loaded while the loader's list is walked. */
struct mapped {
    const char *const *beginnings; /* NULL at the end */
    char paths[8][1024];
    size_t count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *user)
{
    struct mapped *mapped = user;
    const char *path = info->dlpi_name, *base = path ? strrchr(path, '/') : NULL;
    (void)size;
    if (!base || strlen(path) >= sizeof mapped->paths[0])
        return 0;
    for (const char *const *beginning = mapped->beginnings; *beginning; beginning++)
        if (strncmp(base + 1, *beginning, strlen(*beginning)) == 0)
            strcpy(mapped->paths[mapped->count++], path);
    return mapped->count == MT_ARRAY_LEN(mapped->paths);
}

static void try_mapped(struct search *search)
{
    struct mapped mapped = {.beginnings = cupti_names};
    dl_iterate_phdr(collect, &mapped);
    for (size_t i = 0; i < mapped.count; i++)
        try_path(search, mapped.paths[i], RTLD_NOLOAD);
}

void *mt_cupti_mapped_symbol(const char *name)
{
    struct mapped mapped = {.beginnings = cupti_names};
    void *symbol = NULL;
    dl_iterate_phdr(collect, &mapped);
    for (size_t i = 0; i < mapped.count && !symbol; i++) {
        void *library = dlopen(mapped.paths[i], RTLD_NOW | RTLD_NOLOAD);
        symbol = library ? dlsym(library, name) : NULL;
        if (library)
            dlclose(library);
    }
    return symbol;
}

bool mt_cupti_library_of(const void *function, struct mt_cupti_library *library)
{
    Dl_info info;
    *library = (struct mt_cupti_library){.handle = mt_original_library(function)};
    if (!library->handle)
        return false;
    if (dladdr(function, &info) && resolve(library)) {
        snprintf(library->path, sizeof library->path, "%s", info.dli_fname);
        return true;
    }
    dlclose(library->handle);
    return false;
}

/* Searches next to libraries of CUDA or of a framework: in the same folder, and in the vendor's
 * Python packages relative to it. */
static void try_neighbours(struct search *search)
{
    static const char *const cuda[] = {"libcudart.so", "libtorch_cuda.so", "libcublas.so",
                                       "xla_cuda_plugin.so", NULL};
    static const char *const folders[] = {"", "/../../cuda_cupti/lib", "/../../nvidia/cu13/lib",
                                          "/../../nvidia/cuda_cupti/lib", "/../extras/CUPTI/lib64"};
    struct mapped mapped = {.beginnings = cuda};
    char folder[1200];
    dl_iterate_phdr(collect, &mapped);
    for (size_t i = 0; i < mapped.count; i++) {
        *strrchr(mapped.paths[i], '/') = 0;
        for (size_t k = 0; k < MT_ARRAY_LEN(folders); k++) {
            snprintf(folder, sizeof folder, "%s%s", mapped.paths[i], folders[k]);
            try_folder(search, folder);
        }
    }
}

/* ---- copies of the machine: the one that the loader finds comes first, because a library path is
 * set for this program ---- */

static void try_toolkit(struct search *search, const char *home)
{
    static const char *const folders[] = {"extras/CUPTI/lib64", "lib64", "lib"};
    char folder[1200];
    for (size_t i = 0; home && *home && i < MT_ARRAY_LEN(folders); i++)
        if ((size_t)snprintf(folder, sizeof folder, "%s/%s", home, folders[i]) < sizeof folder)
            try_folder(search, folder);
}

static void try_machine(struct search *search)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(sonames); i++)
        try_path(search, sonames[i], 0);
    try_toolkit(search, getenv("CUDA_HOME"));
    try_toolkit(search, getenv("CUDA_PATH"));
    try_toolkit(search, "/usr/local/cuda");
}

bool mt_cupti_search(const char *wanted, mt_cupti_try *try, void *user)
{
    struct search search = {.try = try, .user = user};
    if (*wanted) {
        try_path(&search, wanted, 0);
    } else {
        try_mapped(&search);
        try_neighbours(&search);
        try_machine(&search);
    }
    errno = search.lacked_memory ? ENOMEM : 0;
    return search.done;
}
