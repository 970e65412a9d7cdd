/* Buffers that a program registers with communicators of NCCL. NCCL's ranges do not report which
 * ones, so this preloaded library replaces the functions that register. It also replaces those that
 * create communicators, because NCCL's payloads identify a communicator by an id (nvtx_parts.h) and
 * a registration by a pointer. Each function calls NCCL's function first and returns its result.
 *
 * Not recorded: a program that gets NCCL's functions from dlsym (vLLM, XLA), a library into which
 * NCCL is linked, and a process without preloaded libraries. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "collect.h"
#include "grow.h"
#include "lock.h"
#include "nccl_calls.h"
#include "nvtx_parts.h"
#include "originals.h"

#define CALLER __builtin_return_address(0)

enum { SUCCESS = 0, INTERNAL_ERROR = 3 }; /* ncclResult_t */
enum { MAX_ROWS = 1 << 20, MAX_RANKS = 1 << 24 };

struct communicator {
    const void *pointer;
    uint64_t id;
};

/* NCCL returns the same handle for a buffer inside of one that it knows. */
struct registration {
    const void *communicator, *handle;
    uint64_t addr, size_bytes, id, uses;
};

static struct {
    pthread_mutex_t lock;
    struct communicator *communicators;
    size_t communicator_count, communicator_capacity;
    struct registration *registrations;
    size_t registration_count, registration_capacity;
} nccl = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *behind(const char *name, const void *caller)
{
    int saved = errno;
    void *function = mt_original_for(caller, name);

    errno = saved;
    return function;
}

static struct communicator *find_communicator(const void *pointer)
{
    for (size_t i = 0; i < nccl.communicator_count; i++)
        if (nccl.communicators[i].pointer == pointer)
            return &nccl.communicators[i];
    return NULL;
}

static void keep_communicator(const void *pointer, uint64_t id)
{
    struct communicator *known = find_communicator(pointer);

    if (!known) {
        if (nccl.communicator_count >= MAX_ROWS ||
            mt_grow(&nccl.communicators, &nccl.communicator_capacity, nccl.communicator_count + 1,
                    sizeof *nccl.communicators))
            return;
        known = &nccl.communicators[nccl.communicator_count++];
    }
    *known = (struct communicator){pointer, id};
}

static void emit(uint8_t kind, const struct registration *row, const char *call)
{
    struct mt_raw_event event = {.kind = kind,
                                 .heap = MT_RAW_DRIVER,
                                 .device = UINT8_MAX,
                                 .addr = row->addr,
                                 .size_bytes = row->size_bytes,
                                 .aux_bytes = row->id,
                                 .id = mt_collect_name(call, strlen(call))};

    if (event.id)
        mt_collect_emit(&event);
}

/* Ends and their effects are handled under one lock, so events have the order of the table. */
static void end_registration(size_t at, const char *call)
{
    struct registration *row = &nccl.registrations[at];

    emit(MT_EVENT_BUFFER_DEREGISTERED, row, call);
    *row = nccl.registrations[--nccl.registration_count];
}

static size_t find_registration(const void *communicator, const void *handle)
{
    for (size_t i = nccl.registration_count; i-- > 0;)
        if (nccl.registrations[i].communicator == communicator &&
            nccl.registrations[i].handle == handle)
            return i;
    return SIZE_MAX;
}

static void add_registration(struct registration row, const char *call)
{
    size_t at = find_registration(row.communicator, row.handle);
    const struct communicator *known = find_communicator(row.communicator);

    if (at != SIZE_MAX) {
        nccl.registrations[at].uses++;
        return;
    }
    if (nccl.registration_count >= MAX_ROWS ||
        mt_grow(&nccl.registrations, &nccl.registration_capacity, nccl.registration_count + 1,
                sizeof *nccl.registrations))
        return;
    row.id = known ? known->id : 0;
    nccl.registrations[nccl.registration_count++] = row;
    emit(MT_EVENT_BUFFER_REGISTERED, &row, call);
}

/* Returns false, and needs no end, if this thread may not emit now. */
static bool begin(struct mt_signals *before)
{
    if (!mt_collect_enter())
        return false;
    *before = mt_lock(&nccl.lock);
    return true;
}

static void end(struct mt_signals before)
{
    mt_unlock(&nccl.lock, before);
    mt_collect_leave();
}

static void registered(const void *communicator, const void *buffer, size_t size_bytes,
                       const void *handle, const char *call)
{
    struct registration row = {communicator, handle, (uintptr_t)buffer, size_bytes, 0, 1};
    struct mt_signals before;

    if (!handle || !begin(&before)) /* no handle: NCCL does not register here */
        return;
    add_registration(row, call);
    end(before);
}

static void deregistered(const void *communicator, const void *handle, const char *call)
{
    struct mt_signals before;

    if (!begin(&before))
        return;
    size_t at = find_registration(communicator, handle);
    if (at != SIZE_MAX && --nccl.registrations[at].uses == 0)
        end_registration(at, call);
    end(before);
}

/* Another communicator may get the same address later. */
static void destroyed(const void *pointer, const char *call)
{
    struct mt_signals before;

    if (!begin(&before))
        return;
    for (size_t i = nccl.registration_count; i-- > 0;)
        if (nccl.registrations[i].communicator == pointer)
            end_registration(i, call);
    struct communicator *known = find_communicator(pointer);
    if (known)
        *known = nccl.communicators[--nccl.communicator_count];
    end(before);
}

static bool ask(const char *name, const void *communicator, const void *caller, int *number)
{
    mt_nccl_question_fn *function = (mt_nccl_question_fn *)behind(name, caller);

    *number = -1;
    return function && function(communicator, number) == SUCCESS && *number >= 0;
}

/* Records what the payload of ncclCommSplit lacks about the child. NCCL's ranges of these queries
 * are not recorded, because they are between enter and leave. */
static void tell_ranks(const void *communicator, uint64_t id, const void *caller, const char *call)
{
    struct mt_raw_event event = {.kind = MT_EVENT_COMMUNICATOR,
                                 .heap = MT_RAW_DRIVER,
                                 .device = UINT8_MAX,
                                 .addr = id,
                                 .id = mt_collect_name(call, strlen(call))};
    int ranks, rank, device;

    if (!event.id || !ask("ncclCommCount", communicator, caller, &ranks) ||
        !ask("ncclCommUserRank", communicator, caller, &rank) || ranks > MAX_RANKS || rank >= ranks)
        return;
    event.size_bytes = (uint64_t)ranks;
    event.aux_bytes = (uint64_t)rank;
    if (ask("ncclCommCuDevice", communicator, caller, &device) && device < UINT8_MAX)
        event.device = (uint8_t)device;
    mt_collect_emit(&event);
}

/* `id` is 0 if NCCL did not report it: the communicator is created asynchronously, or NCCL is
 * old. */
static void made(const void *pointer, const void *caller, const char *call, bool says_ranks)
{
    uint64_t id = mt_nvtx_communicator_last();
    int saved = errno;

    if (!id || !mt_collect_enter())
        return;
    if (!says_ranks)
        tell_ranks(pointer, id, caller, call);
    struct mt_signals before = mt_lock(&nccl.lock);
    keep_communicator(pointer, id);
    mt_unlock(&nccl.lock, before);
    mt_collect_leave();
    errno = saved;
}

#define MADE(communicator, call, says_ranks)                                                       \
    do {                                                                                           \
        if (result == SUCCESS && (communicator) && *(communicator))                                \
            made(*(communicator), CALLER, "NCCL: " call, says_ranks);                              \
    } while (0)

int ncclCommInitRank(void **communicator, int ranks, struct mt_nccl_id id, int rank)
{
    mt_nccl_init_fn *next = (mt_nccl_init_fn *)behind("ncclCommInitRank", CALLER);

    mt_nvtx_communicator_forget();
    int result = next ? next(communicator, ranks, id, rank) : INTERNAL_ERROR;
    MADE(communicator, "ncclCommInitRank", true);
    return result;
}

int ncclCommInitRankConfig(void **communicator, int ranks, struct mt_nccl_id id, int rank,
                           void *config)
{
    mt_nccl_init_config_fn *next =
        (mt_nccl_init_config_fn *)behind("ncclCommInitRankConfig", CALLER);

    mt_nvtx_communicator_forget();
    int result = next ? next(communicator, ranks, id, rank, config) : INTERNAL_ERROR;
    MADE(communicator, "ncclCommInitRankConfig", true);
    return result;
}

int ncclCommInitRankScalable(void **communicator, int ranks, int rank, int id_count,
                             struct mt_nccl_id *ids, void *config)
{
    mt_nccl_init_scalable_fn *next =
        (mt_nccl_init_scalable_fn *)behind("ncclCommInitRankScalable", CALLER);

    mt_nvtx_communicator_forget();
    int result = next ? next(communicator, ranks, rank, id_count, ids, config) : INTERNAL_ERROR;
    MADE(communicator, "ncclCommInitRankScalable", true);
    return result;
}

int ncclCommSplit(void *parent, int color, int key, void **communicator, void *config)
{
    mt_nccl_split_fn *next = (mt_nccl_split_fn *)behind("ncclCommSplit", CALLER);

    mt_nvtx_communicator_forget();
    int result = next ? next(parent, color, key, communicator, config) : INTERNAL_ERROR;
    MADE(communicator, "ncclCommSplit", false);
    return result;
}

#define ENDS(name)                                                                                 \
    int name(void *communicator)                                                                   \
    {                                                                                              \
        mt_nccl_end_fn *next = (mt_nccl_end_fn *)behind(#name, CALLER);                            \
        int saved = errno;                                                                         \
                                                                                                   \
        destroyed(communicator, "NCCL: " #name);                                                   \
        errno = saved;                                                                             \
        return next ? next(communicator) : INTERNAL_ERROR;                                         \
    }

ENDS(ncclCommDestroy)
ENDS(ncclCommAbort)

int ncclCommRegister(const void *communicator, void *buffer, size_t size_bytes, void **handle)
{
    mt_nccl_register_fn *next = (mt_nccl_register_fn *)behind("ncclCommRegister", CALLER);
    int result = next ? next(communicator, buffer, size_bytes, handle) : INTERNAL_ERROR;
    int saved = errno;

    if (result == SUCCESS && handle)
        registered(communicator, buffer, size_bytes, *handle, "NCCL: ncclCommRegister");
    errno = saved;
    return result;
}

int ncclCommWindowRegister(void *communicator, void *buffer, size_t size_bytes, void **window,
                           int flags)
{
    mt_nccl_window_fn *next = (mt_nccl_window_fn *)behind("ncclCommWindowRegister", CALLER);
    int result = next ? next(communicator, buffer, size_bytes, window, flags) : INTERNAL_ERROR;
    int saved = errno;

    if (result == SUCCESS && window)
        registered(communicator, buffer, size_bytes, *window, "NCCL: ncclCommWindowRegister");
    errno = saved;
    return result;
}

#define DEREGISTERS(name, ours)                                                                    \
    int name(ours void *communicator, void *handle)                                                \
    {                                                                                              \
        mt_nccl_deregister_fn *next = (mt_nccl_deregister_fn *)behind(#name, CALLER);              \
        int saved = errno;                                                                         \
                                                                                                   \
        deregistered(communicator, handle, "NCCL: " #name);                                        \
        errno = saved;                                                                             \
        return next ? next(communicator, handle) : INTERNAL_ERROR;                                 \
    }

DEREGISTERS(ncclCommDeregister, const)
DEREGISTERS(ncclCommWindowDeregister, )

/* Registrations belong to the parent. Without the lock the tables may be half changed, so they are
 * abandoned. */
static void forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    nccl.lock = unlocked;
    nccl.communicators = NULL;
    nccl.registrations = NULL;
    nccl.communicator_count = nccl.communicator_capacity = 0;
    nccl.registration_count = nccl.registration_capacity = 0;
}

const struct mt_inject_source mt_nccl_source = {.name = "nccl", .forked = forked};
