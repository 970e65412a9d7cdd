/* See interposer.h: the functions that replace those of libcuda.
 *
 * All arguments of these functions are integers and pointers, at most six. On x86-64 and aarch64
 * they are in registers, independent of their type. So one body serves all functions, and a text
 * describes the arguments and their widths. */
#include "interposer.h"

#include <stddef.h>
#include <string.h>

#include "driver_hooks.h"

enum { CUDA_ERROR_NOT_INITIALIZED = 3, MAX_ARGUMENTS = 6 };

typedef uint32_t driver_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct call {
    struct mt_interposed *to;
    const uint64_t *arguments;
    struct mt_interposed_call told;
    const struct mt_driver_hooks *hooks; /* NULL: pass the call on */
};

/* The thread is already in a call, so nested calls come from the driver. */
static _Thread_local bool inside;

static const struct mt_driver_hooks *find_hooks(void)
{
    static _Atomic(const struct mt_driver_hooks *) found;
    static _Atomic bool looked;

    if (!atomic_load_explicit(&looked, memory_order_acquire)) {
        void *symbol = mt_interposer_find_dlsym()(NULL, "memtrace_driver_hooks");
        if (symbol)
            atomic_store(&found, ((const struct mt_driver_hooks *(*)(void))symbol)());
        atomic_store_explicit(&looked, true, memory_order_release);
    }
    return atomic_load_explicit(&found, memory_order_relaxed);
}

static int number_of(struct mt_interposed *to, const struct mt_driver_hooks *hooks)
{
    int number = atomic_load_explicit(&to->number, memory_order_relaxed);

    if (!number) {
        number = hooks->find(to->name) + 2;
        atomic_store_explicit(&to->number, number, memory_order_relaxed);
    }
    return number - 2;
}

/* Stores the arguments as members of a structure. */
static void lay_out(const char *widths, const uint64_t *arguments, unsigned char *params)
{
    size_t at = 0;

    for (size_t i = 0; widths[i]; i++) {
        size_t width = widths[i] == '4' ? 4 : 8;
        at = (at + width - 1) / width * width;
        memcpy(params + at, &arguments[i], width);
        at += width;
    }
}

static uint64_t current_context(void)
{
    static _Atomic(void *) entry;
    void *known = atomic_load_explicit(&entry, memory_order_relaxed);
    uint64_t context = 0;

    if (!known) {
        known = mt_real_entry("cuCtxGetCurrent");
        atomic_store_explicit(&entry, known, memory_order_relaxed);
    }
    return known && ((uint32_t(*)(uint64_t *))known)(&context) == 0 ? context : 0;
}

/* Returns whether the call adds a node to the graph that its stream is capturing. */
static bool is_captured(const struct mt_interposed *to, const uint64_t *arguments)
{
    const char *stream = strchr(to->arguments, 's');
    bool per_thread = strstr(to->name, "_ptsz") != NULL;
    uint32_t status = 0;

    if (!stream)
        return false;
    void *entry = mt_real_entry(per_thread ? "cuStreamIsCapturing_ptsz" : "cuStreamIsCapturing");
    return entry &&
           ((uint32_t(*)(uint64_t, uint32_t *))entry)(arguments[stream - to->arguments], &status) ==
               0 &&
           status == 1;
}

static void *real_of(struct mt_interposed *to)
{
    void *real = atomic_load_explicit(&to->real, memory_order_relaxed);

    if (!real) {
        real = mt_real_entry(to->name);
        atomic_store_explicit(&to->real, real, memory_order_relaxed);
    }
    return real;
}

static void begin(struct call *call)
{
    call->hooks = inside ? NULL : find_hooks();
    if (!call->hooks || !call->hooks->wanted() ||
        number_of(call->to, call->hooks) == MT_INTERPOSED_UNKNOWN) {
        call->hooks = NULL;
        return;
    }
    inside = true;
    call->told.context = current_context();
    call->told.captured = is_captured(call->to, call->arguments);
    call->hooks->enter(number_of(call->to, call->hooks), &call->told);
}

static uint32_t end(struct call *call, uint32_t result)
{
    if (!call->hooks)
        return result;
    call->told.result = result;
    call->hooks->leave(number_of(call->to, call->hooks), &call->told);
    inside = false;
    return result;
}

static uint32_t pass(struct mt_interposed *to, const uint64_t *a)
{
    unsigned char params[MAX_ARGUMENTS * 8] = {0};
    struct call call = {.to = to, .arguments = a, .told = {.params = params}};
    driver_fn *real = (driver_fn *)real_of(to);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    lay_out(to->arguments, a, params);
    begin(&call);
    return end(&call, real(a[0], a[1], a[2], a[3], a[4], a[5]));
}

enum {
#define INTERPOSED(name, since, arguments) PLACE_##name,
#include "interposed_list.h"
#undef INTERPOSED
    PLACE_cuIpcOpenMemHandle,
    PLACE_cuIpcOpenMemHandle_v2
};

#define INTERPOSED(name, since, arguments)                                                         \
    MT_EXPORT uint32_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,            \
                            uint64_t f);                                                           \
    uint32_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)          \
    {                                                                                              \
        const uint64_t all[MAX_ARGUMENTS] = {a, b, c, d, e, f};                                    \
        return pass(&mt_interposed[PLACE_##name], all);                                            \
    }
#include "interposed_list.h"
#undef INTERPOSED

/* x86-64 passes the handle on the stack, aarch64 a pointer to a copy. */
struct ipc_handle {
    char bytes[64];
};

typedef uint32_t open_fn(uint64_t *address, struct ipc_handle handle, uint32_t flags);

static uint32_t open_ipc(struct mt_interposed *to, uint64_t *address, struct ipc_handle handle,
                         uint32_t flags)
{
    struct {
        uint64_t *address;
        struct ipc_handle handle;
        uint32_t flags;
    } params = {address, handle, flags};
    struct call call = {.to = to, .told = {.params = &params}};
    open_fn *real = (open_fn *)real_of(to);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    begin(&call);
    return end(&call, real(address, handle, flags));
}

MT_EXPORT uint32_t cuIpcOpenMemHandle(uint64_t *address, struct ipc_handle handle, uint32_t flags);
MT_EXPORT uint32_t cuIpcOpenMemHandle_v2(uint64_t *address, struct ipc_handle handle,
                                         uint32_t flags);

uint32_t cuIpcOpenMemHandle(uint64_t *address, struct ipc_handle handle, uint32_t flags)
{
    return open_ipc(&mt_interposed[PLACE_cuIpcOpenMemHandle], address, handle, flags);
}

uint32_t cuIpcOpenMemHandle_v2(uint64_t *address, struct ipc_handle handle, uint32_t flags)
{
    return open_ipc(&mt_interposed[PLACE_cuIpcOpenMemHandle_v2], address, handle, flags);
}

struct mt_interposed mt_interposed[] = {
#define INTERPOSED(name, since, arguments) {#name, since, arguments, (void *)name, NULL, 0},
#include "interposed_list.h"
#undef INTERPOSED
    {"cuIpcOpenMemHandle", 0, "", (void *)cuIpcOpenMemHandle, NULL, 0},
    {"cuIpcOpenMemHandle_v2", 11000, "", (void *)cuIpcOpenMemHandle_v2, NULL, 0},
    {NULL, 0, NULL, NULL, NULL, 0},
};

struct mt_interposed *mt_interposed_find(const char *name)
{
    for (struct mt_interposed *at = mt_interposed; at->name; at++)
        if (!strcmp(at->name, name))
            return at;
    return NULL;
}
