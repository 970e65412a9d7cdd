/* The card that is simulated: what its driver and its runtime say of it. */
#ifndef MT_SIMULATED_DEVICE_H
#define MT_SIMULATED_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct sim_card {
    const char *name, *table_name; /* as the driver says it; as base/cards.h has it */
    int major, minor;              /* compute capability */
    int multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    size_t shared_bytes_per_multiprocessor, shared_bytes_per_block_optin;
    int l2_bytes, l2_persisting_bytes, bus_bits;
    int clock_khz, memory_clock_khz;
};

/* One model for all devices of the process: the card of base/cards.h that MEMTRACE_SIMULATED_DEVICE
 * names, else an H200. */
const struct sim_card *sim_card(void);

enum { SIM_UUID_BYTES = 16 };

/* Another one for each device of a node, and for each node of a job whose ranks are run one by one:
 * the same in each run. */
void sim_uuid(int device, unsigned char uuid[SIM_UUID_BYTES]);

enum sim_attribute {
#define ATTRIBUTE(number, name, value) SIM_##name = (number),
#include "device_attributes.def"
#undef ATTRIBUTE
};

/* An attribute of a device that exists; false: no driver knows it, or its value is not known. */
bool sim_attribute(int number, int device, int *value);
/* The same of one that is in the table. */
int sim_attribute_of(enum sim_attribute attribute, int device);

#endif
