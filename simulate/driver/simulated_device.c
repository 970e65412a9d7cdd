#include "simulated_device.h"

/* From cudaGetDeviceProperties on an H200. */
static const struct sim_card h200 = {
    .name = "NVIDIA H200",
    .major = 9,
    .minor = 0,
    .multiprocessors = 132,
    .threads_per_multiprocessor = 2048,
    .blocks_per_multiprocessor = 32,
    .shared_bytes_per_multiprocessor = 233472,
    .shared_bytes_per_block_optin = 232448,
    .l2_bytes = 62914560,
    .l2_persisting_bytes = 39321600,
    .bus_bits = 6144,
    .clock_khz = 1980000,
    .memory_clock_khz = 3201000,
};

const struct sim_card *sim_card(void)
{
    return &h200;
}
