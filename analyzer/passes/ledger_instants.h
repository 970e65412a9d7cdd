/* Records of the ledger at single instants: samples of NVML, and holders of the memory. */
#ifndef MT_ANALYZER_LEDGER_INSTANTS_H
#define MT_ANALYZER_LEDGER_INSTANTS_H

#include "ledger_state.h"

/* Needs zeroed memory with arena and phases set. Requests a copy of the holders of a device's
 * memory after an event, and the sample nearest to its time. */
void mt_driver_ledger_want(struct mt_driver_ledger *ledger, uint16_t device, uint64_t event,
                           uint64_t t_ns);

void mt_ledger_sample(struct mt_driver_ledger *ledger, const struct mt_event *event);
/* Makes the copies due before event number `seq`. */
void mt_ledger_copy_due(struct mt_driver_ledger *ledger, uint64_t seq);

#endif
