/* What the ledger notes at single instants: samples of NVML, and who held the memory. */
#ifndef MT_ANALYZER_LEDGER_INSTANTS_H
#define MT_ANALYZER_LEDGER_INSTANTS_H

#include "ledger_state.h"

/* Zeroed memory, arena and phases set. Asks for a copy of who holds the memory
 * of a device after an event, and for the sample that is nearest to its time. */
enum mt_status mt_driver_ledger_want(struct mt_driver_ledger *ledger, uint16_t device,
                                     uint64_t event, uint64_t t_ns) MT_MUST_USE;

enum mt_status mt_ledger_sample(struct mt_driver_ledger *ledger,
                                const struct mt_event *event) MT_MUST_USE;
/* Copies that are due before event number `seq`. */
enum mt_status mt_ledger_copy_due(struct mt_driver_ledger *ledger, uint64_t seq) MT_MUST_USE;

#endif
