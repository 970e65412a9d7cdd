/* Converts an event of a tape to an event of a trace: resolves its time, its device and its
 * symbols. drain.h puts events in order. */
#ifndef MT_COLLECTOR_RAW_RESOLVER_H
#define MT_COLLECTOR_RAW_RESOLVER_H

#include "status.h"
#include "symbols.h"
#include "tape.h"
#include "tape_symbols.h"
#include "ticks.h"

struct mt_raw_resolver {
    struct mt_tape_symbols *symbols;  /* borrowed: definitions of the tape */
    struct mt_symbols *trace_symbols; /* borrowed */
    struct mt_clock_point first, last;
    uint64_t last_t_ns; /* no later event gets an earlier time */
    uint8_t *devices;   /* the last known device of each thread, by thread number */
    size_t device_capacity;
};

void mt_raw_resolver_release(struct mt_raw_resolver *self);

/* Fills all of *event except its number. `thread` is the number of the thread in the tape.
 * Events must come in the order of their numbers. MT_ERR_MEMORY. */
enum mt_status mt_raw_resolve(struct mt_raw_resolver *self, const struct mt_raw_event *raw,
                              uint32_t thread, struct mt_event *event) MT_MUST_USE;

#endif
