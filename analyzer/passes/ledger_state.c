#include "ledger_state.h"

#include "grow.h"

void mt_ledger_device_at(struct mt_driver_ledger *ledger, uint16_t number, uint32_t *index)
{
    *index = mt_map_get(&ledger->device_slots, number);
    if (*index != MT_MAP_NONE)
        return;
    *index = (uint32_t)ledger->device_count;
    if (ledger->device_count == ledger->device_capacity)
        mt_grow_to(&ledger->devices, &ledger->device_capacity, ledger->device_count + 1,
                   sizeof *ledger->devices);
    ledger->devices[ledger->device_count++] =
        (struct mt_ledger_device){.device = number, .peak.phase = MT_NO_PHASE};
    mt_map_put(&ledger->device_slots, number, *index);
}
