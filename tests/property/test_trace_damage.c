/* A small trace, cut at every byte and with every byte flipped: what is whole
 * is read, what is not is counted and told with its place. */
#include "cmocka_all.h"

#include "trace_maker.h"

enum { EVENTS = 150, EVENTS_A_FRAME = 25, MAX_FRAMES = 16 };

struct sample {
    struct made_trace made;
    uint8_t *bytes;
    size_t length, frame_count;
    struct mt_zstd_frame_info frames[MAX_FRAMES];
};

static int make_sample(void **state)
{
    static struct sample sample;
    const struct mt_zstd_frame_info *frames;
    struct mt_source *source;
    struct mt_error error;
    size_t count;

    make_trace(&sample.made, 7, EVENTS, 4);
    sample.bytes = written_trace(&sample.made, EVENTS_A_FRAME, 1, &sample.length);
    made_ok(mt_trace_open_memory(sample.bytes, sample.length, &source, &error));
    made_ok(mt_trace_frames(source, &frames, &count, &error));
    assert_in_range(count, 6, MAX_FRAMES);
    memcpy(sample.frames, frames, count * sizeof *frames);
    sample.frame_count = count;
    mt_source_close(source);
    *state = &sample;
    return 0;
}

static int free_sample(void **state)
{
    struct sample *sample = *state;

    unmake_trace(&sample->made);
    free(sample->bytes);
    return 0;
}

/* Equal except for ids, whose definitions may be lost. */
static bool same_facts(const struct mt_event *a, const struct mt_event *b)
{
    return a->seq == b->seq && a->t_ns == b->t_ns && a->kind == b->kind && a->addr == b->addr &&
           a->size_bytes == b->size_bytes && a->aux_bytes == b->aux_bytes;
}

/* Everything that reading gave. */
struct reading {
    struct mt_event events[EVENTS + 1];
    size_t count;
    bool opened;
    struct mt_integrity integrity;
    struct mt_error error;
};

/* Ids have to exist in the symbols, whatever was lost. */
static void check_ids(const struct mt_symbols *symbols, const struct mt_event *event)
{
    assert_true(event->stack == MT_NO_ID || event->stack < symbols->stack_count);
    assert_true(event->name == MT_NO_ID || event->name < symbols->strings.count);
    assert_true(event->stream < symbols->stream_count && event->thread < symbols->thread_count &&
                event->device < symbols->device_count && event->heap < symbols->heap_count &&
                event->pool < symbols->pool_count);
}

static void read_copy(const uint8_t *bytes, size_t length, struct reading *reading)
{
    uint8_t *copy = malloc(length + !length); /* exact: the sanitizer sees its end */
    struct mt_source *source = NULL;
    struct mt_event_batch batch;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    memset(reading, 0, sizeof *reading);
    enum mt_status status = mt_trace_open_memory(copy, length, &source, &reading->error);
    reading->opened = status == MT_OK;
    while (status == MT_OK && (status = mt_source_next(source, &batch, &reading->error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(reading->count < EVENTS + 1);
            check_ids(&source->symbols, &batch.events[i]);
            reading->events[reading->count++] = batch.events[i];
        }
    }
    if (reading->opened) {
        assert_int_equal(status, MT_END);
        reading->integrity = source->integrity;
    }
    mt_source_close(source);
    free(copy);
}

/* Reads events of one frame out of what was read; false if they are not
 * there, or not as they were. */
static bool has_frame(const struct sample *sample, size_t frame, const struct reading *reading)
{
    const struct mt_zstd_frame_info *info = &sample->frames[frame];
    const struct mt_event *made = sample->made.events, *end = made + sample->made.count;
    size_t i = 0;

    while (made < end && made->seq < info->first_seq)
        made++;
    while (i < reading->count && reading->events[i].seq < info->first_seq)
        i++;
    for (; made < end &&
           (frame + 1 == sample->frame_count || made->seq < sample->frames[frame + 1].first_seq);
         made++, i++) {
        if (i >= reading->count || !same_facts(made, &reading->events[i]))
            return false;
    }
    return true;
}

TEST(test_cut)
{
    const struct sample *sample = *state;
    struct reading reading;

    for (size_t length = 0; length < sample->length; length++) {
        read_copy(sample->bytes, length, &reading);
        if (length < sample->frames[0].offset) {
            assert_false(reading.opened);
            assert_true(reading.error.text[0]);
            continue;
        }
        assert_true(reading.opened);
        assert_true(reading.integrity.cut);
        assert_int_equal(reading.integrity.cut_offset, length);
        assert_int_equal(reading.integrity.frames_damaged, 0);
        for (size_t i = 0; i < sample->frame_count; i++) {
            const struct mt_zstd_frame_info *info = &sample->frames[i];
            if (info->offset + info->compressed_bytes <= length && !has_frame(sample, i, &reading))
                fail_msg("cut at %zu: frame %zu is not read", length, i);
        }
    }
}

/* With `mask` on byte `at`: true if anything was noticed. */
static bool flip(const struct sample *sample, uint8_t *bytes, size_t at, uint8_t mask)
{
    struct reading reading;
    size_t i, missing = 0;

    bytes[at] ^= mask;
    read_copy(bytes, sample->length, &reading);
    bytes[at] ^= mask;
    if (!reading.opened)
        fail_msg("byte %zu ^ %02x: does not open: %s", at, mask, reading.error.text);
    for (i = 0; i < sample->frame_count; i++) {
        const struct mt_zstd_frame_info *info = &sample->frames[i];
        bool inside = at >= info->offset && at < info->offset + info->compressed_bytes;
        if (has_frame(sample, i, &reading))
            continue;
        missing++;
        if (!inside)
            fail_msg("byte %zu ^ %02x: frame %zu is lost, too", at, mask, i);
    }
    if (reading.integrity.frames_damaged) {
        assert_true(reading.integrity.first_error.text[0]);
        assert_true(reading.integrity.first_error.offset <= at);
        return true;
    }
    if (missing)
        fail_msg("byte %zu ^ %02x: events are lost and nobody says so", at, mask);
    return reading.integrity.cut;
}

TEST(test_flip)
{
    const struct sample *sample = *state;
    uint8_t *bytes = malloc(sample->length);
    size_t at, unnoticed = 0;

    assert_non_null(bytes);
    memcpy(bytes, sample->bytes, sample->length);
    for (at = 0; at < sample->length; at++)
        unnoticed +=
            (size_t)!flip(sample, bytes, at, 0xFF) + (size_t)!flip(sample, bytes, at, 0x10);
    free(bytes);
    /* zstd ignores one bit of a frame's header: harmless, a few bytes */
    print_message("%zu of %zu flips change nothing\n", unnoticed, sample->length * 2);
    assert_in_range(unnoticed, 0, sample->frame_count * 3);
}

/* The same without index and seek table, as a killed writer leaves it. */
TEST(test_flip_unfinished)
{
    struct sample sample = *(const struct sample *)*state;
    const struct mt_zstd_frame_info *last = &sample.frames[sample.frame_count - 2];

    sample.frame_count -= 2; /* damage of the last frame may look like a cut */
    sample.length = (size_t)(last->offset + last->compressed_bytes);
    uint8_t *bytes = malloc(sample.length);
    assert_non_null(bytes);
    memcpy(bytes, sample.bytes, sample.length);
    for (size_t at = 0; at < last->offset; at++)
        flip(&sample, bytes, at, 0xFF);
    free(bytes);
}

int main(void)
{
    return run_tests_of_file(make_sample, free_sample);
}
