#include "device_json.h"

#include <stdio.h>

#include "cards.h"
#include "driver_entries.h"
#include "simulated_device.h"

static unsigned long long memory_bytes(const struct sim_card *card)
{
    const char *near;
    const struct mt_card *found = mt_card_find(card->table_name, &near);

    return found ? found->memory_bytes : 0;
}

/* In the order in which cuDNN 9.19 writes it. */
void sim_device_json(char json[MAX_DEVICE_JSON])
{
    const struct sim_card *card = sim_card();
    int driver = 0;

    (void)cuDriverGetVersion(&driver);
    snprintf(json, MAX_DEVICE_JSON,
             "{\"maxGridSize\":[%d,%d,%d],\"maxBlockSize\":[%d,%d,%d],\"regsPerBlock\":%d,"
             "\"multiProcessorCount\":%d,\"warpSize\":%d,\"maxSharedMemoryPerBlock\":%d,"
             "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,"
             "\"maxRegistersPerSM\":%d,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":%d,"
             "\"maxThreadsPerSM\":%d,\"pciDeviceId\":%d,\"isTccDriver\":%d,"
             "\"supportCoopLaunch\":%d,\"totalGlobalMem\":%llu,\"smClockRateKHz\":%d,"
             "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,"
             "\"driverVer\":%d,\"deviceName\":\"%s\"}",
             sim_attribute_of(SIM_MAX_GRID_DIM_X, 0), sim_attribute_of(SIM_MAX_GRID_DIM_Y, 0),
             sim_attribute_of(SIM_MAX_GRID_DIM_Z, 0), sim_attribute_of(SIM_MAX_BLOCK_DIM_X, 0),
             sim_attribute_of(SIM_MAX_BLOCK_DIM_Y, 0), sim_attribute_of(SIM_MAX_BLOCK_DIM_Z, 0),
             sim_attribute_of(SIM_REGISTERS_PER_BLOCK, 0), card->multiprocessors,
             sim_attribute_of(SIM_WARP_SIZE, 0), sim_attribute_of(SIM_SHARED_BYTES_PER_BLOCK, 0),
             (int)card->shared_bytes_per_block_optin,
             sim_attribute_of(SIM_RESERVED_SHARED_BYTES_PER_BLOCK, 0),
             sim_attribute_of(SIM_REGISTERS_PER_MULTIPROCESSOR, 0), card->blocks_per_multiprocessor,
             sim_attribute_of(SIM_MAX_THREADS_PER_BLOCK, 0), card->threads_per_multiprocessor,
             sim_attribute_of(SIM_PCI_DEVICE_ID, 0), sim_attribute_of(SIM_TCC_DRIVER, 0),
             sim_attribute_of(SIM_COOPERATIVE_LAUNCH, 0), memory_bytes(card), card->clock_khz,
             card->memory_clock_khz, card->l2_bytes, 100 * card->major + 10 * card->minor, driver,
             card->name);
}
