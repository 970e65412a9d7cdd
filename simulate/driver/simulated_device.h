/* The simulated card, as its driver and its runtime report it. */
#ifndef MT_SIMULATED_DEVICE_H
#define MT_SIMULATED_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct sim_card {
    const char *name, *table_name; /* as in the driver; as in base/cards/cards.h */
    int major, minor;              /* compute capability */
    int multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    size_t shared_bytes_per_multiprocessor, shared_bytes_per_block_optin;
    int l2_bytes, l2_persisting_bytes, bus_bits;
    int clock_khz, memory_clock_khz;
};

/* One model for all devices of the process: the card of base/cards/cards.h that
 * MEMTRACE_SIMULATED_DEVICE names, otherwise an H200. */
const struct sim_card *sim_card(void);

enum { SIM_UUID_BYTES = 16 };

/* Sets `uuid` to the UUID of a device, which is the same in each run. It differs between the
 * devices of a node, and between the nodes of a job whose ranks run one at a time. */
void sim_uuid(int device, unsigned char uuid[SIM_UUID_BYTES]);

enum sim_attribute {
#define ATTRIBUTE(number, name, value) SIM_##name = (number),
#include "device_attributes.def"
#undef ATTRIBUTE
};

/* Sets *value to an attribute of an existing device. Returns false if no driver has this
 * attribute, or if its value is unknown. */
bool sim_attribute(int number, int device, int *value);
/* Returns the value of an attribute that is in the table. */
int sim_attribute_of(enum sim_attribute attribute, int device);

#endif
