/* Checks of the driver and of NVML, which is part of it; see probe.h. */
#include <dlfcn.h>
#include <string.h>

#include "probe_driver.h"
#include "probe_result.h"
#include "units.h"

enum { NVML_NAME_BYTES = 96, NVML_NO_ROOM = 7 };

void mt_find_function(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    memcpy(function, &address, sizeof address);
}

bool mt_driver_open(struct mt_driver_library *driver)
{
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver->library)
        return false;
    mt_find_function(driver->library, "cuInit", &driver->init);
    mt_find_function(driver->library, "cuDriverGetVersion", &driver->version);
    mt_find_function(driver->library, "cuDeviceGetCount", &driver->count);
    mt_find_function(driver->library, "cuDeviceGetName", &driver->name);
    mt_find_function(driver->library, "cuDeviceTotalMem_v2", &driver->total);
    mt_find_function(driver->library, "cuGetErrorString", &driver->error_text);
    return driver->init && driver->version && driver->count;
}

static void describe_devices(const struct mt_driver_library *driver, struct mt_probe_result *result,
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
        mt_probe_set(result, MT_PROBE_MISSING, "check CUDA_VISIBLE_DEVICES",
                     "CUDA %d.%d, but no GPU", version / 1000, version % 1000 / 10);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "CUDA %d.%d, %d GPU%s: %s, %s%s", version / 1000,
                     version % 1000 / 10, count, count == 1 ? "" : "s", name,
                     mt_format_bytes(bytes, total), count == 1 ? "" : ", ...");
}

void mt_probe_driver(struct mt_probe_result *result)
{
    struct mt_driver_library driver;
    const char *text = NULL;
    int error, version = 0;

    if (!mt_driver_open(&driver)) {
        mt_probe_set(result, MT_PROBE_MISSING,
                     "install the NVIDIA driver; start a container with --gpus all",
                     "libcuda.so.1 is not on this machine");
        return;
    }
    error = driver.init(0);
    if (error && driver.error_text)
        driver.error_text(error, &text);
    driver.version(&version);
    if (error)
        mt_probe_set(result, MT_PROBE_MISSING, "run nvidia-smi for details",
                     "cuInit fails: %s (%d)", text ? text : "unknown error", error);
    else
        describe_devices(&driver, result, version);
}

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
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                     "libnvidia-ml.so.1 is not on this machine: the memory of the whole device is "
                     "not sampled");
        return;
    }
    mt_find_function(library, "nvmlInit_v2", &init);
    mt_find_function(library, "nvmlDeviceGetCount_v2", &count);
    mt_find_function(library, "nvmlDeviceGetHandleByIndex_v2", &at);
    mt_find_function(library, "nvmlDeviceGetComputeRunningProcesses_v3", &processes);
    mt_find_function(library, "nvmlSystemGetDriverVersion", &driver);
    error = init ? init() : -1;
    if (error) {
        mt_probe_set(result, MT_PROBE_DEGRADED, "run nvidia-smi for details", "nvmlInit fails (%d)",
                     error);
        return;
    }
    if (driver)
        driver(version, sizeof version);
    if (count)
        count(&devices);
    error =
        at && processes && devices && at(0, &device) == 0 ? processes(device, &running, NULL) : -1;
    if (error == 0 || error == NVML_NO_ROOM)
        mt_probe_set(result, MT_PROBE_OK, "", "driver %.90s, %u GPU%s, memory per process", version,
                     devices, devices == 1 ? "" : "s");
    else
        mt_probe_set(
            result, MT_PROBE_DEGRADED, "",
            "driver %.90s, %u GPU%s; no memory per process (%d): samples are of the whole device",
            version, devices, devices == 1 ? "" : "s", error);
}
