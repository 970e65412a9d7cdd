/* What info prints about heaps, threads, samples, and reasons of lost events. */
#include "cmocka_all.h"

#include <string.h>

#include "info_recorded.h"
#include "memory_source.h"
#include "util.h"

static uint32_t string(struct memory_source *source, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&source->source.symbols, text, strlen(text), &id), MT_OK);
    return id;
}

static void tell(struct mt_info_recorded *recorded, struct memory_source *source,
                 struct mt_buf *text, struct mt_buf *json)
{
    struct mt_event_batch batch;
    struct mt_error error;
    struct mt_json document;

    while (mt_source_next(&source->source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            mt_info_recorded_add(recorded, &batch.events[i]);
    assert_int_equal(mt_info_recorded_read(recorded, &source->source, &error), MT_OK);
    mt_info_recorded_text(text, recorded, &source->source.symbols);
    mt_info_dropped_text(text, recorded, &source->source.symbols);
    mt_json_init(&document, json, false);
    mt_json_object_begin(&document, NULL);
    mt_info_recorded_json(&document, recorded, &source->source.symbols);
    mt_json_object_end(&document);
    mt_buf_add_char(text, '\0');
    mt_buf_add_char(json, '\0');
}

TEST(several_heaps)
{
    struct mt_event events[] = {
        {.kind = MT_EVENT_ALLOC, .addr = 8, .size_bytes = 3000},
        {.kind = MT_EVENT_ALLOC, .addr = 8, .size_bytes = 1000, .heap = 1},
        {.kind = MT_EVENT_FREE_COMPLETED, .addr = 8, .heap = 1},
        {.kind = MT_EVENT_MEMORY_SAMPLE, .size_bytes = 5 * MT_MIB},
        {.kind = MT_EVENT_MEMORY_SAMPLE, .size_bytes = 4 * MT_MIB},
        {.kind = MT_EVENT_DROPPED, .size_bytes = 100},
        {.kind = MT_EVENT_DROPPED, .size_bytes = 7},
        {.kind = MT_EVENT_DROPPED, .size_bytes = 20},
    };
    struct mt_info_recorded recorded = {0};
    struct mt_buf text = {0}, json = {0};
    struct memory_source source;
    uint32_t thread;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 3);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    assert_int_equal(
        mt_symbols_thread(&source.source.symbols, string(&source, "loader\x1b"), 4711, &thread),
        MT_OK);
    events[5].name = events[7].name = string(&source, "no room on the disk");
    events[6].name = MT_NO_ID;
    tell(&recorded, &source, &text, &json);
    assert_string_equal(
        text.data, "  heaps       driver            peak  2.93 KiB  end  2.93 KiB  1 allocation\n"
                   "              pytorch           peak  0.98 KiB  end       0 B  1 allocation\n"
                   "  threads     loader\\x1b  4711\n"
                   "  samples     2, at most 5.00 MiB used by the process\n"
                   "                       120 no room on the disk\n");
    assert_non_null(strstr(json.data, "\"threads\":[{\"thread\":1,\"name\":\"loader"));
    assert_non_null(strstr(json.data, "{\"events\":120,\"why\":\"no room on the disk\"}"));
    assert_non_null(strstr(json.data, "{\"events\":7,\"why\":null}"));
    assert_non_null(strstr(json.data, "\"samples\":{\"count\":2,\"most_used_by_process_bytes\":"));
    mt_buf_release(&text);
    mt_buf_release(&json);
    mt_info_recorded_release(&recorded);
    memory_source_release(&source);
}

/* A snapshot has one heap, so info does not read it twice. */
TEST(one_framework_is_not_listed)
{
    struct mt_event events[] = {{.kind = MT_EVENT_SEGMENT_ALLOC, .addr = 8, .heap = 1},
                                {.kind = MT_EVENT_ALLOC, .addr = 8, .size_bytes = 9, .heap = 1}};
    struct mt_info_recorded recorded = {0};
    struct mt_buf text = {0}, json = {0};
    struct memory_source source;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 3);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    tell(&recorded, &source, &text, &json);
    assert_string_equal(text.data, "");
    assert_string_equal(json.data, "{}");
    mt_buf_release(&text);
    mt_buf_release(&json);
    mt_info_recorded_release(&recorded);
    memory_source_release(&source);
}

/* There are more reasons than can be listed separately: all are counted. */
TEST(reasons_are_bounded)
{
    struct mt_info_recorded recorded = {0};
    struct mt_symbols symbols;
    uint64_t sum = 0;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (uint32_t i = 0; i < 5 * MT_LOST_REASONS; i++) {
        struct mt_event event = {.kind = MT_EVENT_DROPPED, .name = i, .size_bytes = 3};

        mt_info_recorded_add(&recorded, &event);
    }
    for (size_t i = 0; i < recorded.lost.count; i++)
        sum += recorded.lost.reasons[i].events;
    assert_int_equal(recorded.lost.count, MT_LOST_REASONS);
    assert_int_equal(sum, 15 * MT_LOST_REASONS);
    assert_string_equal(mt_lost_events_why(&recorded.lost, MT_LOST_REASONS - 1, &symbols),
                        "other reasons");
    assert_string_equal(mt_lost_events_why(&recorded.lost, 0, &symbols), "");
    mt_symbols_release(&symbols);
    mt_info_recorded_release(&recorded);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
