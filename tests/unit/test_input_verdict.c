/* The warnings printed after an input was read, and the exit status that follows. */
#include "cmocka_all.h"

#include "cli.h"

static int verdict(const struct mt_integrity *integrity, bool starts_in_middle, bool strict)
{
    struct mt_common common = {.quiet = true, .strict = strict};
    struct mt_source source = {.integrity = *integrity, .events_read = integrity->events_read};

    source.header.starts_in_middle = starts_in_middle;
    return mt_input_verdict(&source, "x", &common);
}

TEST(statuses)
{
    const struct mt_integrity sound = {.closed = true, .frames_read = 3, .events_read = 9};
    struct mt_integrity cut = sound, damaged = sound, dropped = sound, invalid = sound;

    cut.cut = true;
    damaged.frames_damaged = 1;
    dropped.events_dropped = 5;
    invalid.events_invalid = 1;
    assert_int_equal(verdict(&sound, false, true), MT_EXIT_OK);
    assert_int_equal(verdict(&cut, false, false), MT_EXIT_OK);
    assert_int_equal(verdict(&cut, false, true), MT_EXIT_INCOMPLETE);
    cut.events_read = 0;
    assert_int_equal(verdict(&cut, false, false), MT_EXIT_INPUT);
    assert_int_equal(verdict(&dropped, false, false), MT_EXIT_OK);
    assert_int_equal(verdict(&dropped, false, true), MT_EXIT_INCOMPLETE);
    assert_int_equal(verdict(&sound, true, false), MT_EXIT_OK);
    assert_int_equal(verdict(&sound, true, true), MT_EXIT_INCOMPLETE);
    assert_int_equal(verdict(&damaged, false, false), MT_EXIT_INPUT);
    assert_int_equal(verdict(&damaged, true, true), MT_EXIT_INPUT);
    assert_int_equal(verdict(&invalid, false, false), MT_EXIT_INPUT);
}

/* If a replay or an analysis skips devices for lack of space, their history is missing. */
TEST(skipped_devices)
{
    const struct mt_common strict = {.quiet = true, .strict = true}, lenient = {.quiet = true};
    struct mt_source above = {.devices_left_out = 2}, crowded = {.devices_not_followed = 1 << 5};

    assert_int_equal(mt_input_verdict(&above, "x", &lenient), MT_EXIT_OK);
    assert_int_equal(mt_input_verdict(&above, "x", &strict), MT_EXIT_INCOMPLETE);
    assert_int_equal(mt_input_verdict(&crowded, "x", &lenient), MT_EXIT_OK);
    assert_int_equal(mt_input_verdict(&crowded, "x", &strict), MT_EXIT_INCOMPLETE);
}

/* Events that the recorder dropped and events that an imported history lacks are reported
 * separately. Both counts are lower bounds. */
TEST(missing_events_are_reported_by_origin)
{
    struct mt_source source = {.integrity = {.events_dropped = 17920}};
    char text[MT_MISSING_TEXT];

    source.header.sources = "cupti,pytorch-tracker";
    assert_string_equal(mt_missing_events_text(&source, text),
                        "at least 17,920 events were dropped by the recorder");
    source.header.sources = MT_SOURCES_SNAPSHOT;
    assert_string_equal(mt_missing_events_text(&source, text),
                        "at least 17,920 events are missing from the history");
    source.header.sources = MT_SOURCES_XPLANE;
    source.integrity.events_dropped = 1;
    assert_string_equal(mt_missing_events_text(&source, text),
                        "at least 1 event is missing from the history");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
