/* See source_device.h. A device is used if it has a primary context, or another context that CUPTI
 * reported. The driver is queried on the writer thread: when a context was reported, once per
 * second (other devices may be used later), and at the end. The driver is never initialized here,
 * and no query creates a context. */
#include "source_device.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cgroup.h"
#include "collect.h"
#include "cupti_contexts.h"
#include "io.h"
#include "monotonic_clock.h"
#include "source.h"

#define POLL_NS INT64_C(1000000000)

enum { UUID_BYTES = 16, UUID_TEXT = 48, PCI_TEXT = 32, NAME_TEXT = 256 };

struct driver {
    void *library;
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*state)(int device, unsigned *flags, int *active);
    int (*uuid)(unsigned char *uuid, int device);
    int (*pci)(char *text, int length, int device);
    int (*name)(char *text, int length, int device);
};

static uint32_t told;     /* bit n: device n */
static uint32_t contexts; /* the same, as CUPTI reported it at the last poll */
static int64_t next_ns;

static void load(const struct driver *driver, const char *name, void *function)
{
    void *found = dlsym(driver->library, name);

    memcpy(function, &found, sizeof found);
}

/* Returns false if the program has not loaded the driver. */
static bool open_driver(struct driver *driver)
{
    *driver = (struct driver){.library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)};
    if (!driver->library)
        return false;
    load(driver, "cuDeviceGetCount", &driver->count);
    load(driver, "cuDeviceGet", &driver->get);
    load(driver, "cuDevicePrimaryCtxGetState", &driver->state);
    load(driver, "cuDeviceGetUuid_v2", &driver->uuid); /* a MIG instance has its own UUID */
    if (!driver->uuid)
        load(driver, "cuDeviceGetUuid", &driver->uuid);
    load(driver, "cuDeviceGetPCIBusId", &driver->pci);
    load(driver, "cuDeviceGetName", &driver->name);
    return true;
}

/* Enters the collector only here: a CUPTI callback about a query of this library would count as
 * nested, and its event as lost. */
static void tell(unsigned number, const char *what, const char *value)
{
    char key[32];

    (void)snprintf(key, sizeof key, "device.%u.%s", number, what);
    if (!mt_collect_enter())
        return;
    mt_collect_fact(key, value);
    mt_collect_leave();
}

/* "NVIDIA H200 MIG 1g.18gb" is an instance of that profile. Returns NULL for a whole device. */
static const char *instance_of(const struct driver *driver, int device, char name[NAME_TEXT])
{
    static const char word[] = " MIG ";

    if (!driver->name || driver->name(name, NAME_TEXT, device))
        return NULL;
    name[NAME_TEXT - 1] = '\0';
    const char *at = strstr(name, word);
    return at && at[sizeof word - 1] ? at + sizeof word - 1 : NULL;
}

static void tell_uuid(const struct driver *driver, unsigned number, int device, bool is_instance)
{
    unsigned char uuid[UUID_BYTES];
    char text[UUID_TEXT];

    if (!driver->uuid || driver->uuid(uuid, device))
        return;
    int length = snprintf(text, sizeof text, is_instance ? "MIG-" : "GPU-");
    for (int i = 0; i < UUID_BYTES; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%02x",
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    tell(number, "uuid", text);
}

static void tell_pci(const struct driver *driver, unsigned number, int device)
{
    char text[PCI_TEXT] = "";

    if (!driver->pci || driver->pci(text, sizeof text, device))
        return;
    text[sizeof text - 1] = '\0';
    for (char *at = text; *at; at++)
        if (*at >= 'A' && *at <= 'F')
            *at = (char)(*at - 'A' + 'a');
    tell(number, "pci", text);
}

static bool is_used(const struct driver *driver, unsigned number, int device)
{
    unsigned flags;
    int active = 0;

    return contexts >> number & 1 ||
           (driver->state && driver->state(device, &flags, &active) == 0 && active);
}

static void tell_devices(const struct driver *driver)
{
    char name[NAME_TEXT];
    int count = 0, device;

    if (!driver->count || !driver->get || driver->count(&count))
        return;
    for (unsigned i = 0; i < (unsigned)count && i < MT_IDENTITY_DEVICES; i++) {
        if (told >> i & 1 || driver->get(&device, (int)i) || !is_used(driver, i, device))
            continue;
        told |= 1u << i;
        const char *instance = instance_of(driver, device, name);
        tell_uuid(driver, i, device, instance != NULL);
        tell_pci(driver, i, device);
        if (instance)
            tell(i, "mig", instance);
    }
}

struct thread_data {
    bool is_missing;
};

/* Returns whether its thread-local data are part of the static data, which exist for every
 * thread. */
static bool has_static_data(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

        for (; info->dlpi_phdr[i].p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_STATIC_TLS)
                return true;
    }
    return false;
}

static int look_at_library(struct dl_phdr_info *info, size_t size, void *context)
{
    struct thread_data *data = context;

    if (size < sizeof *info || !info->dlpi_name || !strstr(info->dlpi_name, "libcuda.so"))
        return 0;
    data->is_missing |= info->dlpi_tls_modid && !info->dlpi_tls_data && !has_static_data(info);
    return 0;
}

/* Returns whether a call into the driver would make the C library allocate the driver's
 * thread-local data for this thread. The C library ends the process if that allocation fails, so
 * the driver is not queried then. A thread that has used the driver has these data. */
static bool call_may_end_the_process(void)
{
    struct thread_data data = {false};

    dl_iterate_phdr(look_at_library, &data);
    return data.is_missing;
}

static void look(bool at_once)
{
    uint32_t now_contexts = mt_cupti_contexts_devices();
    int64_t now = (int64_t)mt_now_ns();
    struct driver driver;

    if (!at_once && now_contexts == contexts && now < next_ns)
        return;
    contexts = now_contexts;
    next_ns = now + POLL_NS;
    if (call_may_end_the_process() || !open_driver(&driver))
        return;
    tell_devices(&driver);
    dlclose(driver.library);
}

static void poll(void)
{
    look(false);
}

/* A process may end within its first second. */
static void stop(void)
{
    look(true);
}

static void tell_boot(void)
{
    char text[64];

    (void)mt_io_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        mt_collect_fact("boot_id", text);
}

static void start(void)
{
    char text[32];

    if (!mt_collect_enter())
        return;
    tell_boot();
    uint64_t limit_bytes = mt_cgroup_limit_bytes("");
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)limit_bytes);
    if (limit_bytes)
        mt_collect_fact("cgroup_limit_bytes", text);
    mt_collect_leave();
}

static void forked(void)
{
    told = contexts = 0;
    next_ns = 0;
}

const struct mt_inject_source mt_device_source = {
    .name = "device", .start = start, .poll = poll, .stop = stop, .forked = forked};
