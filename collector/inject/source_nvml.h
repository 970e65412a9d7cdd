/* Samples the memory of this process on each device, as NVML reports it. Runs on the writer thread.
 * Only this number includes the memory that CUDA itself uses. libnvidia-ml.so.1 is loaded after the
 * process has started CUDA. */
#ifndef MT_INJECT_SOURCE_NVML_H
#define MT_INJECT_SOURCE_NVML_H

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

#endif
