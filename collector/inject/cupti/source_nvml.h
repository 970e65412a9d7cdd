/* Samples the memory of this process on each device, as NVML reports it. Runs on the writer thread.
 * Only this number includes the memory that CUDA itself uses. libnvidia-ml.so.1 is loaded after the
 * process has started CUDA. */
#ifndef MT_INJECT_SOURCE_NVML_H
#define MT_INJECT_SOURCE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "inject_source.h"

extern const struct mt_inject_source mt_nvml_source;

/* Call it when a context was created on the CUDA device, or a module was loaded (-1: unknown
 * device). The next pass of the writer takes a sample regardless of sample_hz. It is one atomic
 * operation, so any thread and any signal handler may call it, with any lock held. */
void mt_nvml_sample_soon(int device);

/* Call it when the program starts CUDA: saves the variables that determine the order of devices.
 * The driver reads them in cuInit, so InitializeInjection, which cuInit calls, must call this. Only
 * the first call has an effect; without one, the variables at the start of the process are used. Do
 * not call it from the writer thread, because it reads the environment. */
void mt_nvml_note_environment(void);

/* Maps CUDA's devices to NVML's. NVML numbers all devices by bus address. CUDA numbers only the
 * devices in CUDA_VISIBLE_DEVICES, in the order of that list. An index in the list refers to the
 * order of bus addresses only with CUDA_DEVICE_ORDER=PCI_BUS_ID; otherwise index 0 is the fastest
 * device. */

enum { MT_NVML_TEXT = 96, MT_NVML_DEVICES = 64 };

struct mt_nvml_device {
    char uuid[MT_NVML_TEXT], name[MT_NVML_TEXT];
    bool split; /* it is split into instances (MIG) */
};

/* One of CUDA's devices. */
struct mt_nvml_cuda_device {
    uint32_t index;              /* NVML's */
    char instance[MT_NVML_TEXT]; /* UUID of a MIG instance ("MIG-..."), or "" */
};

/* Writes CUDA's devices 0, 1, ... to `places` and returns their number. `visible` and `order` are
 * the values of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, NULL if not set. If the order cannot
 * be determined, returns 0 and sets *why to the reason; otherwise *why is NULL. */
uint32_t mt_nvml_order(const struct mt_nvml_device *devices, uint32_t count, const char *visible,
                       const char *order, struct mt_nvml_cuda_device places[MT_NVML_DEVICES],
                       const char **why);

#endif
