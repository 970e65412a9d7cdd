/* One reading of everything in a trace, for what the process took from the
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

/* Reads the whole source, from its start, without regard to its view. */
enum mt_status mt_driver_ledger_read(struct mt_driver_ledger *ledger, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;
void mt_driver_ledger_release(struct mt_driver_ledger *ledger);

#endif
