/* Random traces survive writing and reading, whole, from anywhere, twice. */
#include "cmocka_all.h"

#include "trace_maker.h"

static void check_event(const struct mt_event *got, const struct mt_event *expected)
{
    if (memcmp(got, expected, sizeof *got) != 0)
        fail_msg("event %llu differs (kind %u, read as %llu, kind %u)",
                 (unsigned long long)expected->seq, expected->kind, (unsigned long long)got->seq,
                 got->kind);
}

/* What a batch states about all its heaps must hold for each event. */
static void check_heap(const struct mt_event_batch *batch, const struct mt_event *event)
{
    if (!batch->only_heap)
        return;
    assert_int_not_equal(event->kind, MT_EVENT_MEMORY_SAMPLE);
    if (mt_event_kind_has_heap(event->kind))
        assert_int_equal(event->heap + 1u, batch->only_heap);
}

/* Reads on to the end; the first event has to be made->events[from]. */
static void check_rest(struct mt_source *source, const struct made_trace *made, size_t from)
{
    struct mt_event_batch batch;
    struct mt_error error = {0};
    enum mt_status status;
    bool ended = false;

    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        assert_true(batch.count > 0);
        for (size_t i = 0; i < batch.count; i++) {
            check_heap(&batch, &batch.events[i]);
            assert_false(ended);
            ended = batch.events[i].kind == MT_EVENT_END;
            if (!ended) {
                assert_true(from < made->count);
                check_event(&batch.events[i], &made->events[from++]);
            }
        }
    }
    assert_int_equal(status, MT_END);
    assert_int_equal(from, made->count);
    assert_int_equal(source->integrity.frames_damaged, 0);
    assert_int_equal(source->integrity.events_invalid, 0);
    assert_int_equal(source->integrity.events_unknown, 0);
}

static void check_symbols(const struct mt_symbols *got, const struct mt_symbols *expected)
{
    assert_int_equal(got->strings.count, expected->strings.count);
    for (uint32_t i = 0; i < got->strings.count; i++) {
        assert_int_equal(got->strings.lengths[i], expected->strings.lengths[i]);
        assert_memory_equal(got->strings.texts[i], expected->strings.texts[i],
                            expected->strings.lengths[i]);
    }
    assert_int_equal(got->frame_count, expected->frame_count);
    assert_memory_equal(got->frames, expected->frames, got->frame_count * sizeof *got->frames);
    assert_int_equal(got->stack_count, expected->stack_count);
    assert_memory_equal(got->stacks, expected->stacks, got->stack_count * sizeof *got->stacks);
    assert_int_equal(got->stream_count, expected->stream_count);
    assert_memory_equal(got->streams, expected->streams, got->stream_count * sizeof *got->streams);
    assert_int_equal(got->pool_count, expected->pool_count);
    assert_memory_equal(got->pools, expected->pools, got->pool_count * sizeof *got->pools);
    assert_int_equal(got->heap_count, expected->heap_count);
    assert_memory_equal(got->heaps, expected->heaps, got->heap_count * sizeof *got->heaps);
    assert_int_equal(got->device_count, expected->device_count);
    for (uint32_t i = 0; i < got->device_count; i++) {
        assert_int_equal(got->devices[i].name, expected->devices[i].name);
        assert_int_equal(got->devices[i].total_memory_bytes,
                         expected->devices[i].total_memory_bytes);
    }
    assert_int_equal(got->thread_count, expected->thread_count);
    for (uint32_t i = 0; i < got->thread_count; i++) {
        assert_int_equal(got->threads[i].name, expected->threads[i].name);
        assert_int_equal(got->threads[i].os_id, expected->threads[i].os_id);
    }
    assert_int_equal(got->end_count, expected->end_count);
    for (uint32_t i = 0; i < got->end_count; i++) {
        assert_int_equal(got->ends[i].addr, expected->ends[i].addr);
        assert_int_equal(got->ends[i].size_bytes, expected->ends[i].size_bytes);
        assert_int_equal(got->ends[i].allocated_bytes, expected->ends[i].allocated_bytes);
        assert_int_equal(got->ends[i].active_bytes, expected->ends[i].active_bytes);
        assert_int_equal(got->ends[i].requested_bytes, expected->ends[i].requested_bytes);
        assert_int_equal(got->ends[i].device, expected->ends[i].device);
        assert_int_equal(got->ends[i].heap, expected->ends[i].heap);
    }
}

static void check_header(const struct mt_trace_header *got)
{
    struct mt_trace_header expected = made_header();

    assert_int_equal(got->format_version, 1);
    assert_string_equal(got->framework, expected.framework);
    assert_string_equal(got->allocator_options, expected.allocator_options);
    assert_null(got->host);
    assert_int_equal(got->process_id, expected.process_id);
    assert_int_equal(got->rank, 0);
    assert_int_equal(got->world_size, -1);
    assert_int_equal(got->start_t_ns, expected.start_t_ns);
    assert_int_equal(got->memory_limit_bytes, expected.memory_limit_bytes);
    assert_true(got->sizes_rounded && got->has_stacks);
    assert_false(got->starts_in_middle || got->has_segments);
    assert_string_equal(got->settings, expected.settings);
}

/* The first event that a seek has to give: by seq, or by time. */
static size_t first_from(const struct made_trace *made, uint64_t target, bool by_time)
{
    size_t i = 0;

    while (i < made->count && (by_time ? made->events[i].t_ns : made->events[i].seq) < target)
        i++;
    return i;
}

static void check_seeks(struct mt_source *source, struct made_trace *made)
{
    struct mt_error error = {0};

    for (int round = 0; round < 12; round++) {
        const struct mt_event *event = &made->events[random_below(made, (uint32_t)made->count)];
        bool by_time = round % 2;
        uint64_t target = (by_time ? event->t_ns : event->seq) + random_below(made, 3) - 1;
        if (!source->ops->seek)
            continue;
        assert_int_equal(source->ops->seek(source, target, by_time, &error), MT_OK);
        check_rest(source, made, first_from(made, target, by_time));
    }
}

static void check_trace(uint64_t seed, size_t count, uint32_t scale, size_t flush_every,
                        bool finish)
{
    struct made_trace made;
    struct mt_source *source = NULL;
    struct mt_error error = {0};
    size_t length;

    print_message("seed %llu, %zu events, flush every %zu\n", (unsigned long long)seed, count,
                  flush_every);
    make_trace(&made, seed, count, scale);
    uint8_t *bytes = written_trace(&made, flush_every, finish, &length);
    assert_true(mt_trace_probe(bytes, 4));
    assert_int_equal(mt_trace_open_memory(bytes, length, &source, &error), MT_OK);
    check_header(&source->header);
    if (count)
        check_seeks(source, &made);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    check_rest(source, &made, 0);
    assert_int_equal(source->integrity.closed, finish);
    assert_int_equal(source->integrity.cut, !finish);
    assert_int_equal(source->integrity.events_read, count + finish);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    check_rest(source, &made, 0);
    if (count || finish)
        check_symbols(&source->symbols, &made.symbols);
    mt_source_close(source);
    free(bytes);
    unmake_trace(&made);
}

static uint64_t first_seed(void)
{
    const char *text = getenv("MEMTRACE_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

TEST(test_small)
{
    uint64_t seed = first_seed();

    for (size_t i = 0; i < 40; i++)
        check_trace(seed + i, i * i, 3, i % 5 * 7, i % 3 != 0);
}

TEST(test_large)
{
    check_trace(first_seed() + 1000, 60000, 300, 0, true);
    check_trace(first_seed() + 1001, 40000, 5000, 9973, false);
}

/* Definitions beyond what fits beside events in one block. */
TEST(test_many_definitions)
{
    check_trace(first_seed() + 2000, 100, 60000, 10, true);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
