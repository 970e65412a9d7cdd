/* Whether the driver has started, and which context is current in a thread. */
#include "simulated_driver.h"

#include <unistd.h>

static pid_t started_in; /* 0: not initialized */
/* initial-exec: as in the real driver, the first call on a thread allocates nothing. */
static __thread __attribute__((tls_model("initial-exec"))) CUcontext stack[16];
static __thread __attribute__((tls_model("initial-exec"))) unsigned depth;

bool sd_begin(void)
{
    bool first = !started_in;
    if (first)
        started_in = getpid();
    return first;
}

CUresult sd_initialized(void)
{
    return started_in && started_in == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUcontext sd_current_or_null(void)
{
    CUcontext context = depth ? stack[depth - 1] : NULL;
    return context && context->alive ? context : NULL;
}

CUresult sd_current(CUcontext *context)
{
    CUresult result = sd_initialized();
    if (result)
        return result;
    *context = sd_current_or_null();
    return *context ? (*context)->sticky : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sd_push(CUcontext context)
{
    if (!context || !context->alive || depth == sizeof stack / sizeof *stack)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

void sd_forget_current(CUcontext context)
{
    if (depth && stack[depth - 1] == context)
        depth--;
}

SD_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    return sd_push(ctx);
}

SD_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx)
        *pctx = stack[depth];
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
    if (depth)
        depth--;
    return ctx ? sd_push(ctx) : CUDA_SUCCESS;
}
