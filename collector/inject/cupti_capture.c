/* See cupti_capture.h. */
#include "cupti_capture.h"

#include <dlfcn.h>
#include <string.h>

#include "cupti_abi.h"

enum { CAPTURE_ACTIVE = 1 /* CU_STREAM_CAPTURE_STATUS_ACTIVE */ };

static mt_cu_is_capturing *ask_legacy, *ask_per_thread;

void mt_cupti_capture_ask(mt_cu_is_capturing *legacy, mt_cu_is_capturing *per_thread)
{
    ask_legacy = legacy;
    ask_per_thread = per_thread;
}

static mt_cu_is_capturing *find(void *library, const char *name)
{
    mt_cu_is_capturing *function = NULL;
    void *symbol = dlsym(library, name);
    memcpy(&function, &symbol, sizeof symbol);
    return function;
}

void mt_cupti_capture_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return;
    mt_cupti_capture_ask(find(library, "cuStreamIsCapturing"),
                         find(library, "cuStreamIsCapturing_ptsz"));
    dlclose(library); /* the process keeps the library loaded */
}

/* Returns false if the call has no stream. */
static bool stream_of(const struct mt_cupti_entry *entry, const void *params, uint64_t *stream)
{
    if (entry->at_exit == mt_cupti_exit_alloc_async)
        *stream = ((const struct mt_cu_alloc_stream *)params)->hStream;
    else if (entry->at_exit == mt_cupti_exit_alloc_pool)
        *stream = ((const struct mt_cu_alloc_pool *)params)->hStream;
    else
        return false;
    return true;
}

bool mt_cupti_is_captured(const struct mt_cupti_entry *entry, const void *params)
{
    uint64_t stream;
    uint32_t status = 0;
    if (!stream_of(entry, params, &stream))
        return false;
    mt_cu_is_capturing *ask = strstr(entry->name, "_ptsz") ? ask_per_thread : ask_legacy;
    return ask && ask(stream, &status) == 0 && status == CAPTURE_ACTIVE;
}
