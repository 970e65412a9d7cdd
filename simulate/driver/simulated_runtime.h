/* The CUDA runtime on simulated devices. Memory goes to the simulated driver, with the calls that
 * the real runtime nests; kernels and copies do nothing.
 *
 * Environment, read once:
 *   MEMTRACE_SIMULATED_EARLY_RELEASE=1  an event is complete at once (default: late, see
 *                                       stream_order.h and pending_collectives.h)
 *   MEMTRACE_SIMULATED_CONTENTS=1       copies to the host return the data of earlier small copies
 *                                       to the device (default: zeros). The data is stale where a
 *                                       kernel would have written. For programs that send numbers
 *                                       to themselves, such as DistributedDataParallel
 */
#ifndef MT_SIMULATED_RUNTIME_H
#define MT_SIMULATED_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "driver_entries.h"
#include "runtime_api.h"
#include "wheel_versions.h"

/* Initializes the driver on the first call. Returns false if it cannot be initialized. */
bool sim_driver_is_ready(void);

/* Makes the primary context of this thread's device current, as every runtime call that needs a
 * context does. Returns false and sets the error if that fails. */
bool sim_enter(void);
int sim_device(void);

/* Remembers an error for cudaGetLastError() and returns it. */
cudaError_t sim_result(int error);
cudaError_t cudaPeekAtLastError(void);

/* Returns a number from the environment; 0 if the variable is not set. */
unsigned sim_option(const char *name);

/* The capture state of streams. Work on a capturing stream becomes a node of its graph. */
bool sim_stream_capturing(cudaStream_t stream);
uint64_t sim_stream_capture(cudaStream_t stream);
void sim_stream_join_capture(cudaStream_t stream, uint64_t capture);
/* Call it when a kernel, a copy or a graph is launched. */
void sim_stream_work(cudaStream_t stream);

/* The host waits for all work of a stream, or of the current device. */
void sim_finish_stream(cudaStream_t stream);
void sim_finish_device(void);

#endif
