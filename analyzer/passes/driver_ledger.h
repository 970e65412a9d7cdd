/* Hears everything in a trace, for what the process took from the
 * driver: by heap, in all, at its peak, and at the instant of the framework's
 * own peak; which of it holds segments of the framework, and who asked for the
 * rest; what NVML saw; what the driver refused.
 *
 * A driver's allocation is the framework's if a segment of it (or, where a trace
 * has none, a block) lies in it. That shows after the allocation; instants that
 * were noted in between are put right. */
#ifndef MT_ANALYZER_DRIVER_LEDGER_H
#define MT_ANALYZER_DRIVER_LEDGER_H

#include "ledger_state.h"
#include "source.h"

/* Before a reading of all heaps, while the source still has its own view. Arena, phases and wanted
 * instants are set, the rest is zero. */
void mt_driver_ledger_begin(struct mt_driver_ledger *ledger, const struct mt_source *source);
enum mt_status mt_driver_ledger_event(struct mt_driver_ledger *ledger,
                                      const struct mt_event *event) MT_MUST_USE;
/* After the last one. */
enum mt_status mt_driver_ledger_finish(struct mt_driver_ledger *ledger) MT_MUST_USE;
/* All of that, from the start of the source. */
enum mt_status mt_driver_ledger_read(struct mt_driver_ledger *ledger, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;
/* That it holds for live blocks. */
uint64_t mt_driver_ledger_bytes(const struct mt_driver_ledger *ledger);
void mt_driver_ledger_release(struct mt_driver_ledger *ledger);

#endif
