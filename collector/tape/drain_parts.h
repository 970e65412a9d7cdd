/* The parts of a drain that drain.c and drain_ring.c share. */
#ifndef MT_COLLECTOR_DRAIN_PARTS_H
#define MT_COLLECTOR_DRAIN_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alive_state.h"
#include "drain.h"
#include "tape.h"
#include "tape_symbols.h"

/* The numbers of events that the writer recorded as missing after waiting for them. Their threads
 * may still deliver them. The list is short, because the writer waits two seconds before it gives
 * up a range of numbers. */
struct mt_number_range {
    uint64_t first, end;
};

struct mt_given_up {
    struct mt_number_range *ranges;
    size_t count, capacity;
};

/* Converts an event of a tape to an event of a trace: resolves its time, its device and its
 * symbols. drain.h puts events in order. */
struct mt_raw_resolver {
    struct mt_tape_symbols *symbols;  /* borrowed: definitions of the tape */
    struct mt_symbols *trace_symbols; /* borrowed */
    struct mt_clock_point first, last;
    uint64_t last_t_ns; /* no later event gets an earlier time */
    uint8_t *devices;   /* the last known device of each thread, by thread number */
    size_t device_capacity;
};

struct mt_drain {
    struct mt_tape *tape;
    struct mt_tape_symbols *symbols;
    struct mt_raw_resolver resolver;
    uint32_t *taken;    /* events passed, by slot */
    uint32_t *seen;     /* committed when this pass began: their definitions are known */
    uint64_t next_raw;  /* number of the next event */
    uint64_t end_raw;   /* numbers taken by the process when this pass began */
    uint64_t unmatched; /* events passed that were not taken from their slots (yet) */
    struct mt_given_up given_up;
    uint64_t next_seq;     /* in the trace */
    bool definitions_told; /* that there was no room for some */
    uint64_t dropped;      /* reported so far */
    uint64_t damaged;      /* events that only a damaged tape has, not reported yet */
    const struct mt_raw_event **window;
    uint32_t *threads; /* for the window: number of the thread */
    size_t window_capacity, thread_capacity;
    struct mt_alive_state *alive; /* of a ring, or while idle; else NULL */
    uint64_t part, events_before; /* as in struct mt_tape_commit */
    uint64_t part_initial;        /* initial events of the current part */
    uint64_t part_before_events;
    uint64_t part_t_ns;                /* when the current part began */
    uint64_t save_reasons, began_t_ns; /* as in struct mt_tape_commit */
    bool has_segments; /* an allocator above the driver reports its refusals itself */
};

/* drain_ring.c: follows an event that was passed on. */
enum mt_status mt_drain_ring_add(struct mt_drain *drain, const struct mt_event *event,
                                 struct mt_error *error) MT_MUST_USE;

#endif
