/* Check of NVML; see probe.h. */
#include <dlfcn.h>

#include "driver_library.h"
#include "probe_result.h"

enum { NVML_NAME_BYTES = 96, NVML_NO_ROOM = 7 };

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
    mt_find_function(library, "nvmlInit_v2", &init);
    mt_find_function(library, "nvmlDeviceGetCount_v2", &count);
    mt_find_function(library, "nvmlDeviceGetHandleByIndex_v2", &at);
    mt_find_function(library, "nvmlDeviceGetComputeRunningProcesses_v3", &processes);
    mt_find_function(library, "nvmlSystemGetDriverVersion", &driver);
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
    if (error == 0 || error == NVML_NO_ROOM)
        mt_probe_set(result, MT_PROBE_OK, "", "driver %.90s, %u GPU%s, by process", version,
                     devices, devices == 1 ? "" : "s");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "driver %.90s, %u GPU%s; not by process (%d): samples are of the whole device",
                     version, devices, devices == 1 ? "" : "s", error);
}
