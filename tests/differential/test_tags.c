/* Blocks that programs tag (fixtures/tags): bytes by tag equal the program's own count, a tag that
 * is a role wins over inference, members of JSON objects are groups, and every part of a snapshot
 * that is ignored is reported. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "heaps.h"
#include "tag_members.h"
#include "util.h"

static struct mt_source *source;
static struct mt_report *report;
static json_t *truth;

static void analyze(const char *name)
{
    char path[512];
    const struct mt_analyze_options options = {.path = path};

    snprintf(path, sizeof path, "%s/tags/%s.truth.json", MEMTRACE_FIXTURES, name);
    truth = json_load_file(path, 0, NULL);
    assert_non_null(truth);
    snprintf(path, sizeof path, "%s/tags/%s.pickle.zst", MEMTRACE_FIXTURES, name);
    struct capture capture = capture_analyze(path, &options);
    source = capture.source;
    report = capture.report;
}

static void finish(void)
{
    mt_report_release(report);
    mt_source_close(source);
    json_decref(truth);
}

static uint64_t counter(const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(json_object_get(truth, "counters"), name));
}

static const struct mt_tag_use *tag_of(const char *tag)
{
    const struct mt_device_report *device = &report->devices[0];

    for (uint32_t i = 0; i < device->peak_tag_count; i++)
        if (strcmp(device->peak_tags[i].tag, tag) == 0)
            return &device->peak_tags[i];
    fail_msg("no block is tagged '%s'", tag);
    return NULL;
}

/* Tensors that the program tagged and kept, at the peak. */
static void expect_tags(const char *name, bool are_roles)
{
    const char *tag;
    json_t *bytes;

    analyze(name);
    assert_int_equal(report->devices[0].allocated_peak.bytes, counter("allocated_bytes.all.peak"));
    assert_int_equal(report->devices[0].reserved_peak.bytes, counter("reserved_bytes.all.peak"));
    assert_true(json_object_size(json_object_get(truth, "tags")) >= 2);
    json_object_foreach(json_object_get(truth, "tags"), tag, bytes)
    {
        assert_int_equal(tag_of(tag)->requested_bytes, json_integer_value(bytes));
        assert_int_equal(tag_of(tag)->names_role, are_roles);
    }
    finish();
}

TEST(bytes_by_tag_are_those_of_the_program)
{
    expect_tags("words_2_11", false);
    expect_tags("roles_2_11", true);
    expect_tags("words_2_15", false);
    expect_tags("roles_2_15", true);
}

/* The copy of the weights looks like parameters: it is allocated in the same way, and lives as
 * long. */
TEST(a_tag_wins_over_what_is_inferred)
{
    analyze("words_2_15");
    const uint64_t *roles = report->devices[0].peak_role_bytes;
    uint64_t copied = tag_of("fp32 copy")->bytes;
    assert_int_equal(roles[MT_ROLE_PARAMETERS], tag_of("all weights")->bytes + copied);
    assert_int_equal(roles[MT_ROLE_KV_CACHE], 0);
    finish();
    analyze("roles_2_15");
    roles = report->devices[0].peak_role_bytes;
    assert_int_equal(roles[MT_ROLE_PARAMETERS], tag_of("parameters")->bytes);
    assert_true(roles[MT_ROLE_OPTIMIZER_STATE] > copied);
    assert_int_equal(report->devices[0].peak_recorded_role_bytes[MT_ROLE_OPTIMIZER_STATE], copied);
    assert_int_equal(roles[MT_ROLE_ACTIVATIONS], 512 * MT_KIB); /* annotated while it lived */
    assert_int_equal(roles[MT_ROLE_KV_CACHE], 512 * MT_KIB);
    finish();
}

static void expect_group(const char *tag, const char *member, const char *group)
{
    struct mt_symbols symbols = {0};
    struct mt_arena arena = {0};
    uint32_t id;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, tag, strlen(tag), &id), MT_OK);
    assert_string_equal(mt_tag_group(&arena, &symbols, id, member), group);
    assert_string_equal(mt_tag_group(&arena, &symbols, id, NULL), tag);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

TEST(members_of_objects_are_groups)
{
    static const char object[] =
        "{\"layer\": 3, \"kind\":\"kv; \\\"x\", \"at\": {\"head\": [1, 2.50]}, "
        "\"on\": true, \"of\": null, \"empty\": \"\"}";

    expect_group(object, "layer", "3");
    expect_group(object, "kind", "kv; \"x");
    expect_group(object, "at", "{\"head\": [1, 2.50]}");
    expect_group(object, "at.head", "[1, 2.50]");
    expect_group(object, "at.head.1", "2.50");
    expect_group(object, "on", "true");
    expect_group(object, "of", "null");
    expect_group(object, "empty", "\"\"");
    expect_group(object, "head", "no tag.head");
    expect_group("a; {\"n\": 1}; b; {\"n\": 2, \"m\": {}}; {\"m\": 3}; c", "n", "2");
    expect_group("a; {\"n\": 1}; {\"n\": 2}", "n", "2");
}

TEST(other_tags_have_no_members)
{
    char deep[64] = "{\"n\": 1, \"d\": ";

    expect_group("layer 3", "layer", "no tag.layer");
    expect_group("[{\"n\": 1}]", "n", "no tag.n");
    expect_group("{\"n\": 1} and more", "n", "no tag.n");
    expect_group("{\"n\": 1", "n", "no tag.n");
    expect_group("{n: 1}", "n", "no tag.n");
    expect_group("{\"n\": 1, \"n\": 2}", "n", "no tag.n");
    expect_group("{ ; {\"n\": 1}", "n", "no tag.n");
    memset(deep + strlen(deep), '[', 8);
    memset(deep + strlen(deep), ']', 8);
    strcat(deep, "}");
    expect_group(deep, "n", "no tag.n");
    assert_string_equal(mt_tag_group(NULL, NULL, MT_NO_ID, NULL), "no tag");
}

TEST(unused_parts_are_reported)
{
    static const char unused_fields[] = "entry: compile_context\nsegment: segment_type";

    analyze("words_2_11");
    assert_string_equal(source->header.not_used, unused_fields);
    finish();
    analyze("words_2_15");
    assert_string_equal(source->header.not_used, unused_fields);
    finish();
}

struct pinned {
    uint64_t taken, used, taken_most;
};

static struct pinned read_pinned(void)
{
    struct pinned pinned = {0};
    struct mt_event_batch batch;
    struct mt_error error;

    source->view = (struct mt_heap_view){.level = MT_VIEW_EVERYTHING, .chosen = true};
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    while (mt_source_next(source, &batch, &error) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            bool is_driver = !strcmp(mt_heap_name(&source->symbols, event->heap), "driver:host");
            bool is_user = !strcmp(mt_heap_name(&source->symbols, event->heap), "user:pinned");
            uint64_t *bytes = is_driver ? &pinned.taken : &pinned.used;

            if (!is_driver && !is_user)
                continue;
            if (event->kind == MT_EVENT_ALLOC)
                *bytes += event->size_bytes;
            if (event->kind == MT_EVENT_FREE_COMPLETED)
                *bytes -= event->size_bytes;
            pinned.taken_most = mt_max_u64(pinned.taken_most, pinned.taken);
        }
    }
    return pinned;
}

/* The host has its own heaps, beside the device's, and is not included in their numbers. */
TEST(host_memory_is_a_heap)
{
    analyze("words_2_15");
    assert_int_equal(report->driver_count, 1);
    assert_false(report->drivers[0].has_calls);
    struct pinned pinned = read_pinned();
    assert_int_equal(pinned.used, json_integer_value(json_object_get(truth, "pinned_bytes")));
    assert_int_equal(pinned.taken, (5 * MT_MIB) + 512); /* 3 MiB are cached as 4 */
    assert_int_equal(pinned.taken_most, pinned.taken);
    finish();
}

/* Host memory that the process pinned before it used a device is not the default heap. */
TEST(the_device_is_the_default_in_any_order)
{
    static const char path[] = MEMTRACE_FIXTURES "/../tests/fuzz/seeds/pickle_host";
    const struct mt_analyze_options options = {.path = path};
    struct capture capture = capture_analyze(path, &options);

    assert_int_equal(capture.report->device_count, 1);
    assert_int_equal(capture.report->devices[0].allocated_peak.bytes, 512);
    mt_report_release(capture.report);
    mt_source_close(capture.source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
