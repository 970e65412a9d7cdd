/* What the driver says that this process uses of each device, sampled on the
 * writer thread: memory that CUDA takes itself is in there, and nowhere else.
 * libnvidia-ml.so.1 is loaded once the process has begun with CUDA. */
#ifndef MT_INJECT_SOURCE_NVML_H
#define MT_INJECT_SOURCE_NVML_H

#include "inject_source.h"

extern const struct mt_inject_source mt_nvml_source;

/* A context was created on the CUDA device, or a module loaded (-1: not known
 * which): the next pass of the writer takes a sample, whatever sample_hz says.
 * Any thread, any lock, signal handlers: one atomic operation. */
void mt_nvml_sample_soon(int device);

/* The program begins with CUDA: takes down what decides about the order of
 * devices. To be called when the driver reads it, too: in cuInit
 * (InitializeInjection). The first call counts; without it what the process
 * started with does. Reads the environment: not from the writer. */
void mt_nvml_note_environment(void);

#endif
