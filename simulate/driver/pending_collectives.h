/* The moment at which PyTorch learns that a collective has ended.
 *
 * ProcessGroupNCCL keeps the tensors of an asynchronous collective until the program waits for it,
 * or until its watchdog thread, which looks every 100 ms, finds the event behind the collective
 * complete; the next collective then drops the tensors. DistributedDataParallel never waits with
 * Work::wait(), so wall-clock time would decide which of its buckets are in memory at a peak. Here
 * the count of launches decides:
 *
 *   late (the default)  the watchdog finds a collective complete 2,048 to 4,096 launches after it.
 *                       CUDA queues about 1,024 launches, and the watchdog sleeps meanwhile.
 *   early               it finds a collective complete before the next one starts
 *                       (MEMTRACE_SIMULATED_EARLY_RELEASE=1)
 *
 * A collective starts only when the watchdog has handled all that it may find complete. So what the
 * collective drops does not depend on how threads are scheduled. stream_order.h decides what other
 * threads find. */
#ifndef MT_PENDING_COLLECTIVES_H
#define MT_PENDING_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime_api.h"

/* State of a communicator; initially zero. */
struct sim_order {
    uint64_t
        sync_event; /* the event that its stream waits for before each asynchronous collective */
};

/* Call it when this thread starts a collective on `stream`. May wait for the watchdog. */
void sim_collective_starts(struct sim_order *order, cudaStream_t stream);

/* Call it when a communicator is destroyed. Its collectives are then complete. */
void sim_collectives_end(const struct sim_order *order);

/* Call them when an event is recorded, when a stream waits for it, and when it is destroyed. `id`
 * is never reused for another event. */
void sim_event_is_recorded(cudaEvent_t event, cudaStream_t stream, bool is_captured);
void sim_stream_waits(cudaStream_t stream, cudaEvent_t event, uint64_t id);
void sim_event_is_gone(cudaEvent_t event);

/* Returns true if this thread is the watchdog of a process group. */
bool sim_is_watchdog(void);

/* Returns true if memory is freed as early as any real run frees it. */
bool sim_releases_early(void);

/* Returns true if a query by this thread must report that `event` is not complete. */
bool sim_event_is_hidden(cudaEvent_t event);

/* Call it when a thread changes its capture mode. The watchdog does that before and after each
 * collective that it examines. */
void sim_watchdog_moves_on(void);

/* Call it when a kernel, a copy or a graph is launched. */
void sim_count_launch(void);

#endif
