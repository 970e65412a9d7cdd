/* ENTER and EXIT of every entry point, and the only slot for a tool. */
#include "simulated_driver.h"

#include <pthread.h>
#include <stdatomic.h>

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
