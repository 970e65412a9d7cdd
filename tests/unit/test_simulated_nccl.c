/* Simulated NCCL: the device memory of communicators, and failures if there is not enough. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "util.h"

typedef void *comm;
struct unique_id {
    char bytes[128];
};

enum { DEVICES = 4, CUDA_ERROR = 1, INVALID_ARGUMENT = 4, NO_COLOR = -1 };
#define MEMORY_BYTES ((size_t)2 << 30)

static struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*current_device)(int *);
    int (*info)(size_t *, size_t *);
    int (*init_rank)(comm *, int, struct unique_id, int);
    int (*init_all)(comm *, int, const int *);
    int (*split)(comm, int, int, comm *, void *);
    int (*shrink)(comm, int *, int, comm *, void *, int);
    int (*destroy)(comm);
    int (*count)(comm, int *);
    int (*rank)(comm, int *);
    int (*mem_alloc)(void **, size_t);
    int (*mem_free)(void *);
    const char *(*error_string)(int);
    const char *(*last_error)(comm);
    int (*all_reduce)(const void *, void *, size_t, int, int, comm, void *);
    int (*send)(const void *, size_t, int, int, comm, void *);
    int (*receive)(void *, size_t, int, int, comm, void *);
    void (*say_split)(int, int);
} api;

static const struct {
    const char *name;
    void *function;
} functions[] = {{"cuInit", &api.init},
                 {"cuDevicePrimaryCtxRetain", &api.retain},
                 {"cuCtxSetCurrent", &api.set_current},
                 {"cuCtxGetDevice", &api.current_device},
                 {"cuMemGetInfo_v2", &api.info},
                 {"ncclCommInitRank", &api.init_rank},
                 {"ncclCommInitAll", &api.init_all},
                 {"ncclCommSplit", &api.split},
                 {"ncclCommShrink", &api.shrink},
                 {"ncclCommDestroy", &api.destroy},
                 {"ncclCommCount", &api.count},
                 {"ncclCommUserRank", &api.rank},
                 {"ncclMemAlloc", &api.mem_alloc},
                 {"ncclMemFree", &api.mem_free},
                 {"ncclGetErrorString", &api.error_string},
                 {"ncclGetLastError", &api.last_error},
                 {"ncclAllReduce", &api.all_reduce},
                 {"ncclSend", &api.send},
                 {"ncclRecv", &api.receive},
                 {"memtrace_simulated_split", &api.say_split}};

static void choose_device(int device)
{
    void *context;

    assert_int_equal(api.retain(&context, device), 0);
    assert_int_equal(api.set_current(context), 0);
}

static int load(void **state)
{
    void *library;

    (void)state;
    setenv("MEMTRACE_SIMULATED_DEVICE", "H200", 1);
    setenv("MEMTRACE_SIMULATED_DEVICES", "4", 1);
    setenv("MEMTRACE_SIMULATED_MEMORY", "2147483648", 1);
    library = dlopen(SIMULATED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    for (size_t i = 0; i < MT_ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function)
            return -1;
        memcpy(functions[i].function, &function, sizeof function);
    }
    return api.init(0);
}

static size_t free_bytes(void)
{
    size_t available, total;

    assert_int_equal(api.info(&available, &total), 0);
    assert_int_equal(total, MEMORY_BYTES);
    return available;
}

static void assert_place(comm c, int ranks, int rank)
{
    int found;

    assert_int_equal(api.count(c, &found), 0);
    assert_int_equal(found, ranks);
    assert_int_equal(api.rank(c, &found), 0);
    assert_int_equal(found, rank);
}

/* Takes all that is left, except for less than `step`. */
static size_t fill(void **blocks, size_t capacity, size_t step)
{
    size_t count = 0;

    while (count < capacity && !api.mem_alloc(&blocks[count], step))
        count++;
    return count;
}

TEST(one_communicator)
{
    const struct unique_id id = {{7}};
    comm c;

    choose_device(0);
    size_t before = free_bytes();
    assert_int_equal(api.init_rank(&c, 8, id, 5), 0);
    assert_place(c, 8, 5);
    assert_true(free_bytes() < before);
    assert_int_equal(api.destroy(c), 0);
    assert_int_equal(free_bytes(), before);
    assert_int_equal(api.init_rank(&c, 8, id, 8), INVALID_ARGUMENT);
    assert_null(c);
}

TEST(all_devices_of_a_process)
{
    static const int devices[] = {3, 1};
    size_t before[DEVICES];
    comm comms[2];
    int device;

    for (device = DEVICES - 1; device >= 0; device--) {
        choose_device(device);
        before[device] = free_bytes();
    }
    assert_int_equal(api.init_all(comms, 2, devices), 0);
    assert_place(comms[0], 2, 0);
    assert_place(comms[1], 2, 1);
    assert_int_equal(api.current_device(&device), 0);
    assert_int_equal(device, 0);
    assert_int_equal(free_bytes(), before[0]);
    choose_device(3);
    assert_true(free_bytes() < before[3]);
    choose_device(1);
    assert_true(free_bytes() < before[1]);
    api.destroy(comms[0]);
    api.destroy(comms[1]);
    assert_int_equal(free_bytes(), before[1]);
    assert_int_equal(api.init_all(comms, 2, (const int[]){0, 9}), INVALID_ARGUMENT);
    assert_null(comms[0]);
    choose_device(0);
    assert_int_equal(free_bytes(), before[0]);
}

TEST(all_devices_as_the_first_call)
{
    comm comms[2];
    int device;

    assert_int_equal(api.set_current(NULL), 0);
    assert_int_equal(api.init_all(comms, 2, NULL), 0);
    assert_place(comms[1], 2, 1);
    assert_int_not_equal(api.current_device(&device), 0); /* as before: none */
    api.destroy(comms[0]);
    api.destroy(comms[1]);
}

TEST(a_split)
{
    const struct unique_id id = {{7}};
    comm parent, child, third;

    choose_device(0);
    assert_int_equal(api.init_rank(&parent, 8, id, 5), 0);
    api.say_split(2, 1);
    assert_int_equal(api.split(parent, 3, 1, &child, NULL), 0);
    assert_place(child, 2, 1);
    assert_int_equal(api.split(parent, 3, 1, &third, NULL), 0);
    assert_place(third, 8, 5); /* without colors: all ranks have the same one */
    api.destroy(third);
    api.say_split(2, 1);
    assert_int_equal(api.split(parent, NO_COLOR, 1, &third, NULL), 0);
    assert_null(third);
    assert_int_equal(api.split(parent, 3, 1, &third, NULL), 0);
    assert_place(third, 8, 5); /* colors of the split before are forgotten */
    api.destroy(third);
    assert_int_equal(api.shrink(parent, (int[]){0, 7}, 2, &third, NULL, 0), 0);
    assert_place(third, 6, 4);
    api.destroy(third);
    assert_int_equal(api.shrink(parent, (int[]){5}, 1, &third, NULL, 0), INVALID_ARGUMENT);
    api.destroy(child);
    api.destroy(parent);
}

TEST(without_memory)
{
    const struct unique_id id = {{7}};
    enum { MOST = 4096 };
    void **blocks = calloc(MOST, sizeof *blocks);
    comm c;

    assert_non_null(blocks);
    choose_device(2);
    size_t before = free_bytes();
    size_t count = fill(blocks, MOST, 2 << 20);
    assert_in_range(count, 1, MOST - 1);
    size_t filled = free_bytes();
    assert_int_equal(api.init_rank(&c, 2, id, 0), CUDA_ERROR);
    assert_null(c);
    assert_string_equal(api.error_string(CUDA_ERROR), "unhandled cuda error");
    assert_string_equal(api.last_error(NULL), "Cuda failure 2 'out of memory'");
    assert_int_equal(api.init_all(&c, 1, (const int[]){2}), CUDA_ERROR);
    assert_null(c);
    assert_int_equal(free_bytes(), filled);
    while (count)
        assert_int_equal(api.mem_free(blocks[--count]), 0);
    assert_int_equal(free_bytes(), before);
    assert_int_equal(api.mem_free(blocks[0]), INVALID_ARGUMENT);
    assert_int_equal(api.mem_free(NULL), 0);
    free(blocks);
}

static size_t taken_mib(size_t *before)
{
    const size_t taken = *before - free_bytes();

    *before -= taken;
    return taken >> 20;
}

/* What two H200s took, in the order of the operations. `kernels`: this process did not send. */
static void check_parts(size_t any, size_t collective, size_t send, size_t receive, size_t kernels)
{
    const struct unique_id id = {{7}};
    size_t before = free_bytes();
    comm c;

    assert_int_equal(api.init_rank(&c, 2, id, 0), 0);
    assert_int_equal(taken_mib(&before), any);
    assert_int_equal(api.send(NULL, 1, 7, 1, c, NULL), 0);
    assert_int_equal(taken_mib(&before), send + kernels);
    for (int i = 0; i < 2; i++) /* the second time nothing */
        assert_int_equal(api.all_reduce(NULL, NULL, 1, 7, 0, c, NULL), 0);
    assert_int_equal(taken_mib(&before), collective);
    assert_int_equal(api.receive(NULL, 1, 7, 1, c, NULL), 0);
    assert_int_equal(taken_mib(&before), receive);
    assert_int_equal(api.destroy(c), 0);
}

TEST(parts_of_communicators)
{
    const struct unique_id id = {{7}};
    comm alone;

    choose_device(1);
    check_parts(198, 286, 64, 320, 62);
    setenv("NCCL_BUFFSIZE", "16777216", 1);
    check_parts(198, 574, 64, 704, 0);
    setenv("NCCL_BUFFSIZE", "1048576", 1);
    check_parts(198, 238, 64, 256, 0);
    unsetenv("NCCL_BUFFSIZE");
    setenv("NCCL_MAX_NCHANNELS", "8", 1);
    check_parts(54, 94, 16, 80, 0);
    size_t before = free_bytes();
    assert_int_equal(api.init_rank(&alone, 1, id, 0), 0);
    assert_int_equal(taken_mib(&before), 52);
    assert_int_equal(api.destroy(alone), 0);
    unsetenv("NCCL_MAX_NCHANNELS");
    setenv("NCCL_MIN_NCHANNELS", "32", 1);
    check_parts(198, 382, 64, 320, 0);
    unsetenv("NCCL_MIN_NCHANNELS");
}

TEST(memory_in_granules)
{
    void *memory;

    choose_device(0);
    size_t before = free_bytes();
    assert_int_equal(api.mem_alloc(&memory, (2 << 20) + 1), 0);
    assert_int_equal(before - free_bytes(), 4 << 20);
    assert_int_equal(api.mem_free(memory), 0);
    assert_int_equal(api.mem_alloc(&memory, 0), INVALID_ARGUMENT);
    assert_null(memory);
    assert_int_equal(api.mem_alloc(&memory, SIZE_MAX), CUDA_ERROR);
    assert_null(memory);
}

/* Like PyTorch in init_process_group(device_id=torch.device("cuda:0")), if nothing used the device
 * before. */
TEST(a_communicator_as_the_first_call)
{
    struct unique_id id = {{0}};
    comm made = NULL;
    int device = -1;

    assert_int_equal(api.set_current(NULL), 0);
    assert_int_equal(api.init_rank(&made, 2, id, 1), 0);
    assert_int_equal(api.current_device(&device), 0);
    assert_int_equal(device, 0);
    assert_int_equal(api.destroy(made), 0);
}

int main(void)
{
    return run_tests_of_file(load, NULL);
}
