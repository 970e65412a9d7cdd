/* What is alive when a ring begins, and traces that are cut there: recordings of PyTorch and of the
 * driver, compared with a slow list of what is alive. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring.h"

enum { MOST = (1 << 16) + 8 };

struct cut {
    struct mt_symbols symbols;
    struct mt_writer *writer;
    struct mt_alive_state *alive;
    int fd;
    uint64_t next_seq;
};

/* `source` (may be NULL) has the facts and the symbols. */
static void open_cut(struct cut *cut, const struct mt_source *source)
{
    const struct mt_trace_header none = {.rank = -1, .world_size = -1};
    struct mt_error error = {0};
    FILE *file = tmpfile();

    memset(cut, 0, sizeof *cut);
    assert_int_equal(mt_symbols_init(&cut->symbols), MT_OK);
    cut->fd = dup(fileno(file));
    fclose(file);
    cut->alive = mt_alive_state_new(&cut->symbols);
    assert_non_null(cut->alive);
    assert_int_equal(mt_writer_new(cut->fd, source ? &source->header : &none,
                                   source ? &source->symbols : &cut->symbols, NULL, &cut->writer,
                                   &error),
                     MT_OK);
}

/* Opens a cut that begins at this time. */
static struct mt_ring_copy copy_to(struct cut *cut, const struct mt_source *source,
                                   uint64_t from_t_ns)
{
    open_cut(cut, source);
    return (struct mt_ring_copy){
        .writer = cut->writer, .alive = cut->alive, .from_t_ns = from_t_ns};
}

static void close_cut(struct cut *cut)
{
    mt_writer_free(cut->writer);
    mt_alive_state_free(cut->alive);
    mt_symbols_release(&cut->symbols);
    close(cut->fd);
}

/* Reads all events; returns their number. */
static size_t read_events(struct mt_source *source, struct mt_event *events)
{
    struct mt_error error = {0};
    struct mt_event_batch batch;
    enum mt_status status;
    size_t count = 0;

    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        assert_true(count + batch.count <= MOST);
        memcpy(events + count, batch.events, batch.count * sizeof *events);
        count += batch.count;
    }
    assert_int_equal(status, MT_END);
    assert_int_equal(source->integrity.events_invalid, 0);
    return count;
}

static size_t read_cut(struct cut *cut, struct mt_event *events)
{
    struct mt_error error = {0};
    struct mt_source *source;

    assert_int_equal(mt_writer_finish(cut->writer, &error), MT_OK);
    assert_int_equal(mt_trace_open_fd(cut->fd, UINT64_MAX, &source, &error), MT_OK);
    size_t count = read_events(source, events);
    mt_source_close(source);
    return count;
}

static void add(struct cut *cut, struct mt_event event)
{
    if (!event.name)
        event.name = MT_NO_ID;
    event.stack = MT_NO_ID;
    assert_int_equal(mt_alive_state_add(cut->alive, &event), MT_OK);
}

/* Writes what is alive and reads it into `events`, without the end. */
static size_t state_of(struct cut *cut, struct mt_event *events)
{
    struct mt_error error = {0};

    assert_int_equal(mt_alive_state_write(cut->alive, cut->writer, 77, &cut->next_seq, &error),
                     MT_OK);
    size_t count = read_cut(cut, events) - 1;
    assert_int_equal(count, cut->next_seq);
    return count;
}

static void check_range(const struct mt_event *event, uint64_t addr, uint64_t size, unsigned device)
{
    assert_int_equal(event->kind, MT_EVENT_SEGMENT_MAP);
    assert_int_equal(event->flags, MT_EVENT_INITIAL | MT_EVENT_EXPANDABLE);
    assert_int_equal(event->addr, addr);
    assert_int_equal(event->size_bytes, size);
    assert_int_equal(event->device, device);
    assert_int_equal(event->t_ns, 77);
}

TEST(mapped_ranges_are_cut)
{
    static struct mt_event events[MOST];
    const struct mt_event map = {.kind = MT_EVENT_SEGMENT_MAP, .flags = MT_EVENT_EXPANDABLE};
    struct mt_event one = map;
    struct cut cut;

    open_cut(&cut, NULL);
    for (unsigned device = 0; device < 2; device++) {
        one.kind = MT_EVENT_SEGMENT_MAP;
        one.device = (uint16_t)device;
        one.addr = 1000, one.size_bytes = 400;
        add(&cut, one);
        one.addr = 1400, one.size_bytes = 100;
        add(&cut, one);
    }
    one.kind = MT_EVENT_SEGMENT_UNMAP;
    one.device = 0;
    one.addr = 1100, one.size_bytes = 50; /* inside */
    add(&cut, one);
    one.addr = 1300, one.size_bytes = 150; /* the end of one, and a part of the next */
    add(&cut, one);
    one.addr = 900, one.size_bytes = 110; /* before the first */
    add(&cut, one);
    assert_int_equal(state_of(&cut, events), 4);
    check_range(&events[0], 1010, 90, 0);
    check_range(&events[1], 1150, 150, 0);
    check_range(&events[2], 1450, 50, 0);
    check_range(&events[3], 1000, 500, 1); /* two that touch: a block may lie in both */
    close_cut(&cut);
}

TEST(order_and_frees)
{
    static struct mt_event events[MOST];
    struct cut cut;

    open_cut(&cut, NULL);
    add(&cut, (struct mt_event){.kind = MT_EVENT_ALLOC, .addr = 4096, .size_bytes = 10});
    add(&cut, (struct mt_event){.kind = MT_EVENT_SEGMENT_ALLOC, .addr = 4096, .size_bytes = 99});
    add(&cut, (struct mt_event){.kind = MT_EVENT_ALLOC, .addr = 5000, .size_bytes = 20});
    add(&cut, (struct mt_event){.kind = MT_EVENT_FREE_REQUESTED, .addr = 4096, .size_bytes = 10});
    add(&cut, (struct mt_event){.kind = MT_EVENT_ALLOC, .addr = 6000, .size_bytes = 30});
    add(&cut, (struct mt_event){.kind = MT_EVENT_FREE_COMPLETED, .addr = 6000, .size_bytes = 30});
    add(&cut, (struct mt_event){.kind = MT_EVENT_ALLOC, .addr = 5000, .size_bytes = 40});
    assert_int_equal(state_of(&cut, events), 4);
    assert_int_equal(events[0].kind, MT_EVENT_SEGMENT_ALLOC); /* before blocks */
    assert_int_equal(events[1].size_bytes, 10);
    assert_int_equal(events[2].kind, MT_EVENT_FREE_REQUESTED); /* its block waits for streams */
    assert_int_equal(events[2].addr, 4096);
    assert_int_equal(events[3].size_bytes, 40); /* the free of the block before was lost */
    for (int i = 0; i < 4; i++)
        assert_true(events[i].flags & MT_EVENT_INITIAL);
    close_cut(&cut);
}

TEST(open_ranges_and_buffers)
{
    static struct mt_event events[MOST];
    struct cut cut;
    uint32_t step, loss;

    open_cut(&cut, NULL);
    assert_int_equal(mt_symbols_string(&cut.symbols, "step", 4, &step), MT_OK);
    assert_int_equal(mt_symbols_string(&cut.symbols, "why", 3, &loss), MT_OK);
    add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_PUSH, .name = step, .aux_bytes = 1});
    add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_PUSH, .name = step, .aux_bytes = 2});
    add(&cut, (struct mt_event){.kind = MT_EVENT_DROPPED, .name = loss, .size_bytes = 5});
    add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_POP, .name = step});
    add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_POP, .name = loss}); /* of no range */
    add(&cut, (struct mt_event){.kind = MT_EVENT_BUFFER_REGISTERED, .addr = 1, .aux_bytes = 7});
    add(&cut, (struct mt_event){.kind = MT_EVENT_BUFFER_REGISTERED, .addr = 2, .aux_bytes = 7});
    add(&cut, (struct mt_event){.kind = MT_EVENT_BUFFER_DEREGISTERED, .addr = 1, .aux_bytes = 7});
    add(&cut, (struct mt_event){.kind = MT_EVENT_COMMUNICATOR, .addr = 7, .size_bytes = 8});
    add(&cut, (struct mt_event){.kind = MT_EVENT_DROPPED, .name = loss, .size_bytes = 6});
    assert_int_equal(state_of(&cut, events), 4);
    assert_int_equal(events[0].kind, MT_EVENT_PHASE_PUSH);
    assert_int_equal(events[0].aux_bytes, 1);
    assert_int_equal(events[1].kind, MT_EVENT_BUFFER_REGISTERED);
    assert_int_equal(events[1].addr, 2);
    assert_int_equal(events[2].kind, MT_EVENT_COMMUNICATOR);
    assert_int_equal(events[3].kind, MT_EVENT_DROPPED); /* what is lost stays counted */
    assert_int_equal(events[3].size_bytes, 11);
    assert_true(events[3].flags & MT_EVENT_INITIAL); /* the next part repeats it */
    close_cut(&cut);
}

/* The slow list: blocks and segments by address, and the reserved bytes of expandable segments. */
struct slow {
    struct mt_event alive[MOST];
    size_t count;
    uint64_t mapped_bytes;
};

static void slow_end(struct slow *slow, const struct mt_event *event, uint8_t kind)
{
    for (size_t i = slow->count; i-- > 0;)
        if (slow->alive[i].kind == kind && slow->alive[i].addr == event->addr &&
            slow->alive[i].heap == event->heap && slow->alive[i].device == event->device) {
            slow->alive[i] = slow->alive[--slow->count];
            return;
        }
}

static void slow_add(struct slow *slow, const struct mt_event *event)
{
    switch (event->kind) {
    case MT_EVENT_ALLOC:
    case MT_EVENT_SEGMENT_ALLOC:
        slow_end(slow, event, event->kind);
        slow->alive[slow->count++] = *event;
        break;
    case MT_EVENT_FREE_COMPLETED: slow_end(slow, event, MT_EVENT_ALLOC); break;
    case MT_EVENT_SEGMENT_FREE: slow_end(slow, event, MT_EVENT_SEGMENT_ALLOC); break;
    case MT_EVENT_SEGMENT_MAP: slow->mapped_bytes += event->size_bytes; break;
    case MT_EVENT_SEGMENT_UNMAP: slow->mapped_bytes -= event->size_bytes; break;
    default: break;
    }
}

static int by_place(const void *a, const void *b)
{
    const struct mt_event *x = a, *y = b;
    const uint64_t keys[][2] = {
        {x->kind, y->kind}, {x->heap, y->heap}, {x->device, y->device}, {x->addr, y->addr}};

    for (size_t i = 0; i < 4; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static void check_same(struct slow *whole, struct slow *kept)
{
    assert_int_equal(whole->mapped_bytes, kept->mapped_bytes);
    assert_int_equal(whole->count, kept->count);
    qsort(whole->alive, whole->count, sizeof *whole->alive, by_place);
    qsort(kept->alive, kept->count, sizeof *kept->alive, by_place);
    for (size_t i = 0; i < whole->count; i++) {
        assert_int_equal(by_place(&whole->alive[i], &kept->alive[i]), 0);
        assert_int_equal(whole->alive[i].size_bytes, kept->alive[i].size_bytes);
        assert_int_equal(whole->alive[i].stack, kept->alive[i].stack);
        assert_int_equal(whole->alive[i].stream, kept->alive[i].stream);
    }
}

/* Cuts the trace so that event `first` is the first one that is kept, and compares. */
static void check_cut(struct mt_source *source, const struct mt_event *events, size_t count,
                      size_t first)
{
    static struct mt_event kept_events[MOST];
    static struct slow whole, kept;
    struct cut cut;
    struct mt_ring_copy copy = copy_to(&cut, source, events[first].t_ns);
    struct mt_error error = {0};
    size_t kept_count, initial = 0, i;

    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(mt_ring_copy_source(&copy, source, true, &error), MT_OK);
    assert_int_equal(mt_ring_copy_end(&copy, 0, &error), MT_OK);
    kept_count = read_cut(&cut, kept_events);
    whole.count = kept.count = 0;
    whole.mapped_bytes = kept.mapped_bytes = 0;
    for (i = 0; i < count; i++)
        slow_add(&whole, &events[i]);
    for (i = 0; i < kept_count; i++) {
        slow_add(&kept, &kept_events[i]);
        initial += (kept_events[i].flags & MT_EVENT_INITIAL) != 0;
        assert_int_equal(kept_events[i].seq, i);
    }
    check_same(&whole, &kept);
    assert_int_equal(copy.kept + initial + 1, kept_count); /* and the end */
    assert_int_equal(copy.kept + copy.left_out, count - 1);
    assert_true(kept_events[initial].t_ns <= copy.from_t_ns);
    if (initial + 2 < kept_count) /* a time that several events have is kept once */
        assert_true(kept_events[initial + 1].t_ns > copy.from_t_ns);
    close_cut(&cut);
}

TEST(recordings_are_cut)
{
    static const char *const names[] = {"mixed", "churn_expandable", "driver_only",
                                        "address_space"};
    static struct mt_event events[MOST];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mt_error error = {0};
        struct mt_source *source;
        char path[512];

        snprintf(path, sizeof path, MEMTRACE_FIXTURES "/recorded/%s.trace.zst", names[i]);
        assert_int_equal(mt_trace_open(path, &source, &error), MT_OK);
        source->view.level = MT_VIEW_EVERYTHING;
        size_t count = read_events(source, events);
        assert_true(count > 20);
        for (size_t part = 1; part < 8; part++)
            check_cut(source, events, count, count * part / 8);
        mt_source_close(source);
    }
}

/* A part begins with the sum of what was lost before it. Writes such a part; the caller closes it.
 */
static struct mt_source *make_part(struct cut *cut, bool is_second)
{
    struct mt_error error = {0};
    struct mt_source *source;
    struct mt_event event = {.kind = MT_EVENT_DROPPED, .size_bytes = 7, .stack = MT_NO_ID};

    open_cut(cut, NULL);
    assert_int_equal(mt_symbols_string(&cut->symbols, "why", 3, &event.name), MT_OK);
    event.t_ns = 50;
    if (is_second) {
        add(cut, event);
        assert_int_equal(mt_alive_state_write(cut->alive, cut->writer, 77, &cut->next_seq, &error),
                         MT_OK);
        event = (struct mt_event){.kind = MT_EVENT_ALLOC,
                                  .addr = 1,
                                  .size_bytes = 1,
                                  .stack = MT_NO_ID,
                                  .name = MT_NO_ID};
        event.t_ns = 80;
    }
    event.seq = cut->next_seq;
    assert_int_equal(mt_writer_add(cut->writer, &event, &error), MT_OK);
    assert_int_equal(mt_writer_finish(cut->writer, &error), MT_OK);
    assert_int_equal(mt_trace_open_fd(cut->fd, UINT64_MAX, &source, &error), MT_OK);
    return source;
}

/* Without an event at or before the requested time, the trace begins with the older state of the
 * part: it must not be shorter than requested. */
TEST(state_of_a_part_is_as_old_as_the_part)
{
    static struct mt_event events[MOST];
    struct cut part, cut;
    struct mt_source *source = make_part(&part, true);
    struct mt_ring_copy copy = copy_to(&cut, source, 78);
    struct mt_error error = {0};

    assert_int_equal(mt_ring_copy_source(&copy, source, true, &error), MT_OK);
    assert_int_equal(read_cut(&cut, events), 3);
    assert_int_equal(events[0].t_ns, 77);
    assert_int_equal(copy.first_t_ns, 77);
    mt_source_close(source);
    close_cut(&cut);
    close_cut(&part);
}

/* Whether the loss is kept as an event or was before the first one, it counts once. */
TEST(losses_of_two_parts_count_once)
{
    static struct mt_event events[MOST];

    for (uint64_t from_t_ns = 0; from_t_ns < 100; from_t_ns += 80) {
        struct cut first, second, cut;
        struct mt_source *one = make_part(&first, false), *two = make_part(&second, true);
        struct mt_ring_copy copy = copy_to(&cut, two, from_t_ns);
        struct mt_error error = {0};
        uint64_t lost = 0;

        assert_int_equal(mt_ring_copy_source(&copy, one, true, &error), MT_OK);
        assert_int_equal(mt_ring_copy_source(&copy, two, false, &error), MT_OK);
        assert_int_equal(mt_ring_copy_end(&copy, 0, &error), MT_OK);
        size_t count = read_cut(&cut, events);
        while (count-- > 0)
            lost += events[count].kind == MT_EVENT_DROPPED ? events[count].size_bytes : 0;
        assert_int_equal(lost, 7);
        assert_int_equal(copy.kept + copy.left_out, 2);
        close_cut(&cut);
        mt_source_close(one);
        mt_source_close(two);
        close_cut(&first);
        close_cut(&second);
    }
}

/* Ranges beyond the limit are lost, and so is as much of their ends, on the same thread. */
TEST(too_many_open_ranges)
{
    static struct mt_event events[MOST];
    struct cut cut;
    uint32_t step;

    open_cut(&cut, NULL);
    assert_int_equal(mt_symbols_string(&cut.symbols, "step", 4, &step), MT_OK);
    for (uint64_t i = 0; i < MT_ALIVE_MAX_RANGES + 3; i++)
        add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_PUSH,
                                    .name = step,
                                    .thread = i == 0, /* a range of its own */
                                    .aux_bytes = i});
    add(&cut,
        (struct mt_event){.kind = MT_EVENT_PHASE_POP, .name = step}); /* of one without place */
    add(&cut, (struct mt_event){.kind = MT_EVENT_PHASE_POP, .name = step, .thread = 1});
    assert_int_equal(state_of(&cut, events), MT_ALIVE_MAX_RANGES);
    for (size_t i = 0; i + 1 < MT_ALIVE_MAX_RANGES; i++)
        assert_int_equal(events[i].thread, 0);
    assert_int_equal(events[MT_ALIVE_MAX_RANGES - 2].aux_bytes, MT_ALIVE_MAX_RANGES - 1);
    assert_int_equal(events[MT_ALIVE_MAX_RANGES - 1].kind, MT_EVENT_DROPPED);
    assert_int_equal(events[MT_ALIVE_MAX_RANGES - 1].size_bytes, 2);
    close_cut(&cut);
}

static uint16_t heap_named(struct cut *cut, const char *text)
{
    uint32_t name, heap;

    assert_int_equal(mt_symbols_string(&cut->symbols, text, strlen(text), &name), MT_OK);
    assert_int_equal(mt_symbols_heap(&cut->symbols, name, &heap), MT_OK);
    return (uint16_t)heap;
}

/* Only the driver's device memory counts, for each device, and each rise above the limit. */
TEST(uses_above_the_limit)
{
    struct mt_event block = {.kind = MT_EVENT_ALLOC, .size_bytes = 60};
    struct cut cut;
    uint16_t host;

    open_cut(&cut, NULL);
    block.heap = heap_named(&cut, "driver");
    host = heap_named(&cut, "driver:host");
    mt_alive_state_watch(cut.alive, 100);
    for (block.addr = 0; block.addr < 4; block.addr++) { /* two on each device */
        block.device = block.addr & 1;
        add(&cut, block);
    }
    assert_int_equal(mt_alive_state_exceeded(cut.alive), 2);
    add(&cut,
        (struct mt_event){.kind = MT_EVENT_ALLOC, .addr = 9, .size_bytes = 999, .heap = host});
    for (int i = 0; i < 3; i++) { /* 60, and 120 again; the size of a free does not matter */
        add(&cut,
            (struct mt_event){.kind = MT_EVENT_FREE_COMPLETED, .addr = 2, .heap = block.heap});
        assert_int_equal(mt_alive_state_exceeded(cut.alive), 2 + i);
        add(&cut, (struct mt_event){
                      .kind = MT_EVENT_ALLOC, .addr = 2, .size_bytes = 60, .heap = block.heap});
    }
    assert_int_equal(mt_alive_state_exceeded(cut.alive), 5);
    close_cut(&cut);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
