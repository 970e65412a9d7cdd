/* The frame of every entry point: whether the driver has started, which context is current, and the
 * calls that a tool watches.
 *
 * ENTER and EXIT of every entry point, and the only slot for a tool. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "simulated_driver.h"

/* Whether the driver has started, and which context is current in a thread. */

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct sd_tool *_Atomic tool;
static _Atomic unsigned next_correlation_id = 1;

void sd_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sd_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

SD_EXPORT const char *memtrace_simulated_attach(const struct sd_tool *wanted)
{
    const struct sd_tool *holder = NULL;
    if (atomic_compare_exchange_strong(&tool, &holder, wanted))
        return NULL;
    return holder->name;
}

SD_EXPORT void memtrace_simulated_detach(const struct sd_tool *held)
{
    const struct sd_tool *expected = held;
    atomic_compare_exchange_strong(&tool, &expected, NULL);
}

static void say(struct sd_call *call, enum sd_site site)
{
    const struct sd_tool *listener = atomic_load(&tool);
    if (!listener)
        return;
    call->site = site;
    call->context = sd_current_or_null();
    call->context_uid = call->context ? call->context->uid : 0;
    listener->call(call);
}

void sd_enter(struct sd_call *call, unsigned cbid, const char *name, const void *params)
{
    *call = (struct sd_call){.cbid = cbid, .name = name, .params = params};
    call->correlation_id = atomic_fetch_add(&next_correlation_id, 1);
    say(call, SD_ENTER);
}

CUresult sd_exit(struct sd_call *call, CUresult result)
{
    call->result = result;
    say(call, SD_EXIT);
    return result;
}

void sd_tell(enum sd_resource_kind kind, CUcontext context, CUstream stream, const void *descriptor)
{
    const struct sd_tool *listener = atomic_load(&tool);
    if (listener)
        listener->resource(kind, context, stream, descriptor);
}
