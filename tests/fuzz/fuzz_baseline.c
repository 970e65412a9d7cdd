/* Any bytes as a baseline. */
#include "baseline.h"
#include "fuzz.h"

static void check_device(const struct mt_baseline_device *device)
{
    FUZZ_CHECK(device->site_count <= MT_BASELINE_SITES);
    for (uint32_t i = 0; i < device->site_count; i++)
        FUZZ_CHECK(device->sites[i].site && device->sites[i].phase);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mt_baseline baseline = {0};
    struct mt_settings settings;
    struct mt_error error;

    if (mt_settings_parse_json(text, size, &settings, &error) == MT_OK &&
        mt_baseline_read(&baseline, &settings, &error) == MT_OK)
        for (uint32_t i = 0; i < baseline.device_count; i++) {
            check_device(&baseline.devices[i]);
            FUZZ_CHECK(!i || baseline.devices[i - 1].device < baseline.devices[i].device);
        }
    mt_baseline_release(&baseline);
    mt_settings_release(&settings);
    free(text);
    return 0;
}
