/* Any bytes as a document of settings, JSON or TOML. */
#include "fuzz.h"
#include "settings_text.h"

static void check_entry(const struct mt_settings *settings, const struct mt_setting *entry)
{
    FUZZ_CHECK(entry->path && entry->text && entry->line > 0);
    FUZZ_CHECK(mt_settings_find(settings, entry->path) == entry);
    FUZZ_CHECK(entry->kind != MT_SETTING_BOOL || entry->number <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mt_settings settings;
    struct mt_error error;

    if (mt_settings_parse(text, size, &settings, &error) == MT_OK) {
        FUZZ_CHECK(settings.count <= MT_MAX_SETTINGS);
        for (size_t i = 0; i < settings.count; i++)
            check_entry(&settings, &settings.entries[i]);
    } else {
        FUZZ_CHECK(error.text[0]);
    }
    mt_settings_release(&settings);
    free(text);
    return 0;
}
