/* Random traces for tests: symbols and events of every kind, from a seed. */
#ifndef MT_TESTS_TRACE_MAKER_H
#define MT_TESTS_TRACE_MAKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

struct made_trace {
    struct mt_symbols symbols;
    struct mt_event *events;
    size_t count;
    uint64_t state; /* of the random numbers */
};

static inline uint64_t random_u64(struct made_trace *made)
{
    uint64_t z = made->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint32_t random_below(struct made_trace *made, uint32_t limit)
{
    return (uint32_t)(random_u64(made) >> 32) % limit;
}

static inline int made_ok(enum mt_status status)
{
    if (status != MT_OK)
        abort();
    return 1;
}

static inline void make_symbols(struct made_trace *made, uint32_t scale)
{
    struct mt_symbols *symbols = &made->symbols;
    uint32_t i, id, last = MT_NO_ID;
    char text[32];

    made_ok(mt_symbols_init(symbols));
    for (i = 0; i < scale * 4; i++) {
        int length = snprintf(text, sizeof text, "name_%u%c", i, i % 5 ? 'x' : '\n');
        made_ok(mt_symbols_string(symbols, text, (size_t)length, &id));
    }
    for (i = 0; i < scale * 2; i++)
        made_ok(mt_symbols_frame(symbols, random_below(made, symbols->strings.count),
                                 i % 7 ? random_below(made, symbols->strings.count) : MT_NO_ID,
                                 random_below(made, 5000), &id));
    for (i = 0; i < scale * 3; i++) {
        made_ok(mt_symbols_stack(symbols, last, random_below(made, symbols->frame_count), &id));
        last = i % 11 == 10 ? MT_NO_ID : random_below(made, symbols->stack_count);
    }
    for (i = 0; i < 3; i++) {
        made_ok(mt_symbols_stream(symbols, random_u64(made), &id));
        made_ok(mt_symbols_pool(symbols, i + 1, random_u64(made), &id));
        made_ok(mt_symbols_heap(symbols, i + 2, &id));
        made_ok(mt_symbols_thread(symbols, i ? i + 3 : MT_NO_ID, random_u64(made), &id));
    }
    made_ok(mt_symbols_device(symbols, 1, 2, UINT64_C(80) << 30));
    for (i = 0; i < scale; i++) {
        const struct mt_segment_end end = {.addr = UINT64_C(0x7f0000000000) + i * 4096,
                                           .size_bytes = i % 3 ? i * 4096 : MT_NOT_COUNTED - 1,
                                           .allocated_bytes = i % 5 ? i : MT_NOT_COUNTED,
                                           .active_bytes = i % 7 ? i * 2 : MT_NOT_COUNTED - 1,
                                           .requested_bytes = 0,
                                           .device = (uint16_t)(i % 2),
                                           .heap = (uint16_t)(i % 3)};
        made_ok(mt_symbols_end(symbols, &end, &id));
    }
}

/* Every kind but END, which the writer adds. */
static inline uint8_t random_kind(struct made_trace *made)
{
    uint8_t kind = (uint8_t)(1 + random_below(made, MT_EVENT_KIND_COUNT - 2));

    return kind < MT_EVENT_END ? kind : (uint8_t)(kind + 1);
}

static inline struct mt_event random_event(struct made_trace *made, const struct mt_event *last)
{
    const struct mt_symbols *symbols = &made->symbols;
    struct mt_event event = {.seq = last ? last->seq + 1 : random_below(made, 3),
                             .t_ns = last ? last->t_ns : UINT64_C(1795153021957883000)};
    uint32_t dice = random_below(made, 100);

    event.t_ns += dice < 60   ? random_below(made, 200) * 1000
                  : dice < 62 ? random_u64(made) >> 30
                              : random_below(made, 100000);
    event.seq += dice == 99 ? random_below(made, 1000) : 0;
    event.kind = dice < 80 ? (uint8_t)(1 + random_below(made, 3)) : random_kind(made);
    event.flags = (uint8_t)(random_below(made, 10) ? 0 : random_below(made, 8));
    event.addr = random_below(made, 8) ? (UINT64_C(0x7f0000000000) + random_below(made, 300) * 512)
                 : random_below(made, 3) ? 0
                                         : random_u64(made);
    event.size_bytes = random_below(made, 9) ? random_below(made, 40) * 512
                                             : random_u64(made) >> random_below(made, 64);
    event.aux_bytes = random_below(made, 4) ? 0 : random_u64(made) >> random_below(made, 64);
    event.stack = random_below(made, 3) ? random_below(made, symbols->stack_count) : MT_NO_ID;
    event.name = random_below(made, 3) ? MT_NO_ID : random_below(made, symbols->strings.count);
    event.stream = random_below(made, 5) ? 0 : random_below(made, symbols->stream_count);
    event.thread =
        (uint16_t)(random_below(made, 5) ? 0 : random_below(made, symbols->thread_count));
    event.device = (uint16_t)random_below(made, 2);
    event.heap = (uint16_t)(random_below(made, 9) ? 0 : random_below(made, symbols->heap_count));
    event.pool = (uint16_t)(random_below(made, 9) ? 0 : random_below(made, symbols->pool_count));
    return event;
}

static inline void make_trace(struct made_trace *made, uint64_t seed, size_t count, uint32_t scale)
{
    memset(made, 0, sizeof *made);
    made->state = seed;
    make_symbols(made, scale);
    made->events = calloc(count + 1, sizeof *made->events);
    if (!made->events)
        abort();
    made->count = count;
    for (size_t i = 0; i < count; i++)
        made->events[i] = random_event(made, i ? &made->events[i - 1] : NULL);
}

static inline void unmake_trace(struct made_trace *made)
{
    mt_symbols_release(&made->symbols);
    free(made->events);
}

static inline struct mt_trace_header made_header(void)
{
    return (struct mt_trace_header){.framework = "PyTorch 2.11.0",
                                    .allocator_options = "expandable_segments:True",
                                    .process_id = 4711,
                                    .rank = 0,
                                    .world_size = -1,
                                    .start_t_ns = UINT64_C(1795153021957883000),
                                    .memory_limit_bytes = UINT64_C(9) << 30,
                                    .sources = "test",
                                    .sizes_rounded = true,
                                    .has_stacks = true,
                                    .settings = "a=1\nb=2\n"};
}

/* Writes the trace and reads the file back as bytes (malloc'd). `flush_every`
 * events a frame, 0 = as the writer likes. */
static inline uint8_t *written_trace(const struct made_trace *made, size_t flush_every, int finish,
                                     size_t *length)
{
    FILE *file = tmpfile();
    struct mt_trace_header header = made_header();
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};

    if (!file)
        abort();
    made_ok(mt_writer_new(fileno(file), &header, &made->symbols, NULL, &writer, &error));
    for (size_t i = 0; i < made->count; i++) {
        made_ok(mt_writer_add(writer, &made->events[i], &error));
        if (flush_every && (i + 1) % flush_every == 0)
            made_ok(mt_writer_flush(writer, &error));
    }
    made_ok(finish ? mt_writer_finish(writer, &error) : mt_writer_flush(writer, &error));
    mt_writer_free(writer);
    *length = (size_t)lseek(fileno(file), 0, SEEK_END);
    uint8_t *bytes = malloc(*length + 1);
    if (!bytes || pread(fileno(file), bytes, *length, 0) != (ssize_t)*length)
        abort();
    fclose(file);
    return bytes;
}

#endif
