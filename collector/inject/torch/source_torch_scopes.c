/* RecordFunction: named ranges of torch.profiler.record_function, of optimizers and data loaders
 * (user scope), and of the nodes of the backward pass. A callback for all threads is a struct of 40
 * bytes, passed by value. It has the same layout from 1.13 to 2.15 (compiled from the headers of
 * each minor version); x86-64 and aarch64 are supported. The result of begin(), a
 * unique_ptr<ObserverContext>, is passed to end(): an object with a virtual destructor, which here
 * only frees. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "originals.h"
#include "settings.h"
#include "torch_parts.h"

enum { SCOPE_BACKWARD = 1, SCOPE_USER = 7, SCOPE_COUNT = 10 };

struct context {
    const void *functions;
    uint32_t name, thread;
};

/* at::RecordFunctionCallback */
struct callback {
    void *(*begin)(struct context **result, const void *scope);
    void (*end)(const void *scope, struct context *context);
    double probability;
    bool scopes[SCOPE_COUNT];
    bool needs_inputs, needs_outputs, needs_ids;
};

_Static_assert(sizeof(struct callback) == 40, "as in ATen/record_function.h");

typedef uint64_t (*add_function)(struct callback callback);
typedef const char *(*name_function)(const void *scope);

static struct {
    _Atomic(add_function) add;
    name_function name;
    atomic_bool is_added, off;
} scopes;

static void destroy(void *self)
{
    (void)self;
}

/* Offset to top, type, then two destructors: one that does not free the memory and one that
 * does. */
static const struct {
    intptr_t offset_to_top;
    const void *type;
    void (*functions[2])(void *self);
} context_table = {.functions = {destroy, free}};

static struct context *push(const void *scope)
{
    struct context *context;
    struct mt_raw_event event = {.kind = MT_EVENT_PHASE_PUSH, .device = UINT8_MAX};
    const char *name = scopes.name(scope);

    event.id = name ? mt_collect_name(name, strlen(name)) : 0;
    context = event.id ? malloc(sizeof *context) : NULL;
    if (!context)
        return NULL;
    *context = (struct context){context_table.functions, event.id, mt_collect_thread()};
    mt_collect_emit(&event);
    return context;
}

static void pop(const struct context *context)
{
    uint32_t thread = mt_collect_thread();
    struct mt_raw_event event = {.kind = MT_EVENT_PHASE_POP,
                                 .device = UINT8_MAX,
                                 .id = context->name,
                                 .aux_bytes = context->thread == thread ? 0 : context->thread};

    mt_collect_emit(&event);
}

/* A unique_ptr is returned in memory of the caller. x86-64 passes its address as the first argument
 * and gets it back. */
static void *begin(struct context **result, const void *scope)
{
    int saved = errno;

    *result = NULL;
    if (!atomic_load_explicit(&scopes.off, memory_order_relaxed) && mt_collect_enter()) {
        *result = push(scope);
        mt_collect_leave();
    }
    errno = saved;
    return result;
}

#if defined(__aarch64__)
/* aarch64 passes the address in x8. Structures of C that are returned in memory are larger than a
 * unique_ptr, so no C function is called that way. */
void *mt_torch_scope_begin(struct context **result, const void *scope)
    __attribute__((alias("begin"), visibility("hidden")));
__asm__(".text\n"
        ".hidden mt_torch_scope_begin_x8\n"
        ".globl mt_torch_scope_begin_x8\n"
        ".type mt_torch_scope_begin_x8, %function\n"
        "mt_torch_scope_begin_x8:\n"
        "    hint #34\n" /* bti c: an indirect branch leads here */
        "    mov x1, x0\n"
        "    mov x0, x8\n"
        "    b mt_torch_scope_begin\n"
        ".size mt_torch_scope_begin_x8, . - mt_torch_scope_begin_x8\n");
void *mt_torch_scope_begin_x8(struct context **result, const void *scope);
#define BEGIN mt_torch_scope_begin_x8
#else
#define BEGIN begin
#endif

static void end(const void *scope, struct context *context)
{
    int saved = errno;

    (void)scope;
    if (context && !atomic_load_explicit(&scopes.off, memory_order_relaxed) && mt_collect_enter()) {
        pop(context);
        mt_collect_leave();
    }
    errno = saved;
}

void mt_torch_scopes_resolve(void *library)
{
    add_function add = (add_function)mt_original_symbol(
        library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");

    scopes.name = (name_function)mt_original_symbol(library, "_ZNK2at14RecordFunction4nameEv");
    if (add && scopes.name)
        atomic_store_explicit(&scopes.add, add, memory_order_release);
}

void mt_torch_scopes_begin(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    add_function add = atomic_load_explicit(&scopes.add, memory_order_acquire);
    struct callback callback = {.begin = BEGIN, .end = end, .probability = 1.0};

    callback.scopes[SCOPE_USER] = mt_recorder_settings->phases_torch;
    callback.scopes[SCOPE_BACKWARD] = mt_recorder_settings->phases_autograd;
    if (!add || (!mt_recorder_settings->phases_torch && !mt_recorder_settings->phases_autograd) ||
        !mt_torch_version_has_scopes(mt_torch_version_text()) ||
        atomic_exchange(&scopes.is_added, true))
        return;
    add(callback);
#endif
}

/* A child whose parent had not initialized CUDA starts by itself. */
void mt_torch_scopes_forked(void)
{
    if (atomic_load(&scopes.is_added))
        atomic_store(&scopes.off, true);
}
