/* NVML knows processes by their ids in the initial pid namespace or, with newer drivers, in the
 * namespace of this process. If a process that has a context is never listed, its share cannot be
 * known. The sample is then the use of the whole device, and `sources` of the trace has
 * "nvml-device" instead of "nvml". */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "inject_source.h"
#include "monotonic_clock.h"
#include "settings.h"
#include "source_nvml.h"

/* The part of libnvidia-ml.so.1 that the sampler uses: its stable C interface, declared here so
 * that no NVIDIA header is needed. Functions return 0 on success. */

enum { NVML_OK = 0, NVML_INSUFFICIENT_SIZE = 7 };

/* The value of a field that the driver cannot determine. */
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version; /* NVML_MEMORY_V2 */
    uint64_t total, reserved, free, used;
};
#define NVML_MEMORY_V2 (uint32_t)(sizeof(struct nvml_memory_v2) | 2u << 24)

/* The structure of the second and later versions of the call. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

/* X(member, parameters, name, older name). The first name that the library has is used. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                     \
    X(count, (uint32_t * count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                    \
    X(by_index, (uint32_t index, void **device), "nvmlDeviceGetHandleByIndex_v2",                  \
      "nvmlDeviceGetHandleByIndex")                                                                \
    X(by_uuid, (const char *uuid, void **device), "nvmlDeviceGetHandleByUUID", "")                 \
    X(uuid, (void *device, char *uuid, uint32_t capacity), "nvmlDeviceGetUUID", "")                \
    X(name, (void *device, char *name, uint32_t capacity), "nvmlDeviceGetName", "")                \
    X(mig_mode, (void *device, uint32_t *current, uint32_t *pending), "nvmlDeviceGetMigMode", "")  \
    X(memory, (void *device, struct nvml_memory *memory), "nvmlDeviceGetMemoryInfo", "")           \
    X(memory_v2, (void *device, struct nvml_memory_v2 *memory), "nvmlDeviceGetMemoryInfo_v2", "")  \
    X(processes, (void *device, uint32_t *count, struct nvml_process *processes),                  \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")

#define NVML_MEMBER(member, parameters, name, older) int(*member) parameters;

struct nvml_functions {
    NVML_FUNCTIONS(NVML_MEMBER)
};
#undef NVML_MEMBER

struct answer {
    const struct mt_nvml_device *devices;
    uint32_t count; /* number of devices */
    struct mt_nvml_cuda_device *places;
    uint32_t place_count;
    const char *why;
};

/* Devices of equal speed stay in the order of the bus. */
static bool is_bus_order(const struct answer *answer, const char *order)
{
    if (order && !strcmp(order, "PCI_BUS_ID"))
        return true;
    for (uint32_t i = 1; i < answer->count; i++)
        if (strcmp(answer->devices[i].name, answer->devices[0].name))
            return false;
    return true;
}

/* Returns false if the device is already in the list. */
static bool add(struct answer *answer, uint32_t index, const char *instance, size_t length)
{
    for (uint32_t i = 0; i < answer->place_count; i++)
        if (answer->places[i].index == index && !instance)
            return false;
    if (answer->place_count == MT_NVML_DEVICES)
        return true;
    struct mt_nvml_cuda_device *place = &answer->places[answer->place_count++];
    *place = (struct mt_nvml_cuda_device){.index = index};
    if (instance)
        memcpy(place->instance, instance,
               length < sizeof place->instance ? length : sizeof place->instance - 1);
    else if (answer->devices[index].split)
        answer->why = "a device is split into instances, and CUDA_VISIBLE_DEVICES does not say "
                      "which one";
    return true;
}

/* Returns the device whose UUID begins with the text, UINT32_MAX if there is none or several. */
static uint32_t find_uuid(const struct answer *answer, const char *text, size_t length)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < answer->count; i++)
        if (!strncmp(answer->devices[i].uuid, text, length)) {
            if (found != UINT32_MAX)
                return UINT32_MAX;
            found = i;
        }
    return found;
}

static uint32_t find_number(const char *text, size_t length)
{
    char digits[16], *end;

    if (!length || length >= sizeof digits)
        return UINT32_MAX;
    memcpy(digits, text, length);
    digits[length] = 0;
    unsigned long number = strtoul(digits, &end, 10);
    return *end || digits[0] == '-' || number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* Adds one item of the list. Returns false at the first invalid item; the rest is ignored. */
static bool add_item(struct answer *answer, const char *item, size_t length, bool bus_order)
{
    uint32_t index;

    if (length > 4 && !strncmp(item, "MIG-", 4))
        return add(answer, UINT32_MAX, item, length);
    if (length > 4 && !strncmp(item, "GPU-", 4)) {
        index = find_uuid(answer, item, length);
        return index < answer->count && add(answer, index, NULL, 0);
    }
    index = find_number(item, length);
    if (index >= answer->count)
        return false;
    if (!bus_order)
        answer->why = "the devices differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID";
    return add(answer, index, NULL, 0);
}

static void read_list(struct answer *answer, const char *list, bool bus_order)
{
    for (size_t length;; list += length + 1) {
        size_t item;
        list += strspn(list, " \t");
        length = strcspn(list, ",");
        for (item = length; item && (list[item - 1] == ' ' || list[item - 1] == '\t'); item--)
            ;
        if (!add_item(answer, list, item, bus_order) || !list[length])
            return;
    }
}

uint32_t mt_nvml_order(const struct mt_nvml_device *devices, uint32_t count, const char *visible,
                       const char *order, struct mt_nvml_cuda_device places[MT_NVML_DEVICES],
                       const char **why)
{
    struct answer answer = {.devices = devices, .count = count, .places = places};
    bool bus_order = is_bus_order(&answer, order);

    if (visible)
        read_list(&answer, visible, bus_order);
    for (uint32_t i = 0; i < count && !visible; i++)
        add(&answer, i, NULL, 0);
    if (!visible && !bus_order && !answer.why)
        answer.why = "the devices differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID";
    *why = answer.why;
    return answer.why ? 0 : answer.place_count;
}

enum { MAX_PROCESSES = 1024, MAX_ENVIRONMENT_BYTES = 1024, END_WAIT_MS = 200 };

#define SECOND_NS  INT64_C(1000000000)
#define TIMEOUT_NS (2 * SECOND_NS) /* to wait until a process that has a context is listed */

struct device {
    void *handle;
    int64_t told_ns; /* time of the last recorded sample */
    uint64_t used_bytes, free_bytes;
    bool has_context, told;
};

enum state { LOOKING, SAMPLING, GIVEN_UP };

static struct {
    enum state state;
    bool device_wide, told;
    struct nvml_functions call;
    struct device devices[MT_NVML_DEVICES]; /* by CUDA's number */
    uint32_t count;
    uint32_t pid;
    int64_t next_ns;
    int64_t context_ns; /* time of the first context, 0 = none yet */
    bool listed;        /* the driver has listed our pid */
    const char *why;    /* reason why there can be no samples, NULL = there is none */
} nvml;

/* Bit n: a sample of CUDA's device n is wanted. The last bit: samples of all devices. */
static _Atomic uint64_t wanted;
static _Atomic bool busy, ending;
static _Atomic bool noted; /* the environment is stored, as it was at cuInit */

static struct {
    char visible[MAX_ENVIRONMENT_BYTES], order[MAX_ENVIRONMENT_BYTES];
    bool has_visible, has_order;
} environment;

void mt_nvml_sample_soon(int device)
{
    unsigned bit = device < 0 || device >= MT_NVML_DEVICES - 1 ? 63u : (unsigned)device;

    atomic_fetch_or_explicit(&wanted, UINT64_C(1) << bit, memory_order_relaxed);
}

static bool read_variable(const char *name, char *out)
{
    const char *value = getenv(name);

    if (value)
        snprintf(out, MAX_ENVIRONMENT_BYTES, "%s", value);
    return value != NULL;
}

static void read_environment(void)
{
    environment.has_visible = read_variable("CUDA_VISIBLE_DEVICES", environment.visible);
    environment.has_order = read_variable("CUDA_DEVICE_ORDER", environment.order);
}

void mt_nvml_note_environment(void)
{
    if (atomic_load(&noted)) /* the writer thread may be reading it */
        return;
    read_environment();
    atomic_store_explicit(&noted, true, memory_order_release);
}

__attribute__((constructor(102))) static void note_first_environment(void)
{
    if (mt_recorder_settings->asked)
        read_environment();
}

static void *find(void *library, const char *name, const char *older)
{
    void *function = dlsym(library, name);

    return function || !older[0] ? function : dlsym(library, older);
}

static bool load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    struct nvml_functions *call = &nvml.call;

    if (!library)
        return false;
#define LOAD(member, parameters, name, older)                                                      \
    {                                                                                              \
        void *function = find(library, name, older);                                               \
        memcpy(&call->member, &function, sizeof function);                                         \
    }
    NVML_FUNCTIONS(LOAD)
#undef LOAD
    return call->init && call->count && call->by_index && call->uuid && call->name &&
           (call->memory || call->memory_v2) && call->init() == NVML_OK;
}

/* Bytes of the device that CUDA can use, free bytes, and all bytes in use. */
static bool read_memory(void *handle, struct nvml_memory *memory)
{
    struct nvml_memory_v2 newer = {.version = NVML_MEMORY_V2};

    if (nvml.call.memory_v2 && nvml.call.memory_v2(handle, &newer) == NVML_OK) {
        *memory = (struct nvml_memory){newer.total - newer.reserved, newer.free, newer.used};
        return newer.reserved <= newer.total;
    }
    return nvml.call.memory && nvml.call.memory(handle, memory) == NVML_OK;
}

static uint32_t list_devices(struct mt_nvml_device *devices, void **handles)
{
    uint32_t count = 0, split = 0, pending = 0;

    if (nvml.call.count(&count) != NVML_OK)
        return 0;
    if (count > MT_NVML_DEVICES)
        count = MT_NVML_DEVICES;
    for (uint32_t i = 0; i < count; i++) {
        devices[i] = (struct mt_nvml_device){0};
        if (nvml.call.by_index(i, &handles[i]) != NVML_OK)
            return 0;
        (void)nvml.call.uuid(handles[i], devices[i].uuid, MT_NVML_TEXT);
        (void)nvml.call.name(handles[i], devices[i].name, MT_NVML_TEXT);
        devices[i].split = nvml.call.mig_mode &&
                           nvml.call.mig_mode(handles[i], &split, &pending) == NVML_OK && split;
    }
    return count;
}

static void *handle_of(const struct mt_nvml_cuda_device *place, void *const *handles)
{
    void *handle = NULL;

    if (!place->instance[0])
        return handles[place->index];
    if (!nvml.call.by_uuid || nvml.call.by_uuid(place->instance, &handle) != NVML_OK)
        return NULL;
    return handle;
}

static void tell_device(uint32_t number)
{
    void *handle = nvml.devices[number].handle;
    char name[MT_NVML_TEXT] = "";
    struct nvml_memory memory;

    (void)nvml.call.name(handle, name, sizeof name);
    if (read_memory(handle, &memory))
        mt_collect_device(number, memory.total, name);
}

/* Returns false if there is none, or if there can be no samples for another reason. */
static bool find_devices(void)
{
    uint32_t found = 0;
    static struct mt_nvml_device devices[MT_NVML_DEVICES];
    static struct mt_nvml_cuda_device places[MT_NVML_DEVICES];
    void *handles[MT_NVML_DEVICES];

    nvml.count = mt_nvml_order(devices, list_devices(devices, handles),
                               environment.has_visible ? environment.visible : NULL,
                               environment.has_order ? environment.order : NULL, places, &nvml.why);
    for (uint32_t i = 0; i < nvml.count; i++) {
        nvml.devices[i].handle = handle_of(&places[i], handles);
        if (!nvml.devices[i].handle)
            continue;
        tell_device(i);
        found++;
    }
    return found || nvml.why;
}

/* Our share of a device, 0 if this process is not listed. */
static uint64_t used_by_us(void *handle)
{
    static struct nvml_process processes[MAX_PROCESSES];
    uint32_t count = MAX_PROCESSES;

    if (!nvml.call.processes || nvml.call.processes(handle, &count, processes) != NVML_OK)
        return 0;
    for (uint32_t i = 0; i < count && i < MAX_PROCESSES; i++)
        if (processes[i].pid == nvml.pid && processes[i].used_bytes != NVML_NOT_AVAILABLE)
            return processes[i].used_bytes;
    return 0;
}

static void emit(uint32_t number, uint64_t used_bytes, uint64_t free_bytes)
{
    struct mt_raw_event event = {.kind = MT_EVENT_MEMORY_SAMPLE,
                                 .heap = MT_RAW_DRIVER,
                                 .device = (uint8_t)number,
                                 .size_bytes = used_bytes,
                                 .aux_bytes = free_bytes};

    mt_collect_emit(&event);
}

/* Equal values are recorded once per second. */
static void tell(uint32_t number, uint64_t used_bytes, uint64_t free_bytes, int64_t now_ns)
{
    struct device *device = &nvml.devices[number];

    if (device->told && device->used_bytes == used_bytes && device->free_bytes == free_bytes &&
        now_ns - device->told_ns < SECOND_NS)
        return;
    device->told = true;
    device->told_ns = now_ns;
    device->used_bytes = used_bytes;
    device->free_bytes = free_bytes;
    emit(number, used_bytes, free_bytes);
}

static void sample(uint32_t number, int64_t now_ns)
{
    struct device *device = &nvml.devices[number];
    struct nvml_memory memory;

    if (!device->handle || !read_memory(device->handle, &memory))
        return;
    uint64_t used_bytes = used_by_us(device->handle);
    nvml.listed |= used_bytes > 0;
    if (nvml.device_wide && device->has_context)
        used_bytes = memory.used;
    if (used_bytes || device->told) /* nothing for a device that was never used */
        tell(number, used_bytes, memory.free, now_ns);
}

static void tell_source(void)
{
    if (nvml.told)
        return;
    nvml.told = true;
    mt_collect_fact("sources", nvml.device_wide ? "nvml-device" : "nvml");
}

static void sample_all(int64_t now_ns)
{
    for (uint32_t i = 0; i < nvml.count; i++)
        sample(i, now_ns);
    if (nvml.listed)
        nvml.device_wide = false;
    else if (nvml.context_ns && now_ns - nvml.context_ns > TIMEOUT_NS)
        nvml.device_wide = true;
    if (nvml.listed || nvml.device_wide)
        tell_source();
}

/* Returns whether CUDA has started. Until then the program may change which devices are visible. */
static bool has_begun(void)
{
    return atomic_load_explicit(&noted, memory_order_acquire) ||
           atomic_load_explicit(&wanted, memory_order_relaxed);
}

static bool has_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (driver)
        dlclose(driver);
    return driver != NULL;
}

/* Runs at exit, before any library is finalized: the sampler stops using NVML. A call in progress
 * may take long; the wait for it is bounded. */
static void process_ends(void)
{
    const struct timespec step = {0, 1000000};

    atomic_store(&ending, true);
    for (int i = 0; i < END_WAIT_MS && atomic_load(&busy); i++)
        nanosleep(&step, NULL);
}

static void start_sampling(void)
{
    static bool registered;

    nvml.pid = (uint32_t)getpid();
    if (!registered)
        registered = atexit(process_ends) == 0;
    if (!registered || !load())
        nvml.why = "NVML (libnvidia-ml.so.1) cannot be used; use --sample-hz 0 to record without "
                   "samples";
    else if (!find_devices())
        nvml.why = "NVML reports none of the devices that the program sees";
    nvml.state = SAMPLING;
}

/* Missing samples matter only to a process that uses a device. */
static void give_up(void)
{
    static bool once;

    mt_collect_not_recorded(&once, "the memory of the process is not sampled: %s", nvml.why);
    nvml.state = GIVEN_UP;
}

static void note_contexts(uint64_t devices, int64_t now_ns)
{
    bool all = devices >> 63;

    for (uint32_t i = 0; i < nvml.count; i++)
        nvml.devices[i].has_context |= all || (devices >> i & 1);
    if (!nvml.context_ns)
        nvml.context_ns = now_ns;
}

static void look(void)
{
    if (nvml.state == LOOKING && has_begun() && has_driver())
        start_sampling();
}

static void pass(void)
{
    int64_t now_ns = (int64_t)mt_now_ns();

    look();
    if (nvml.state != SAMPLING || mt_collect_is_idle())
        return;
    uint64_t devices = atomic_exchange_explicit(&wanted, 0, memory_order_relaxed);
    if (devices && nvml.why) {
        give_up();
        return;
    }
    if (devices)
        note_contexts(devices, now_ns);
    if (!devices && now_ns < nvml.next_ns)
        return;
    nvml.next_ns = now_ns + SECOND_NS / mt_recorder_settings->sample_hz;
    sample_all(now_ns);
}

static void poll(void)
{
    if (!mt_recorder_settings->sample_hz || nvml.state == GIVEN_UP || !mt_collect_enter())
        return;
    atomic_store(&busy, true);
    if (!atomic_load(&ending))
        pass();
    atomic_store(&busy, false);
    mt_collect_leave();
}

/* A process may end before the first pass, or between its first context and the next pass. The list
 * of what is not recorded must not depend on that. */
static void stop(void)
{
    if (!mt_recorder_settings->sample_hz || nvml.state == GIVEN_UP ||
        !atomic_load_explicit(&wanted, memory_order_relaxed) || !mt_collect_enter())
        return;
    atomic_store(&busy, true);
    if (!atomic_load(&ending))
        look();
    atomic_store(&busy, false);
    if (nvml.state == SAMPLING && nvml.why)
        give_up();
    mt_collect_leave();
}

/* The parent's library refers to the parent's process. */
static void forked(void)
{
    memset(&nvml, 0, sizeof nvml);
    atomic_store_explicit(&wanted, 0, memory_order_relaxed);
    atomic_store(&busy, false);
    atomic_store(&noted, false);
}

const struct mt_inject_source mt_nvml_source = {
    .name = "nvml", .poll = poll, .stop = stop, .forked = forked};
