/* A stand-in for libnvidia-ml.so.1. It gets the memory that this process uses on a device from the
 * stand-in driver in the same process (memtrace_simulated_used_bytes). Another process uses 1 GiB
 * more. Environment:
 *   MEMTRACE_SIMULATED_DEVICES  number of devices (default 1)
 *   MEMTRACE_SIMULATED_MEMORY   bytes of each device (default 80 GiB)
 *   MEMTRACE_SIMULATED_NVML     words: "hide" omits this process from the list (as in a pid
 *                               namespace), "mixed" makes device 1 another model, "split" enables
 *                               MIG on device 0, "old" has only the first versions of calls,
 *                               "broken" fails to start */
#define _GNU_SOURCE
#include "simulated_device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, UNKNOWN = 999 };

#define RESERVED_BYTES (UINT64_C(512) << 20)
#define OTHERS_BYTES   (UINT64_C(1) << 30)

static char devices[8], instance; /* the addresses of the elements are handles */

static int is(const char *word)
{
    const char *words = getenv("MEMTRACE_SIMULATED_NVML");

    return words && strstr(words, word);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static int device_of(const void *handle)
{
    return handle == &instance ? 0 : (int)((const char *)handle - devices);
}

static uint64_t used_by_this_process(int device)
{
    void *symbol = dlsym(RTLD_DEFAULT, "memtrace_simulated_used_bytes");
    void *driver = symbol ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (driver)
        symbol = dlsym(driver, "memtrace_simulated_used_bytes");
    return symbol ? ((uint64_t(*)(int))symbol)(device) : 0;
}

EXPORT int nvmlInit_v2(void)
{
    return is("broken") ? UNKNOWN : OK;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)number("MEMTRACE_SIMULATED_DEVICES", 1);
    return OK;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = index < 8 ? &devices[index] : NULL;
    return *device ? OK : INVALID;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &instance;
    return strcmp(uuid, "MIG-1") ? NOT_FOUND : OK;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned capacity)
{
    unsigned char bytes[SIM_UUID_BYTES];
    unsigned length = (unsigned)snprintf(uuid, capacity, "GPU-");

    sim_uuid(device_of(device), bytes);
    for (int i = 0; i < SIM_UUID_BYTES && length < capacity; i++)
        length += (unsigned)snprintf(uuid + length, capacity - length, "%s%02x",
                                     i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return OK;
}

EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned capacity)
{
    snprintf(name, capacity, "%s",
             is("mixed") && device_of(device) == 1 ? "Other GPU" : sim_card()->name);
    return OK;
}

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = is("split") && device_of(device) == 0;
    return OK;
}

/* A small device has no room for other processes. */
static void fill(void *device, unsigned long long room, unsigned long long *used,
                 unsigned long long *free)
{
    *used = used_by_this_process(device_of(device)) + OTHERS_BYTES;
    if (*used > room)
        *used = room;
    *free = room - *used;
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
    if (is("old") || memory->version != 0x02000028)
        return INVALID;
    memory->total = number("MEMTRACE_SIMULATED_MEMORY", UINT64_C(80) << 30) + RESERVED_BYTES;
    memory->reserved = RESERVED_BYTES;
    fill(device, memory->total - memory->reserved, &memory->used, &memory->free);
    return OK;
}

struct memory {
    unsigned long long total, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    memory->total = number("MEMTRACE_SIMULATED_MEMORY", UINT64_C(80) << 30);
    fill(device, memory->total, &memory->used, &memory->free);
    return OK;
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned instance, compute_instance;
};

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process *processes)
{
    uint64_t used = used_by_this_process(device_of(device));
    unsigned listed = used && !is("hide") ? 2 : 1;

    if (*count < listed) {
        *count = listed;
        return TOO_SMALL;
    }
    *count = listed;
    processes[0] = (struct process){1, OTHERS_BYTES, ~0u, ~0u};
    if (listed > 1)
        processes[1] = (struct process){(unsigned)getpid(), used, ~0u, ~0u};
    return OK;
}

/* The bus number is 1 + the number of the device (runtime_device.c). */
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
    unsigned domain, bus;

    if (sscanf(address, "%x:%x:", &domain, &bus) != 2 || bus == 0)
        return INVALID;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

/* PyTorch calls it before it reports that memory ran out. There are no processes. */
EXPORT int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes)
{
    (void)device, (void)processes;
    *count = 0;
    return OK;
}

/* The part of nvmlGpuFabricInfoV_t that is written. */
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; /* 0: no fabric here */
};

/* PyTorch 2.13 and later call it before expandable segments request fabric handles from the driver,
 * and treat any error as their own. */
EXPORT int nvmlDeviceGetGpuFabricInfoV(void *device, struct fabric *fabric)
{
    (void)device;
    fabric->status = OK;
    fabric->state = 0;
    return OK;
}
