/* NCCL between ranks that do not communicate. Every collective succeeds immediately, and a gather
 * returns copies of this rank's data. Each communicator takes device memory like a real one:
 * through the driver's virtual memory interface, outside of the framework's allocator. Each part
 * is one block here, and many blocks in NCCL. NCCL connects ranks when they first need it, so the
 * first collective, the first send and the first receive of a communicator each take a part. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cards.h"
#include "driver_entries.h"
#include "pending_collectives.h"
#include "simulated_device.h"
#include "simulated_driver.h"
#include "wheel_versions.h"

enum { UNKNOWN_BYTES = 12 << 20, THOUSANDS = 1000, MIB = 1 << 20, GRANULE_BYTES = 2 * MIB };

struct buffer {
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
};

/* Parts of a communicator's memory: for any use, for collectives, for sends, for receives. */
enum part { ANY, COLLECTIVE, SEND, RECEIVE, PARTS };

struct communicator {
    int ranks, rank;
    struct buffer parts[PARTS];
    struct sim_order order;
};

typedef struct {
    char bytes[128];
} unique_id;

typedef int result;
enum { SUCCESS = 0, UNHANDLED_CUDA_ERROR = 1, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4 };

static __thread __attribute__((tls_model("initial-exec"))) CUresult last_error;
/* The next communicator that this thread splits; ranks is 0 if it was not set. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
    int ranks, rank;
} next_split;

void memtrace_simulated_split(int ranks, int rank);

/* In NCCL, a rank gets the size of a split communicator from the other ranks. Here the process
 * group, which knows the size, sets it before the call. */
void memtrace_simulated_split(int ranks, int rank)
{
    next_split.ranks = ranks;
    next_split.rank = rank;
}

static size_t setting(const char *name, size_t least, size_t most, size_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long number = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || number == 0)
        return otherwise;
    return number < least ? least : number > most ? most : (size_t)number;
}

/* Channels of a communicator that has `usual` of them unless the environment limits them. */
static size_t channels(size_t usual)
{
    enum { MOST = 64 };
    size_t least = setting("NCCL_MIN_NCHANNELS", 1, MOST, 1);
    size_t most = setting("NCCL_MAX_NCHANNELS", 1, MOST, MOST);
    most = setting("NCCL_MAX_CTAS", 1, most, most);
    usual = usual < least ? least : usual;
    return usual < most ? usual : most;
}

/* Two H200s of one node, NCCL 2.28.9, cudaMemGetInfo before and after each operation, 2026-11-30.
 * The formula is within 2 MiB of all measurements: by default, with NCCL_MAX_NCHANNELS 1 and 8,
 * NCCL_MIN_NCHANNELS 32, NCCL_MAX_CTAS 4 and NCCL_BUFFSIZE of 1 and 16 MiB. */
static size_t h200_bytes(int ranks, enum part part)
{
    enum { BUFFER = 4 * MIB, ALONE = 64, COLLECTIVES = 24, PEERS = 32 };
    size_t buffer = setting("NCCL_BUFFSIZE", 1, SIZE_MAX >> 8, BUFFER);
    buffer = (buffer + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
    if (ranks == 1)
        return part == ANY ? channels(ALONE) * 6 * MIB + 4 * MIB : 0;
    switch (part) {
    case ANY: return channels(PEERS) * 6 * MIB + 6 * MIB;
    case COLLECTIVE: return channels(COLLECTIVES) * (buffer + 8 * MIB) - 2 * MIB;
    case SEND: return channels(PEERS) * 2 * MIB;
    case RECEIVE: return channels(PEERS) * (buffer + 6 * MIB);
    case PARTS: break;
    }
    return 0;
}

/* Cards whose parts were not measured take everything at once: measured for collectives with one
 * rank and with two. Four ranks of H100s took the same memory as two. */
static size_t measured_bytes(int ranks, enum part part)
{
    const char *card = sim_card()->table_name;
    const struct mt_card_cost *cost =
        mt_card_cost(card, (unsigned)(sim_cuda_version() / THOUSANDS),
                     ranks > 1 ? MT_COST_NCCL_TWO_RANKS : MT_COST_NCCL_ONE_RANK);
    if (cost != NULL && strcmp(card, "H200 141 GB") == 0)
        return h200_bytes(ranks, part);
    return part != ANY ? 0 : cost != NULL ? cost->most_bytes : UNKNOWN_BYTES;
}

static CUresult map(struct buffer *buffer, CUmemLocation here)
{
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult error = cuMemAddressReserve(&buffer->address, buffer->bytes, 0, 0, 0);
    if (error != CUDA_SUCCESS)
        return error;
    error = cuMemMap(buffer->address, buffer->bytes, 0, buffer->handle, 0);
    if (error != CUDA_SUCCESS) {
        cuMemAddressFree(buffer->address, buffer->bytes);
        return error;
    }
    error = cuMemSetAccess(buffer->address, buffer->bytes, &access, 1);
    if (error != CUDA_SUCCESS) {
        cuMemUnmap(buffer->address, buffer->bytes);
        cuMemAddressFree(buffer->address, buffer->bytes);
    }
    return error;
}

int cudaFree(void *pointer);

/* Creating a communicator may be the first use of CUDA in a thread. NCCL then uses the current
 * device of the runtime. cudaFree(NULL) creates its context. */
static CUresult current_device(CUdevice *device)
{
    CUcontext context = NULL;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        cudaFree(NULL);
    return cuCtxGetDevice(device);
}

/* If any step fails, takes no memory and leaves `buffer` empty. */
static result take(struct buffer *buffer, size_t bytes)
{
    CUdevice device = 0;
    CUresult error = current_device(&device);
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    struct buffer taken = {.bytes = bytes};
    if (error == CUDA_SUCCESS)
        error = cuMemCreate(&taken.handle, bytes, &kind, 0);
    if (error == CUDA_SUCCESS) {
        error = map(&taken, here);
        if (error != CUDA_SUCCESS)
            cuMemRelease(taken.handle);
    }
    last_error = error;
    if (error != CUDA_SUCCESS)
        return UNHANDLED_CUDA_ERROR;
    *buffer = taken;
    return SUCCESS;
}

static void give_back(struct buffer *buffer)
{
    if (buffer->address != 0) {
        cuMemUnmap(buffer->address, buffer->bytes);
        cuMemRelease(buffer->handle);
        cuMemAddressFree(buffer->address, buffer->bytes);
    }
}

static result make(struct communicator **made, int ranks, int rank)
{
    *made = NULL;
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return INVALID_ARGUMENT;
    struct communicator *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return SYSTEM_ERROR;
    comm->ranks = ranks;
    comm->rank = rank;
    result error = take(&comm->parts[ANY], measured_bytes(ranks, ANY));
    if (error != SUCCESS) {
        free(comm);
        return error;
    }
    *made = comm;
    return SUCCESS;
}

static size_t bytes_of(size_t count, int type)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && (size_t)type < sizeof sizes ? count * sizes[type] : 0;
}

/* The kernels of sends and receives, which CUDA loads when a process first uses them on a device:
 * 62 MiB in the same measurements. */
static result load_kernels(void)
{
    static atomic_bool are_loaded[SD_DEVICES_MAX];
    struct buffer kernels;
    CUdevice device;
    if (current_device(&device) != CUDA_SUCCESS || atomic_exchange(&are_loaded[device], true))
        return SUCCESS;
    result error = take(&kernels, 62 * MIB);
    if (error != SUCCESS)
        atomic_store(&are_loaded[device], false);
    return error;
}

/* Takes the memory for a part, if the communicator does not have it. */
static result connects(struct communicator *comm, enum part part)
{
    size_t bytes = measured_bytes(comm->ranks, part);
    if (bytes == 0 || comm->parts[part].address != 0)
        return SUCCESS;
    result error = part == COLLECTIVE ? SUCCESS : load_kernels();
    return error == SUCCESS ? take(&comm->parts[part], bytes) : error;
}

static result starts(struct communicator *comm, enum part part, void *stream)
{
    if (comm == NULL)
        return INVALID_ARGUMENT;
    result error = connects(comm, part);
    if (error == SUCCESS)
        sim_collective_starts(&comm->order, stream);
    return error;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

result ncclAllGather(const void *from, void *to, size_t count, int type, struct communicator *comm,
                     void *stream)
{
    enum { DEVICE_TO_DEVICE = 3 };
    size_t bytes = bytes_of(count, type);
    result error = starts(comm, COLLECTIVE, stream);
    if (error != SUCCESS)
        return error;
    /* Twice as much with each copy: every copy counts as a launch, and NCCL has one. */
    cudaMemcpyAsync(to, from, bytes, DEVICE_TO_DEVICE, stream);
    for (size_t done = bytes, all = bytes * (size_t)comm->ranks; done < all; done *= 2) {
        size_t more = done < all - done ? done : all - done;
        cudaMemcpyAsync((char *)to + done, to, more, DEVICE_TO_DEVICE, stream);
    }
    return 0;
}

result ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                     struct communicator *comm, void *stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)operation;
    return starts(comm, COLLECTIVE, stream);
}

result ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
                  struct communicator *comm, void *stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)operation, (void)root;
    return starts(comm, COLLECTIVE, stream);
}

result ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                         struct communicator *comm, void *stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)operation;
    return starts(comm, COLLECTIVE, stream);
}

result ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                     struct communicator *comm, void *stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)root;
    return starts(comm, COLLECTIVE, stream);
}

result ncclBcast(void *memory, size_t count, int type, int root, struct communicator *comm,
                 void *stream)
{
    (void)memory, (void)count, (void)type, (void)root;
    return starts(comm, COLLECTIVE, stream);
}

result ncclSend(const void *from, size_t count, int type, int peer, struct communicator *comm,
                void *stream)
{
    (void)from, (void)count, (void)type, (void)peer;
    return starts(comm, SEND, stream);
}

result ncclRecv(void *to, size_t count, int type, int peer, struct communicator *comm, void *stream)
{
    (void)to, (void)count, (void)type, (void)peer;
    return starts(comm, RECEIVE, stream);
}

result ncclGetVersion(int *version)
{
    *version = sim_nccl_version();
    return 0;
}

result ncclGetUniqueId(unique_id *id)
{
    memset(id, 7, sizeof *id);
    return 0;
}

const char *ncclGetErrorString(result error)
{
    static const char *const words[] = {"no error", "unhandled cuda error",
                                        "unhandled system error", "internal error",
                                        "invalid argument"};
    enum { COUNT = sizeof words / sizeof *words };
    return error >= 0 && error < COUNT ? words[error] : "unknown result code";
}

const char *ncclGetLastError(struct communicator *comm)
{
    (void)comm;
    return last_error == CUDA_ERROR_OUT_OF_MEMORY ? "Cuda failure 2 'out of memory'"
           : last_error != CUDA_SUCCESS           ? "Cuda failure"
                                                  : "";
}

result ncclCommInitRank(struct communicator **comm, int ranks, unique_id id, int rank)
{
    (void)id;
    return make(comm, ranks, rank);
}

result ncclCommInitRankConfig(struct communicator **comm, int ranks, unique_id id, int rank,
                              void *config)
{
    (void)id, (void)config;
    return make(comm, ranks, rank);
}

result ncclCommInitRankScalable(struct communicator **comm, int ranks, int rank, int id_count,
                                unique_id *ids, void *config)
{
    (void)id_count, (void)ids, (void)config;
    return make(comm, ranks, rank);
}

result ncclCommDestroy(struct communicator *comm);

int memtrace_simulated_communicator(int ranks, int rank);

/* Takes what a communicator for collectives takes, until the process ends. */
int memtrace_simulated_communicator(int ranks, int rank)
{
    struct communicator *comm;
    result error = make(&comm, ranks, rank);
    if (error == SUCCESS && (error = connects(comm, COLLECTIVE)) != SUCCESS)
        ncclCommDestroy(comm);
    return error;
}

static bool set_device(CUdevice device)
{
    CUcontext context;
    return cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
           cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

/* All ranks are in this process, each on its own device. This may be the program's first call of
 * CUDA. Then no context is current, neither before nor afterwards. */
result ncclCommInitAll(struct communicator **comms, int ranks, const int *devices)
{
    CUcontext before = NULL;
    result error = SUCCESS;
    int made = 0;
    if (comms == NULL || ranks < 1 || cuInit(0) != CUDA_SUCCESS ||
        cuCtxGetCurrent(&before) != CUDA_SUCCESS)
        return INVALID_ARGUMENT;
    for (; made < ranks && error == SUCCESS; made++) {
        comms[made] = NULL;
        error = set_device(devices != NULL ? devices[made] : made) ? make(&comms[made], ranks, made)
                                                                   : INVALID_ARGUMENT;
    }
    while (error != SUCCESS && made > 0) {
        made--;
        ncclCommDestroy(comms[made]);
        comms[made] = NULL;
    }
    cuCtxSetCurrent(before);
    return error;
}

/* `key` determines the order of the new ranks. Unless memtrace_simulated_split was called, all
 * ranks are assumed to have the same color. */
result ncclCommSplit(struct communicator *comm, int color, int key, struct communicator **made,
                     void *config)
{
    int ranks = next_split.ranks, rank = next_split.rank;
    (void)key, (void)config;
    next_split.ranks = 0;
    if (color < 0) { /* NCCL_SPLIT_NOCOLOR: this rank is in no new communicator */
        *made = NULL;
        return SUCCESS;
    }
    return ranks > 0 ? make(made, ranks, rank) : make(made, comm->ranks, comm->rank);
}

/* The remaining ranks keep their order. */
result ncclCommShrink(struct communicator *comm, int *excluded, int count,
                      struct communicator **made, void *config, int flags)
{
    int before = 0;
    (void)config, (void)flags;
    for (int i = 0; i < count; i++) {
        if (excluded[i] == comm->rank) {
            *made = NULL;
            return INVALID_ARGUMENT;
        }
        before += excluded[i] < comm->rank;
    }
    return make(made, comm->ranks - count, comm->rank - before);
}

result ncclCommDestroy(struct communicator *comm)
{
    if (comm != NULL) {
        sim_collectives_end(&comm->order);
        for (int part = 0; part < PARTS; part++)
            give_back(&comm->parts[part]);
    }
    free(comm);
    return 0;
}

result ncclCommAbort(struct communicator *comm)
{
    return ncclCommDestroy(comm);
}

result ncclCommCount(struct communicator *comm, int *ranks)
{
    *ranks = comm->ranks;
    return 0;
}

result ncclCommUserRank(struct communicator *comm, int *rank)
{
    *rank = comm->rank;
    return 0;
}

result ncclCommGetAsyncError(struct communicator *comm, result *error)
{
    (void)comm;
    *error = 0;
    return 0;
}

result ncclCommRegister(struct communicator *comm, void *memory, size_t bytes, void **handle)
{
    (void)comm, (void)bytes;
    *handle = memory;
    return 0;
}

/* The blocks of ncclMemAlloc. ncclMemFree needs their handles. */
static struct memory {
    struct memory *next;
    struct buffer buffer;
} * memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

result ncclMemAlloc(void **memory, size_t bytes)
{
    struct memory *made = calloc(1, sizeof *made);
    size_t granules = bytes / GRANULE_BYTES + (bytes % GRANULE_BYTES != 0);
    *memory = NULL;
    if (made == NULL || granules == 0) {
        free(made);
        return granules == 0 ? INVALID_ARGUMENT : SYSTEM_ERROR;
    }
    result error = take(&made->buffer, granules * GRANULE_BYTES);
    if (error != SUCCESS) {
        free(made);
        return error;
    }
    pthread_mutex_lock(&lock);
    made->next = memories;
    memories = made;
    pthread_mutex_unlock(&lock);
    *memory = (void *)(uintptr_t)made->buffer.address;
    return SUCCESS;
}

result ncclMemFree(void *memory)
{
    struct memory *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct memory **at = &memories; *at != NULL; at = &(*at)->next) {
        if ((*at)->buffer.address == (CUdeviceptr)(uintptr_t)memory) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return memory == NULL ? SUCCESS : INVALID_ARGUMENT;
    give_back(&found->buffer);
    free(found);
    return SUCCESS;
}
