/* Checks of the driver, CUPTI and NVML; see probe.h. Nothing is linked: what is
 * not on the machine is an answer, not an error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_copies.h"
#include "probe.h"
#include "probe_cupti.h"
#include "program_kind.h"
#include "units.h"

enum {
    CUPTI_TAKEN = 39,           /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    CUPTI_NOT_INITIALIZED = 15, /* newer than the driver */
    NVML_NAME_BYTES = 96
};

/* POSIX has functions in void pointers, C has not. */
static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    memcpy(function, &address, sizeof address);
}

/* ---- driver --------------------------------------------------------------- */

struct driver {
    void *library;
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*name)(char *name, int length, int device);
    int (*total)(size_t *bytes, int device);
    int (*error_text)(int error, const char **text);
};

static bool open_driver(struct driver *driver)
{
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver->library)
        return false;
    find(driver->library, "cuInit", &driver->init);
    find(driver->library, "cuDriverGetVersion", &driver->version);
    find(driver->library, "cuDeviceGetCount", &driver->count);
    find(driver->library, "cuDeviceGetName", &driver->name);
    find(driver->library, "cuDeviceTotalMem_v2", &driver->total);
    find(driver->library, "cuGetErrorString", &driver->error_text);
    return driver->init && driver->version && driver->count;
}

static void describe_devices(const struct driver *driver, struct mt_probe_result *result,
                             int version)
{
    char name[128] = "", bytes[MT_UNITS_TEXT];
    size_t total = 0;
    int count = 0;

    driver->count(&count);
    if (driver->name)
        driver->name(name, sizeof name, 0);
    if (driver->total)
        driver->total(&total, 0);
    if (!count)
        mt_probe_set(result, MT_PROBE_MISSING, "look at CUDA_VISIBLE_DEVICES",
                     "CUDA %d.%d, but no GPU", version / 1000, version % 1000 / 10);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "CUDA %d.%d, %d GPU%s: %s, %s%s", version / 1000,
                     version % 1000 / 10, count, count == 1 ? "" : "s", name,
                     mt_format_bytes(bytes, total), count == 1 ? "" : ", ...");
}

void mt_probe_driver(struct mt_probe_result *result)
{
    struct driver driver;
    const char *text = NULL;
    int error, version = 0;

    if (!open_driver(&driver)) {
        mt_probe_set(result, MT_PROBE_MISSING,
                     "install the NVIDIA driver; a container needs --gpus all",
                     "libcuda.so.1 is not on this machine");
        return;
    }
    error = driver.init(0);
    if (error && driver.error_text)
        driver.error_text(error, &text);
    driver.version(&version);
    if (error)
        mt_probe_set(result, MT_PROBE_MISSING, "nvidia-smi tells more", "cuInit fails: %s (%d)",
                     text ? text : "unknown error", error);
    else
        describe_devices(&driver, result, version);
}

/* ---- CUPTI ---------------------------------------------------------------- */

struct subscriber_params {
    size_t struct_size;
    const char *name;
    char *old_name;
    size_t old_name_size;
};

struct cupti {
    int (*version)(uint32_t *version);
    int (*subscribe)(void **handle, void (*callback)(void), void *user);
    int (*subscribe_v2)(void **handle, void (*callback)(void), void *user,
                        struct subscriber_params *params);
    int (*unsubscribe)(void *handle);
    int (*error_text)(int error, const char **text);
};

static void nothing(void) {}

static void describe_holder(const struct cupti *cupti, char *holder, size_t capacity)
{
    struct subscriber_params params = {sizeof params, "memtrace", holder, capacity};
    void *handle = NULL;

    snprintf(holder, capacity, "another tool");
    if (cupti->subscribe_v2)
        (void)cupti->subscribe_v2(&handle, nothing, NULL, &params);
    holder[capacity - 1] = '\0';
}

/* "13.0"; CUPTI's versions before 12 are bare numbers (18 = 11.8). */
static void format_version(char *text, size_t capacity, uint32_t version)
{
    if (version >= 100000)
        snprintf(text, capacity, "%u.%u", version / 10000, version % 10000 / 100);
    else
        snprintf(text, capacity, "API %u", version);
}

static void try_to_subscribe(const struct cupti *cupti, struct mt_cupti_answer *answer)
{
    const char *text = NULL;
    void *handle = NULL;
    int error = cupti->subscribe(&handle, nothing, NULL);

    answer->error = error;
    if (!error) {
        answer->state = MT_CUPTI_FREE;
        if (cupti->unsubscribe)
            cupti->unsubscribe(handle);
        return;
    }
    answer->state = error == CUPTI_TAKEN             ? MT_CUPTI_TAKEN
                    : error == CUPTI_NOT_INITIALIZED ? MT_CUPTI_TOO_NEW
                                                     : MT_CUPTI_REFUSES;
    if (error == CUPTI_TAKEN)
        describe_holder(cupti, answer->holder, sizeof answer->holder);
    if (cupti->error_text && cupti->error_text(error, &text) == 0 && text)
        snprintf(answer->reason, sizeof answer->reason, "%s", text);
}

static void describe_copy(void *library, const struct cupti *cupti, const char *name,
                          struct mt_cupti_answer *answer)
{
    uint32_t version = 0;
    Dl_info where;

    snprintf(answer->path, sizeof answer->path, "%s",
             dladdr(dlsym(library, "cuptiSubscribe"), &where) && where.dli_fname ? where.dli_fname
                                                                                 : name);
    cupti->version(&version);
    format_version(answer->version, sizeof answer->version, version);
}

/* True ends the search: a copy that works. One that does not is closed, or the
 * next one of its name would be the same. */
static bool try_copy(void *context, const char *name)
{
    struct mt_cupti_answer *answer = context;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct cupti cupti;

    if (!library)
        return false;
    find(library, "cuptiGetVersion", &cupti.version);
    find(library, "cuptiSubscribe", &cupti.subscribe);
    find(library, "cuptiSubscribe_v2", &cupti.subscribe_v2);
    find(library, "cuptiUnsubscribe", &cupti.unsubscribe);
    find(library, "cuptiGetResultString", &cupti.error_text);
    if (cupti.version && cupti.subscribe) {
        describe_copy(library, &cupti, name, answer);
        try_to_subscribe(&cupti, answer);
    }
    if (answer->state != MT_CUPTI_FREE)
        dlclose(library);
    return answer->state == MT_CUPTI_FREE;
}

void mt_cupti_try(const char *interpreter, struct mt_cupti_answer *answer)
{
    struct driver driver;

    memset(answer, 0, sizeof *answer);
    answer->state = MT_CUPTI_NO_DRIVER;
    if (!open_driver(&driver) || driver.init(0))
        return;
    answer->state = MT_CUPTI_NOT_FOUND;
    mt_cupti_copies(interpreter, try_copy, answer);
}

static const char fallback[] = "; the driver's functions are wrapped instead";

static void describe_cupti(const struct mt_cupti_answer *answer, struct mt_probe_result *result)
{
    switch (answer->state) {
    case MT_CUPTI_NO_DRIVER:
        mt_probe_set(result, MT_PROBE_MISSING, "", "not tried without a driver");
        break;
    case MT_CUPTI_NOT_FOUND:
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "install the CUDA toolkit or the vendor's cupti wheel, or set MEMTRACE_CUPTI",
                     "no libcupti found%s", fallback);
        break;
    case MT_CUPTI_FREE:
        mt_probe_set(result, MT_PROBE_OK, "", "%s, version %s, free", answer->path,
                     answer->version);
        break;
    case MT_CUPTI_TAKEN:
        mt_probe_set(result, MT_PROBE_DEGRADED, "end the other tool, or do not run memtrace in it",
                     "%s holds it: only one tool at a time%s", answer->holder, fallback);
        break;
    case MT_CUPTI_TOO_NEW:
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "update the driver, or set MEMTRACE_CUPTI to an older libcupti",
                     "%s, version %s, is newer than the driver%s", answer->path, answer->version,
                     fallback);
        break;
    case MT_CUPTI_REFUSES:
        mt_probe_set(result, MT_PROBE_DEGRADED, "", "%s, version %s, refuses: %s (%d)%s",
                     answer->path, answer->version, answer->reason, answer->error, fallback);
        break;
    }
}

void mt_probe_cupti(struct mt_probe_result *result)
{
    struct mt_cupti_answer answer;
    struct mt_program python;

    mt_program_look("python3", &python);
    mt_cupti_try(mt_program_runs(&python) ? python.path : NULL, &answer);
    describe_cupti(&answer, result);
}

/* ---- NVML ----------------------------------------------------------------- */

void mt_probe_nvml(struct mt_probe_result *result)
{
    int (*init)(void), (*count)(unsigned *count), (*at)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, void *infos);
    int (*driver)(char *text, unsigned length);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
    char version[NVML_NAME_BYTES] = "?";
    unsigned devices = 0, running = 0;
    int error;

    if (!library) {
        mt_probe_set(result, MT_PROBE_DEGRADED, "a container needs the driver capability 'utility'",
                     "libnvidia-ml.so.1 is not on this machine: no samples of the whole device");
        return;
    }
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlDeviceGetCount_v2", &count);
    find(library, "nvmlDeviceGetHandleByIndex_v2", &at);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &processes);
    find(library, "nvmlSystemGetDriverVersion", &driver);
    error = init ? init() : -1;
    if (error) {
        mt_probe_set(result, MT_PROBE_DEGRADED, "nvidia-smi tells more", "nvmlInit fails (%d)",
                     error);
        return;
    }
    if (driver)
        driver(version, sizeof version);
    if (count)
        count(&devices);
    error =
        at && processes && devices && at(0, &device) == 0 ? processes(device, &running, NULL) : -1;
    if (error == 0 || error == 7) /* 7: there are some, no room for them */
        mt_probe_set(result, MT_PROBE_OK, "", "driver %.90s, %u GPU%s, by process", version,
                     devices, devices == 1 ? "" : "s");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "driver %.90s, %u GPU%s; not by process (%d): samples are of the whole device",
                     version, devices, devices == 1 ? "" : "s", error);
}
