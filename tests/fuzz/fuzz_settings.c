/* Any bytes as a document of settings, read as JSON and as TOML, and as a tag with objects. */
#include "fuzz.h"
#include "settings_text.h"
#include "tag_members.h"

static void check_entry(const struct mt_settings *settings, const struct mt_setting *entry)
{
    FUZZ_CHECK(entry->path && entry->text && entry->line > 0);
    FUZZ_CHECK(mt_settings_find(settings, entry->path) == entry);
    FUZZ_CHECK(entry->kind != MT_SETTING_BOOL || entry->number <= 1);
}

static void check(enum mt_status status, struct mt_settings *settings, const struct mt_error *error)
{
    if (status == MT_OK) {
        FUZZ_CHECK(settings->count <= MT_MAX_SETTINGS);
        for (size_t i = 0; i < settings->count; i++)
            check_entry(settings, &settings->entries[i]);
    } else {
        FUZZ_CHECK(error->text[0]);
    }
    mt_settings_release(settings);
}

/* Objects are found from left to right. */
static void check_tag(const char *tag)
{
    struct mt_settings object;
    const char *at = tag, *before = tag;

    while (mt_tag_next_object(&at, &object)) {
        FUZZ_CHECK(at > before && at <= tag + strlen(tag));
        before = at;
        for (size_t i = 0; i < object.count; i++)
            check_entry(&object, &object.entries[i]);
        mt_settings_release(&object);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mt_settings settings;
    struct mt_error error;

    check(mt_settings_parse_json(text, size, &settings, &error), &settings, &error);
    check(mt_settings_parse_toml(text, size, &settings, &error), &settings, &error);
    check(mt_settings_parse_members(text, size, &settings, &error), &settings, &error);
    check_tag(text);
    free(text);
    return 0;
}
