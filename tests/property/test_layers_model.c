/* The layers of a timeline on random traces: they sum to the allocated bytes in every bin of both
 * axes, and each equals a plain count of the events. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "fake_trace.h"
#include "layers_model.h"
#include "report.h"
#include "timeline_model.h"

static uint32_t streams_of(struct fake *fake, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t id;

        assert_int_equal(mt_symbols_stream(&fake->source.symbols, i * 16, &id), MT_OK);
        assert_int_equal(id, i);
    }
    for (size_t i = 0; i < fake->count; i++)
        fake->events[i].stream = (uint32_t)below(count);
    return count;
}

/* What blocks of a stream hold after an event, of a device. */
static uint64_t held(const struct fake *fake, uint16_t device, uint32_t stream, uint64_t event)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < fake->count && i <= event; i++) {
        const struct mt_event *birth = &fake->events[i];
        bool lives =
            birth->kind == MT_EVENT_ALLOC && birth->device == device && birth->stream == stream;

        for (size_t j = i + 1; j <= event && j < fake->count && lives; j++)
            lives = fake->events[j].kind != MT_EVENT_FREE_REQUESTED ||
                    fake->events[j].addr != birth->addr || fake->events[j].device != device;
        bytes += lives ? birth->aux_bytes : 0;
    }
    return bytes;
}

static uint32_t stream_of_name(const char *name)
{
    if (!strcmp(name, "default stream"))
        return 0;
    assert_memory_equal(name, "stream ", 7);
    return (uint32_t)strtoul(name + 7, NULL, 10);
}

static void check_bin(const struct fake *fake, uint16_t device, const struct mt_layers *layers,
                      const struct mt_bin *bin, const uint64_t *bytes)
{
    uint64_t sum = 0;

    for (uint32_t j = 0; j < layers->count; j++)
        sum += bytes[j];
    assert_int_equal(sum, bin->allocated);
    if (!sum || layers->by != MT_LAYERS_BY_STREAM)
        return;
    for (uint32_t j = 0; j < layers->count - (layers->other_groups > 0); j++)
        assert_int_equal(bytes[j],
                         held(fake, device, stream_of_name(layers->layers[j].name), bin->event));
}

static void check_device(const struct fake *fake, const struct mt_device_report *device,
                         bool thorough)
{
    const struct mt_timeline *timeline = device->timeline;
    const struct mt_layers *layers = timeline->layers;
    uint64_t peak = 0;

    assert_non_null(layers);
    assert_in_range(layers->count, 0, MT_MAX_LAYERS);
    for (uint32_t i = 0; i < layers->count; i++) {
        assert_non_null(layers->layers[i].name);
        peak += layers->layers[i].peak_bytes;
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(layers->layers[i].name, layers->layers[j].name);
    }
    assert_int_equal(peak, device->allocated_peak.bytes);
    for (uint32_t i = 0; i < timeline->bin_count; i += thorough ? 1 : 7) {
        check_bin(fake, device->device, layers, &timeline->time_bins[i],
                  &layers->time_bytes[(size_t)i * layers->count]);
        check_bin(fake, device->device, layers, &timeline->event_bins[i],
                  &layers->event_bytes[(size_t)i * layers->count]);
    }
}

static void run(uint64_t round, bool middle)
{
    struct mt_analyze_options options = {
        .path = "random", .models = MT_MODEL_TIMELINE, .bins = 1 + (uint32_t)(round * 13 % 200)};
    static struct fake fake;
    struct mt_report *report;
    struct mt_error error;

    seed = 88172645463325252u + round * 7919 + middle;
    make(&fake, false, middle, false);
    streams_of(&fake, round % 2 ? 3 : 14);
    options.replay.policy = "recorded";
    options.layer_by = (enum mt_layer_by)(1 + round % 3);
    assert_int_equal(mt_analyze(&fake.source, &options, &report, &error), MT_OK);
    for (uint32_t i = 0; i < report->device_count; i++)
        check_device(&fake, &report->devices[i], round < 20);
    mt_report_release(report);
    unmake(&fake);
}

TEST(layers_sum_to_allocated)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, false);
}

TEST(layers_of_a_ring)
{
    for (uint64_t round = 0; round < 30; round++)
        run(round, true);
}

TEST(wild_traces)
{
    static struct fake fake;

    for (uint64_t round = 0; round < 100; round++) {
        struct mt_analyze_options options = {.path = "wild",
                                             .models = MT_MODEL_TIMELINE,
                                             .layer_by = (enum mt_layer_by)(round % 4),
                                             .bins = (uint32_t)(round % 50)};
        struct mt_report *report;
        struct mt_error error;

        seed = 99172645463325252u + round * 104729;
        make(&fake, true, round % 3 == 0, round % 5 > 2);
        if (!mt_analyze(&fake.source, &options, &report, &error))
            mt_report_release(report);
        unmake(&fake);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
