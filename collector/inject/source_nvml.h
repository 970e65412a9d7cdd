/* Samples the memory of this process on each device as the driver reports it, on the writer
 * thread. Only this number includes the memory that CUDA itself takes. libnvidia-ml.so.1 is
 * loaded after the process has started CUDA. */
#ifndef MT_INJECT_SOURCE_NVML_H
#define MT_INJECT_SOURCE_NVML_H

#include "inject_source.h"

extern const struct mt_inject_source mt_nvml_source;

/* Call it when a context was created on the CUDA device, or a module was loaded (-1: unknown
 * device). The next pass of the writer takes a sample regardless of sample_hz. Any thread, any
 * lock, signal handlers: one atomic operation. */
void mt_nvml_sample_soon(int device);

/* Call it when the program starts CUDA: saves the variables that determine the order of devices.
 * The driver reads them in cuInit, so the call must be there (InitializeInjection). The first
 * call counts; without one, the environment at the start of the process counts. Reads the
 * environment: do not call it from the writer. */
void mt_nvml_note_environment(void);

#endif
