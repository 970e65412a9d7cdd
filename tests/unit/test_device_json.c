/* The description of the simulated device. For an H200 it equals the one that cuDNN 9.19.0 wrote
 * for a real device, except for the device's bus number. */
#include "cmocka_all.h"

#include "../../simulate/driver/device_json.c"
#include "../../simulate/driver/simulated_device.c"

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

TEST(h200_description_equals_cudnns)
{
    char json[MAX_DEVICE_JSON];

    unsetenv("MEMTRACE_SIMULATED_DEVICE");
    choose();
    sim_device_json(json);
    assert_string_equal(
        json,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,"
        "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":150109880320,"
        "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,"
        "\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
        "\"deviceName\":\"NVIDIA H200\"}");
}

TEST(every_card_has_a_description)
{
    for (const struct mt_card *card = mt_cards; card->name; card++) {
        char json[MAX_DEVICE_JSON], wanted[64];

        model = describe(card);
        sim_device_json(json);
        snprintf(wanted, sizeof wanted, "\"multiProcessorCount\":%u,", card->multiprocessors);
        assert_non_null(strstr(json, wanted));
        snprintf(wanted, sizeof wanted, "\"totalGlobalMem\":%llu,",
                 (unsigned long long)card->memory_bytes);
        assert_non_null(strstr(json, wanted));
        snprintf(wanted, sizeof wanted, "\"%s\"}", card->driver_name);
        assert_non_null(strstr(json, wanted));
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
