/* A trace that an importer makes in memory: events, header, damage of the file, any number of
 * readings. */
#include "cmocka_all.h"

#include <string.h>

#include "made_trace.h"

static void add(struct mt_made_trace *made, uint8_t kind, uint64_t t_ns, uint64_t addr)
{
    struct mt_error error;
    struct mt_event event = {.kind = kind, .t_ns = t_ns, .addr = addr, .size_bytes = 512};

    event.stack = event.name = MT_NO_ID;
    assert_int_equal(mt_made_trace_add(made, &event, &error), MT_OK);
}

static uint64_t count_events(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t count = 0, t_ns = 0;

    source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(source, &batch, &error) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            assert_int_equal(batch.events[i].seq, count++);
            assert_true(batch.events[i].t_ns >= t_ns);
            t_ns = batch.events[i].t_ns;
        }
    }
    return count;
}

TEST(a_file_with_damage)
{
    struct mt_made_trace made = {0};
    struct mt_source *source = NULL;
    struct mt_error error;

    assert_int_equal(mt_made_trace_start(&made, &error), MT_OK);
    add(&made, MT_EVENT_ALLOC, 1000, 4096);
    mt_made_trace_skip(&made, 17, "line 2: no number");
    mt_made_trace_skip(&made, 99, "line 9: no number");
    add(&made, MT_EVENT_FREE_REQUESTED, 900, 4096); /* its clock went back */
    made.header.framework = "RMM";
    made.integrity.cut = true;
    made.integrity.cut_offset = 123;
    made.symbols.frames_cut = 3;
    assert_int_equal(mt_made_trace_finish(&made, MT_SOURCES_RMM, &source, &error), MT_OK);
    mt_made_trace_release(&made);
    for (int reading = 0; reading < 2; reading++) {
        assert_int_equal(count_events(source), 4); /* with the loss and the end */
        assert_int_equal(source->integrity.events_dropped, 2);
        assert_int_equal(source->integrity.records_damaged, 2);
        assert_string_equal(source->integrity.first_error.text, "line 2: no number");
        assert_int_equal(source->integrity.first_error.offset, 17);
        assert_true(source->integrity.cut);
        assert_int_equal(source->integrity.cut_offset, 123);
        assert_int_equal(source->symbols.frames_cut, 3);
        assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    }
    assert_string_equal(source->format, MT_SOURCES_RMM);
    assert_string_equal(source->header.framework, "RMM");
    assert_int_equal(source->header.start_t_ns, 1000);
    assert_true(mt_header_is_imported(&source->header));
    mt_source_close(source);
}

TEST(a_header_that_is_too_large)
{
    static char text[70000];
    struct mt_made_trace made = {0};
    struct mt_source *source = NULL;
    struct mt_error error;

    memset(text, 'a', sizeof text - 1);
    assert_int_equal(mt_made_trace_start(&made, &error), MT_OK);
    made.header.not_used = text;
    assert_int_equal(mt_made_trace_finish(&made, MT_SOURCES_ROWS, &source, &error),
                     MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "60 KiB"));
    mt_made_trace_release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
