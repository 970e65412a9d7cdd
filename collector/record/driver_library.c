/* See driver_library.h. */
#include "driver_library.h"

#include <dlfcn.h>
#include <string.h>

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
