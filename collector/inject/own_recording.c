/* Functions for a program that records itself. It loads this library with MEMTRACE_OUTPUT set,
 * before it starts CUDA (python/memtrace/recording.py). The functions are found by dlsym;
 * docs/internals/recorder.md describes them for programs. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core.h"
#include "settings.h"
#include "torch_parts.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int memtrace_begin(void);
EXPORTED int memtrace_end(void);

enum { BEGUN, BEGUN_WITHOUT_PYTORCH, NOT_BEGUN = -1 };
enum { ENDED, ENDED_WITHOUT_TRACE, NOT_ENDED = -1 };

/* A PyTorch that is already loaded calls its own functions, not those that this library exports
 * under the same names. So nothing would report that it starts CUDA. */
static bool meet_loaded_pytorch(void)
{
    /* it depends on all libraries whose functions are needed */
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    bool is_recorded = !library || mt_torch_allocator_meet(library, false);

    if (library)
        dlclose(library);
    return is_recorded;
}

/* Call it once after loading, before CUDA starts. Returns 0, 1 if the blocks of the PyTorch that is
 * already loaded cannot be recorded, or -1 if this process is not recorded or already is. */
int memtrace_begin(void)
{
    if (!mt_recorder_settings->asked || atomic_load(&mt_core.state) != MT_CORE_IDLE)
        return NOT_BEGUN;
    return meet_loaded_pytorch() ? BEGUN : BEGUN_WITHOUT_PYTORCH;
}

/* Closes the trace. Nothing is recorded in this process afterwards. Call it while no other thread
 * uses the GPU. Returns 0 if the trace is complete, 1 if there is none, because nothing was
 * recorded, or -1 if it is closed later: by `memtrace record`, or by `memtrace recover` from the
 * tape. */
int memtrace_end(void)
{
    switch (mt_lifecycle_end()) {
    case MT_EARLY_END_WHOLE: return ENDED;
    case MT_EARLY_END_NOTHING: return ENDED_WITHOUT_TRACE;
    case MT_EARLY_END_REFUSED: break;
    }
    return NOT_ENDED;
}
