/* Check of the driver; see probe.h. */
#include "driver_library.h"
#include "probe_result.h"
#include "units.h"

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
        mt_probe_set(result, MT_PROBE_MISSING, "look at CUDA_VISIBLE_DEVICES",
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
