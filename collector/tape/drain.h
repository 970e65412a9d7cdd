/* Tape -> trace: takes committed raw events in their global order, resolves
 * what they refer to, and adds them to a writer. Used by the writer thread of
 * the traced process, and by whoever recovers a dead process's tape. */
#ifndef MT_COLLECTOR_DRAIN_H
#define MT_COLLECTOR_DRAIN_H

#include <stdbool.h>

#include "tape.h"
#include "trace.h"

struct mt_drain;

struct mt_drain_result {
    uint64_t events;  /* added to the writer by this pass */
    uint64_t missing; /* raw events that never were committed (only of a dead process) */
    bool waits;       /* a thread is between taking its number and committing */
};

/* `symbols` are the writer's (both borrowed); they may hold what an earlier
 * part of the trace defined. */
enum mt_status mt_drain_new(struct mt_tape *tape, struct mt_symbols *symbols,
                            struct mt_writer *writer, struct mt_drain **drain,
                            struct mt_error *error) MT_MUST_USE;
void mt_drain_free(struct mt_drain *drain);

/* Header facts as far as the tape tells them. Strings live as long as the drain. */
void mt_drain_header(struct mt_drain *drain, struct mt_trace_header *header);

/* One pass: everything up to the first number that is taken but not committed.
 * `dead`: nobody writes any more, so numbers without an event are missing.
 * Does not flush the writer. Cost: linear in new events; sorts them. */
enum mt_status mt_drain_pass(struct mt_drain *drain, bool dead, struct mt_drain_result *result,
                             struct mt_error *error) MT_MUST_USE;

/* After the writer flushed: slots whose events are in the file become free. */
void mt_drain_commit(struct mt_drain *drain, uint64_t trace_bytes);

#endif
