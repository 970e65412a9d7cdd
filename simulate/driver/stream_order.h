/* When an event counts as complete.
 *
 * PyTorch's allocator hands out a block that other streams used (record_stream) when the events
 * behind these uses are complete. On a GPU the host runs ahead of the device, so wall-clock time
 * decides. Here the order of calls decides:
 *
 *   late (the default)  an event is complete when the host has waited for something behind it, in
 *                       its stream or in a stream that waited for it; or when a stream behind it
 *                       has got as many launches as CUDA queues
 *   early               every event is complete at once (MEMTRACE_SIMULATED_EARLY_RELEASE=1)
 *
 * The caller serializes all calls. */
#ifndef MT_STREAM_ORDER_H
#define MT_STREAM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_ORDERED_STREAMS = 64, /* further streams share the last place */
    SIM_ORDERED_DEVICES = 8,
    SIM_EARLIER_CLOCKS = 8
};

/* For each stream, the last mark that is certainly behind the host or the stream that has this
 * clock. Marks are numbered in the order of calls. */
struct sim_clock {
    uint64_t marks[SIM_ORDERED_STREAMS];
};

/* State of an event; initially zero. */
struct sim_event_order {
    bool is_pending; /* recorded, and not known to be complete */
    bool is_counted;
    unsigned place;
    struct sim_clock clock;           /* of its stream when it was recorded */
    uint64_t recorded_at, queried_at; /* launches of the process until then */
    unsigned queries;                 /* since the last launch */
};

/* State of a stream; initially zero. */
struct sim_stream_order {
    unsigned place; /* plus 1; 0 = none yet */
    unsigned launches;
    bool has_unmarked; /* work after the last mark and the last wait of the host */
    struct sim_clock now, earlier[SIM_EARLIER_CLOCKS]; /* earlier: stream_order.c */
    struct sim_event_order last_queried; /* behind everything at the last query of the stream */
};

void sim_order_record(struct sim_stream_order *stream, struct sim_event_order *event);
void sim_order_wait(struct sim_stream_order *stream, const struct sim_event_order *event);
void sim_order_launch(struct sim_stream_order *stream);

/* The host waits. */
void sim_order_finish_stream(struct sim_stream_order *stream);
void sim_order_finish_event(struct sim_event_order *event);
void sim_order_finish_ended(int device); /* for the streams of a device that were destroyed */

/* The stream of a device is destroyed; what is in it goes on. */
void sim_order_end_stream(struct sim_stream_order *stream, int device);

/* Who queries an event. */
enum sim_asker {
    SIM_ASKER_ALLOCATOR, /* PyTorch's allocator of device memory. It never waits in a loop */
    SIM_ASKER_LIBRARY,   /* PyTorch's allocator of pinned memory, process groups */
    SIM_ASKER_PROGRAM
};

/* Returns the asker whose code contains this address. */
enum sim_asker sim_asker_at(const void *code);

/* Return true if a query must report that the event, or the work of the stream, is not complete. */
bool sim_order_is_pending(struct sim_event_order *event, enum sim_asker asker);
bool sim_order_stream_is_pending(struct sim_stream_order *stream, enum sim_asker asker);

#endif
