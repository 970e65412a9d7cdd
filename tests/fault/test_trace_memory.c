/* A trace that is written while allocations fail is whole, or the writer says
 * that it is not. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "trace.h"

enum { EVENTS = 3000 };

/* Every column has values that differ, so that each needs room of its own. */
static struct mt_event event_of(uint64_t i, uint32_t name)
{
    return (struct mt_event){.seq = i * 2,
                             .t_ns = i * 70001,
                             .addr = 512 + i * 512,
                             .size_bytes = 512 + i,
                             .aux_bytes = i % 5 ? 3 * i : 0,
                             .stack = MT_NO_ID,
                             .name = i % 2 ? name : MT_NO_ID,
                             .kind = MT_EVENT_ALLOC};
}

static enum mt_status write_events(struct mt_writer *writer, uint32_t name)
{
    enum mt_status status = MT_OK;
    struct mt_error error;

    for (uint64_t i = 0; i < EVENTS && status == MT_OK; i++) {
        const struct mt_event event = event_of(i, name);

        status = mt_writer_add(writer, &event, &error);
    }
    return status == MT_OK ? mt_writer_finish(writer, &error) : status;
}

static enum mt_status write_trace(FILE *file)
{
    static const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    const struct mt_writer_options options = {.frame_bytes = 1 << 14}; /* several blocks */
    struct mt_symbols symbols = {0};
    struct mt_writer *writer = NULL;
    struct mt_error error;
    uint32_t name = MT_NO_ID;
    enum mt_status status = mt_symbols_init(&symbols);

    if (status == MT_OK)
        status = mt_symbols_string(&symbols, "name", 4, &name);
    if (status == MT_OK)
        status = mt_writer_new(fileno(file), &header, &symbols, &options, &writer, &error);
    if (status == MT_OK)
        status = write_events(writer, name);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    return status;
}

static uint64_t events_in(FILE *file)
{
    size_t length = (size_t)lseek(fileno(file), 0, SEEK_END);
    uint8_t *bytes = malloc(length);
    struct mt_source *source = NULL;
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t count = 0;

    assert_non_null(bytes);
    assert_int_equal(pread(fileno(file), bytes, length, 0), length);
    assert_int_equal(mt_trace_open_memory(bytes, length, &source, &error), MT_OK);
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            count += batch.events[i].kind == MT_EVENT_ALLOC;
    mt_source_close(source);
    free(bytes);
    return count;
}

static void write_with(size_t n, bool from_there_on, size_t *total)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    fail_allocation(n, from_there_on);
    enum mt_status status = write_trace(file);
    *total = stop_failing();
    if (n && status != MT_OK)
        assert_int_equal(status, MT_ERR_MEMORY);
    else if (status != MT_OK || events_in(file) != EVENTS)
        fail_msg("allocation %zu of %zu failed: status %d, %llu of %d events in the file", n,
                 *total, status, (unsigned long long)events_in(file), EVENTS);
    fclose(file);
}

TEST(a_trace_is_whole_or_said_to_be_incomplete)
{
    size_t total, ignored;

    write_with(0, false, &total);
    assert_in_range(total, 20, 5000);
    for (size_t n = 1; n <= total; n++) {
        write_with(n, false, &ignored);
        write_with(n, true, &ignored);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
