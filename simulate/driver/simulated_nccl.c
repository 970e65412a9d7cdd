/* NCCL between ranks that never talk: every collective succeeds at once, and what
 * is gathered is everybody's own. Each
 * communicator takes device memory as the real one does: through the driver's
 * virtual memory, past the framework's allocator. It is one block; NCCL makes many. */
#include <stdlib.h>
#include <string.h>

#include "card_costs.h"
#include "driver_entries.h"
#include "simulated_device.h"
#include "wheel_versions.h"

enum { UNKNOWN_BYTES = 12 << 20, THOUSANDS = 1000 };

struct buffer {
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
};

struct communicator {
    int ranks, rank;
    struct buffer buffer;
};

typedef struct {
    char bytes[128];
} unique_id;

typedef int result; /* 0 is success */

/* As measured with one rank and with two; more ranks take at least what two take. */
static size_t measured_bytes(int ranks)
{
    const struct mt_card_cost *cost =
        mt_card_cost(sim_card()->table_name, (unsigned)(sim_cuda_version() / THOUSANDS),
                     ranks > 1 ? MT_COST_NCCL_TWO_RANKS : MT_COST_NCCL_ONE_RANK);
    return cost != NULL ? cost->most_bytes : UNKNOWN_BYTES;
}

static void take(struct buffer *buffer, size_t bytes)
{
    CUdevice device = 0;
    cuCtxGetDevice(&device);
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (cuMemCreate(&buffer->handle, bytes, &kind, 0) != CUDA_SUCCESS) {
        return;
    }
    buffer->bytes = bytes;
    cuMemAddressReserve(&buffer->address, bytes, 0, 0, 0);
    cuMemMap(buffer->address, bytes, 0, buffer->handle, 0);
    cuMemSetAccess(buffer->address, bytes, &access, 1);
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
    struct communicator *comm = calloc(1, sizeof *comm);
    *made = comm;
    if (comm == NULL) {
        return 2;
    }
    comm->ranks = ranks;
    comm->rank = rank;
    take(&comm->buffer, measured_bytes(ranks));
    return 0;
}

static size_t bytes_of(size_t count, int type)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && (size_t)type < sizeof sizes ? count * sizes[type] : 0;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

result ncclAllGather(const void *from, void *to, size_t count, int type, struct communicator *comm,
                     void *stream)
{
    enum { DEVICE_TO_DEVICE = 3 };
    size_t bytes = bytes_of(count, type);
    for (int rank = 0; rank < comm->ranks; rank++) {
        cudaMemcpyAsync((char *)to + (size_t)rank * bytes, from, bytes, DEVICE_TO_DEVICE, stream);
    }
    return 0;
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
    (void)error;
    return "simulated NCCL";
}

const char *ncclGetLastError(struct communicator *comm)
{
    (void)comm;
    return "";
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

result ncclCommSplit(struct communicator *comm, int color, int key, struct communicator **made,
                     void *config)
{
    (void)key, (void)config;
    if (color < 0) { /* NCCL_SPLIT_NOCOLOR: this rank is in no new communicator */
        *made = NULL;
        return 0;
    }
    return make(made, comm->ranks, comm->rank);
}

result ncclCommDestroy(struct communicator *comm)
{
    if (comm != NULL) {
        give_back(&comm->buffer);
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
