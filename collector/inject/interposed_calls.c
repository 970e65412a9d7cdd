/* See driver_hooks.h. Uses the decoders of CUPTI's calls. Contexts, which CUPTI reports separately,
 * are derived from the calls that create and destroy them. */
#include "driver_hooks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collect.h"
#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_contexts.h"
#include "settings.h"
#include "source_cupti.h"

/* Numbers of entry points that have no decoder. */
enum { CONTEXT_DESTROY = 1 << 16, PRIMARY_RESET, PRIMARY_RELEASE };

enum { MAX_DEVICES = 64 };

/* The primary context of each device, and its number of references. */
static struct {
    _Atomic uint64_t context;
    _Atomic int retained;
} primary[MAX_DEVICES];

static _Atomic bool told; /* the trace names this source */

static bool wanted(void)
{
    return mt_recorder_settings->asked && !mt_cupti_is_active();
}

static int find(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } more[] = {{"cuCtxDestroy_v2", CONTEXT_DESTROY},
                {"cuDevicePrimaryCtxReset_v2", PRIMARY_RESET},
                {"cuDevicePrimaryCtxRelease_v2", PRIMARY_RELEASE}};

    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        if (!strcmp(more[i].name, name))
            return more[i].number;
    for (size_t i = 0; i < mt_cupti_entry_count; i++)
        if (!strcmp(mt_cupti_entries[i].name, name))
            return (int)i;
    return MT_INTERPOSED_UNKNOWN;
}

static bool is_device(int device)
{
    return device >= 0 && device < MAX_DEVICES;
}

static void destroy(uint64_t context)
{
    if (context && mt_cupti_device_of(context) != MT_CU_UNKNOWN_DEVICE)
        mt_cupti_context_destroyed(context);
}

static void destroy_primary(int device)
{
    if (is_device(device))
        destroy(atomic_exchange(&primary[device].context, 0));
}

static void release_primary(int device)
{
    if (is_device(device) && atomic_load(&primary[device].retained) > 0 &&
        atomic_fetch_sub(&primary[device].retained, 1) == 1)
        destroy_primary(device);
}

/* Ends of contexts, reported before the driver call. */
static void enter_context(int number, const void *params)
{
    int device;

    memcpy(&device, params, sizeof device);
    if (number == CONTEXT_DESTROY)
        destroy(((const struct mt_cu_handle *)params)->value);
    else if (number == PRIMARY_RELEASE)
        release_primary(device);
    else if (number == PRIMARY_RESET && is_device(device)) {
        atomic_store(&primary[device].retained, 0);
        destroy_primary(device);
    }
}

static bool makes_context(const char *name)
{
    return !strncmp(name, "cuCtxCreate", strlen("cuCtxCreate")) ||
           !strcmp(name, "cuDevicePrimaryCtxRetain");
}

static void note_primary(const struct mt_cu_context_retain *params)
{
    if (!is_device(params->dev))
        return;
    atomic_store(&primary[params->dev].context, *params->pctx);
    atomic_fetch_add(&primary[params->dev].retained, 1);
}

/* Call it after a call that may have created a context, and before its decoder, which clears the
 * device. */
static void see_context(const char *name, const struct mt_interposed_call *call)
{
    const struct mt_cu_context_retain *params = call->params;

    if (call->result || !makes_context(name) || !params->pctx || !*params->pctx)
        return;
    if (mt_cupti_device_of(*params->pctx) == MT_CU_UNKNOWN_DEVICE)
        mt_cupti_context_created(*params->pctx);
    if (!strcmp(name, "cuDevicePrimaryCtxRetain"))
        note_primary(params);
}

/* Queries about devices do not start a trace (source_cupti.c). */
static bool is_mere_question(int number)
{
    return number < CONTEXT_DESTROY && mt_cupti_is_device_query(&mt_cupti_entries[number]) &&
           !mt_collect_is_running();
}

/* Runs before the first event of the driver, and of each thread, as in source_cupti.c. */
static void tell(void)
{
    if (atomic_load_explicit(&told, memory_order_acquire))
        return;
    mt_collect_fact("sources", "interposer");
    mt_collect_fact("driver_calls", "through libmemtrace-cuda.so");
    mt_cupti_contexts_record_devices();
    atomic_store_explicit(&told, true, memory_order_release);
}

static bool begin(void)
{
    if (!wanted() || !mt_collect_enter())
        return false;
    tell();
    return true;
}

static struct mt_cupti_call call_of(const struct mt_interposed_call *call)
{
    return (struct mt_cupti_call){.params = call->params,
                                  .context = call->context,
                                  .result = call->result,
                                  .captured = call->captured};
}

static void enter(int number, const struct mt_interposed_call *call)
{
    struct mt_cupti_call decoded = call_of(call);
    int saved = errno;

    if (!is_mere_question(number) && begin()) {
        if (number >= CONTEXT_DESTROY)
            enter_context(number, call->params);
        else
            mt_cupti_on_enter(&mt_cupti_entries[number], &decoded);
        mt_collect_leave();
    }
    errno = saved;
}

static void leave(int number, const struct mt_interposed_call *call)
{
    struct mt_cupti_call decoded = call_of(call);
    int saved = errno;

    if (wanted() && is_mere_question(number)) {
        mt_cupti_entries[number].at_exit(&decoded);
    } else if (number < CONTEXT_DESTROY && begin()) {
        see_context(mt_cupti_entries[number].name, call);
        mt_cupti_on_exit(&mt_cupti_entries[number], &decoded);
        mt_collect_leave();
    }
    errno = saved;
}

__attribute__((visibility("default"))) const struct mt_driver_hooks *memtrace_driver_hooks(void)
{
    static const struct mt_driver_hooks hooks = {wanted, find, enter, leave};

    return &hooks;
}

static void forked(void)
{
    atomic_store(&told, false);
    memset((void *)primary, 0, sizeof primary);
}

const struct mt_inject_source mt_interposer_source = {.name = "interposer", .forked = forked};
