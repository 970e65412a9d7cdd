/* Any bytes as an estimate. Sums stay below 2^63, and each role is in one row. */
#include "estimate.h"
#include "fuzz.h"

static void check(const struct mt_estimate *estimate)
{
    uint64_t role_bytes = 0, module_bytes = 0;
    uint32_t module_count = 0;
    unsigned roles = 0;

    for (uint32_t i = 0; i < estimate->row_count; i++) {
        const struct mt_estimate_row *row = &estimate->rows[i];

        FUZZ_CHECK(row->name && row->bytes <= MT_MAX_ESTIMATE_BYTES);
        FUZZ_CHECK(!(roles & row->roles) && row->roles < 1u << MT_ROLE_COUNT);
        roles |= row->roles;
        module_count += !row->roles;
        *(row->roles ? &role_bytes : &module_bytes) += row->bytes;
    }
    FUZZ_CHECK(module_count == estimate->module_count);
    FUZZ_CHECK(role_bytes <= estimate->total_bytes && module_bytes <= estimate->total_bytes);
    FUZZ_CHECK(estimate->total_bytes < UINT64_C(1) << 63);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mt_estimate estimate = {0};
    struct mt_settings settings;
    struct mt_error error;

    if (mt_settings_parse_members(text, size, &settings, &error) == MT_OK &&
        mt_estimate_read(&estimate, &settings, &error) == MT_OK)
        check(&estimate);
    mt_estimate_release(&estimate);
    mt_settings_release(&settings);
    free(text);
    return 0;
}
