/* Follows all events of a trace for the process's driver memory: by heap, in total, at its peak,
 * and at the instant of the framework's peak; segments of the framework in it, and owners of the
 * rest; NVML's samples; refused requests.
 *
 * A driver allocation belongs to the framework if a segment of it (or, in a trace without segments,
 * a block) is inside. This is known only after the allocation, so instants noted in between are
 * corrected. */
#ifndef MT_ANALYZER_DRIVER_LEDGER_H
#define MT_ANALYZER_DRIVER_LEDGER_H

#include "ledger_state.h"
#include "source.h"

/* Call it before a pass over all heaps, while the source still has its own view. Arena, phases and
 * wanted instants are set, the rest is zero. */
void mt_driver_ledger_begin(struct mt_driver_ledger *ledger, const struct mt_source *source);
void mt_driver_ledger_event(struct mt_driver_ledger *ledger, const struct mt_event *event);
/* Call it after the last event. */
void mt_driver_ledger_finish(struct mt_driver_ledger *ledger);
/* Does all of the steps above, from the start of the source. */
enum mt_status mt_driver_ledger_read(struct mt_driver_ledger *ledger, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;
/* Returns the bytes of memory that the ledger uses for live blocks. */
uint64_t mt_driver_ledger_bytes(const struct mt_driver_ledger *ledger);
void mt_driver_ledger_release(struct mt_driver_ledger *ledger);

#endif
