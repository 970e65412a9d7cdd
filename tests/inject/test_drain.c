/* Tapes made by hand: order, gaps, and what events refer to. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drain.h"
#include "tape_file.h"
#include "ticks.h"

struct tape {
    struct mt_tape *tape;
    struct mt_symbols symbols;
    struct mt_writer *writer;
    struct mt_drain *drain;
    char path[64];
    struct mt_own_file file;
    int trace_fd;
};

static void open_tape(struct tape *t)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    const struct mt_tape_commit begin = {0};
    struct mt_error error = {0};
    FILE *file = tmpfile();

    memset(t, 0, sizeof *t);
    snprintf(t->path, sizeof t->path, "/tmp/test_drain.%d.tape", (int)getpid());
    unlink(t->path);
    assert_int_equal(mt_tape_create(t->path, 16, &t->tape, &t->file, &error), MT_OK);
    assert_true(mt_tape_reserve_definitions(&t->file, t->tape, 65536));
    t->tape->first_point = (struct mt_clock_point){1000, 5000000000};
    t->tape->last_points[0] = (struct mt_clock_point){2000, 5000001000};
    assert_int_equal(mt_symbols_init(&t->symbols), MT_OK);
    t->trace_fd = dup(fileno(file));
    fclose(file);
    assert_int_equal(mt_writer_new(t->trace_fd, &header, &t->symbols, NULL, &t->writer, &error),
                     MT_OK);
    assert_int_equal(mt_drain_new(t->tape, &t->symbols, &begin, &t->drain, &error), MT_OK);
}

static void close_tape(struct tape *t)
{
    mt_drain_free(t->drain);
    mt_writer_free(t->writer);
    mt_symbols_release(&t->symbols);
    mt_tape_unmap(t->tape);
    mt_own_file_close(&t->file);
    close(t->trace_fd);
    unlink(t->path);
}

static void define(struct tape *t, uint32_t kind, uint32_t id, const void *payload, size_t bytes)
{
    uint64_t at = atomic_load(&t->tape->definitions_bytes);
    char *log = (char *)t->tape + t->tape->definitions_offset + at;
    const struct mt_definition definition = {(uint32_t)bytes, kind, id, 0};

    memcpy(log, &definition, sizeof definition);
    memcpy(log + sizeof definition, payload, bytes);
    atomic_store(&t->tape->definitions_bytes, at + (sizeof definition + bytes + 7) / 8 * 8);
}

static void commit(struct tape *t, uint32_t slot_index, struct mt_raw_event event)
{
    struct mt_slot *slot = mt_tape_slot(t->tape, slot_index);
    uint32_t count = atomic_load(&slot->committed);

    if (atomic_load(&slot->state) == MT_SLOT_FREE)
        atomic_store(&slot->state, MT_SLOT_OPEN);
    slot->thread = slot_index + 1;
    slot->events[count] = event;
    atomic_store(&slot->committed, count + 1);
    if (count + 1 == MT_SLOT_EVENTS)
        atomic_store(&slot->state, MT_SLOT_FULL);
    if (event.seq >= atomic_load(&t->tape->next_seq))
        atomic_store(&t->tape->next_seq, event.seq + 1);
}

static struct mt_raw_event alloc_of(uint64_t seq)
{
    return (struct mt_raw_event){.seq = seq,
                                 .ticks = 1000 + seq,
                                 .addr = (seq + 1) << 12,
                                 .size_bytes = seq,
                                 .kind = MT_EVENT_ALLOC,
                                 .heap = MT_RAW_PYTORCH,
                                 .device = UINT8_MAX};
}

static struct mt_drain_result pass(struct tape *t, enum mt_drain_mode mode)
{
    struct mt_drain_result result;
    struct mt_error error = {0};

    if (mt_drain_pass(t->drain, t->writer, mode, &result, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(mt_writer_flush(t->writer, &error), MT_OK);
    mt_drain_commit(t->drain, mt_writer_bytes(t->writer));
    return result;
}

/* Ends the trace and reads all of it into `all`, which holds 4096 events. */
static struct mt_source *read_back(struct tape *t, struct mt_event_batch *all)
{
    static struct mt_event events[4096];
    struct mt_error error = {0};
    struct mt_event_batch batch;
    struct mt_source *source;
    enum mt_status status;
    char path[64];

    *all = (struct mt_event_batch){.events = events};
    assert_int_equal(mt_writer_finish(t->writer, &error), MT_OK);
    snprintf(path, sizeof path, "/proc/self/fd/%d", t->trace_fd);
    assert_int_equal(mt_trace_open(path, &source, &error), MT_OK);
    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        assert_true(all->count + batch.count <= 4096);
        memcpy(events + all->count, batch.events, batch.count * sizeof *events);
        all->count += batch.count;
    }
    assert_int_equal(status, MT_END);
    return source;
}

static uint64_t count_kind(const struct mt_event_batch *batch, uint8_t kind)
{
    uint64_t count = 0;

    for (size_t i = 0; i < batch->count; i++)
        count += batch->events[i].kind == kind;
    return count;
}

TEST(slots_are_merged_by_number)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    for (uint64_t seq = 0; seq < 3000; seq++)
        commit(&t, (uint32_t)(seq * 7 % 11), alloc_of(seq));
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).events, 3000);
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).events, 0);
    struct mt_source *source = read_back(&t, &batch);
    for (uint64_t seq = 0; seq < 3000; seq++) {
        assert_int_equal(batch.events[seq].size_bytes, seq);
        assert_int_equal(batch.events[seq].seq, seq);
        assert_int_equal(batch.events[seq].t_ns, 5000000000 + seq); /* a tick is a ns here */
    }
    mt_source_close(source);
    close_tape(&t);
}

TEST(slots_become_free_when_written)
{
    struct tape t;
    uint64_t seq;

    open_tape(&t);
    for (seq = 0; seq < MT_SLOT_EVENTS; seq++)
        commit(&t, 3, alloc_of(seq));
    commit(&t, 4, alloc_of(seq));
    assert_int_equal(atomic_load(&mt_tape_slot(t.tape, 3)->state), MT_SLOT_FULL);
    pass(&t, MT_DRAIN_LIVE);
    assert_int_equal(atomic_load(&mt_tape_slot(t.tape, 3)->state), MT_SLOT_FREE);
    assert_int_equal(atomic_load(&mt_tape_slot(t.tape, 4)->state), MT_SLOT_OPEN);
    for (seq++; seq < 700; seq++)
        commit(&t, 3, alloc_of(seq)); /* used again */
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).events, 700 - MT_SLOT_EVENTS - 1);
    close_tape(&t);
}

TEST(a_gap_holds_up_the_living)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    commit(&t, 1, alloc_of(2)); /* 1 is being written by somebody */
    struct mt_drain_result result = pass(&t, MT_DRAIN_LIVE);
    assert_int_equal(result.events, 1);
    assert_int_equal(result.waiting, 1);
    commit(&t, 0, alloc_of(1));
    result = pass(&t, MT_DRAIN_LIVE);
    assert_int_equal(result.events, 2);
    assert_int_equal(result.waiting, 0);
    commit(&t, 0, alloc_of(4));
    commit(&t, 1, alloc_of(6));
    result = pass(&t, MT_DRAIN_SKIP); /* one gap is given up, the next waits */
    assert_int_equal(result.missing, 1);
    assert_int_equal(result.waiting, 1);
    commit(&t, 2, alloc_of(3)); /* too late: said to be missing already */
    result = pass(&t, MT_DRAIN_DEAD);
    assert_int_equal(result.missing, 1);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(batch.events[2].size_bytes, 2);
    assert_int_equal(batch.events[3].kind, MT_EVENT_DROPPED);
    assert_int_equal(batch.events[3].size_bytes, 1);
    assert_int_equal(batch.events[4].size_bytes, 4);
    assert_int_equal(batch.events[5].kind, MT_EVENT_DROPPED);
    assert_int_equal(batch.events[6].size_bytes, 6);
    assert_int_equal(batch.events[7].kind, MT_EVENT_END);
    mt_source_close(source);
    close_tape(&t);
}

/* What was given up and comes late is not counted again, while the process lives and goes on. What
 * has no number of its own is counted, whatever was given up before and never came. */
TEST(late_events_are_counted_once)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    commit(&t, 1, alloc_of(4)); /* 1, 2 and 3 are being written */
    assert_int_equal(pass(&t, MT_DRAIN_SKIP).missing, 3);
    commit(&t, 0, alloc_of(5));
    commit(&t, 2, alloc_of(2)); /* late */
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).missing, 0);
    commit(&t, 3, alloc_of(2)); /* twice */
    commit(&t, 1, alloc_of(4)); /* was never given up */
    commit(&t, 0, alloc_of(6));
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).missing, 2);
    commit(&t, 2, alloc_of(3));
    commit(&t, 3, alloc_of(1));
    assert_int_equal(pass(&t, MT_DRAIN_LIVE).missing, 0);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(count_kind(&batch, MT_EVENT_ALLOC), 4);
    assert_int_equal(source->integrity.events_dropped, 5);
    mt_source_close(source);
    close_tape(&t);
}

/* Clocks that no machine has: the time is the nearest one that there is. */
TEST(impossible_clocks_are_clamped)
{
    const struct mt_clock_point first = {1, 1}, steep = {2, UINT64_MAX - 1};
    const struct mt_clock_point late = {1000, UINT64_MAX - 10};

    assert_true(mt_ticks_unix_ns(first, steep, UINT64_MAX) == UINT64_MAX);
    assert_true(mt_ticks_unix_ns(first, late, UINT64_MAX) == UINT64_MAX);
    assert_true(mt_ticks_unix_ns(first, late, 2000) == UINT64_MAX); /* the sum, too */
    assert_true(mt_ticks_unix_ns((struct mt_clock_point){UINT64_MAX - 2, 1},
                                 (struct mt_clock_point){UINT64_MAX - 1, UINT64_MAX - 1}, 0) == 0);
    assert_true(mt_ticks_unix_ns(first, (struct mt_clock_point){1001, 1001}, 500) == 500);
}

/* Numbers that were taken and never committed, with nothing behind them. */
TEST(the_last_numbers_are_missed)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    atomic_store(&t.tape->next_seq, 4);
    assert_int_equal(pass(&t, MT_DRAIN_DEAD).missing, 3);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(batch.count, 3);
    assert_int_equal(batch.events[1].kind, MT_EVENT_DROPPED);
    assert_int_equal(batch.events[1].size_bytes, 3);
    mt_source_close(source);
    close_tape(&t);
}

/* A damaged event is taken, not waited for. */
TEST(what_is_taken_does_not_wait)
{
    struct tape t;

    open_tape(&t);
    struct mt_raw_event event = alloc_of(0);
    event.kind = 200;
    commit(&t, 0, event);
    commit(&t, 1, alloc_of(2));
    struct mt_drain_result result = pass(&t, MT_DRAIN_LIVE);
    assert_int_equal(result.missing, 1);
    assert_int_equal(result.waiting, 1);
    close_tape(&t);
}

/* Numbers that no process takes: backwards, twice, and with more gaps than slots. Each event is in
 * the trace, or is counted. */
TEST(any_numbers_are_sorted)
{
    enum { EVENTS = 20, LAST = 2 * EVENTS, BEHIND = 3 };
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    for (uint64_t i = 0; i < EVENTS; i++)
        commit(&t, 0, alloc_of(LAST - 2 * i));
    commit(&t, 1, alloc_of(2));
    atomic_store(&t.tape->next_seq, LAST + 1 + BEHIND);
    struct mt_drain_result result = pass(&t, MT_DRAIN_DEAD);
    assert_int_equal(result.missing, LAST + 1 - EVENTS + BEHIND + 1 /* the second 2 */);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(count_kind(&batch, MT_EVENT_ALLOC), EVENTS);
    assert_int_equal(source->integrity.events_dropped, result.missing);
    mt_source_close(source);
    close_tape(&t);
}

static struct mt_raw_event alloc_at(uint64_t seq, uint64_t addr)
{
    struct mt_raw_event event = alloc_of(seq);

    event.addr = addr;
    return event;
}

static void pass_twins(enum mt_drain_mode mode)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    commit(&t, 5, alloc_at(1, 0x5000));
    commit(&t, 2, alloc_at(1, 0x2000));
    commit(&t, 9, alloc_at(1, 0x9000));
    commit(&t, 0, alloc_of(2));
    struct mt_drain_result result = pass(&t, mode);
    assert_int_equal(result.missing, 2);
    assert_int_equal(result.waiting, 0);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(count_kind(&batch, MT_EVENT_ALLOC), 3);
    assert_int_equal(batch.events[1].addr, 0x2000);
    assert_int_equal(source->integrity.events_dropped, 2);
    mt_source_close(source);
    close_tape(&t);
}

/* Two events of one number: the one in the lower slot counts, the other one is damage. */
TEST(twins_are_counted)
{
    pass_twins(MT_DRAIN_DEAD);
    pass_twins(MT_DRAIN_LIVE);
}

static void pass_beyond(enum mt_drain_mode mode)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    commit(&t, 3, alloc_of(MT_MAX_SEQ - 1));
    commit(&t, 3, alloc_of(2));
    commit(&t, 3, alloc_of(3));
    commit(&t, 0, alloc_of(1));
    atomic_store(&t.tape->next_seq, 3);
    struct mt_drain_result result = pass(&t, mode);
    assert_int_equal(result.missing, 2);
    assert_int_equal(result.waiting, 0);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(count_kind(&batch, MT_EVENT_ALLOC), 3);
    assert_int_equal(source->integrity.events_dropped, 2);
    mt_source_close(source);
    close_tape(&t);
}

/* A number that the process never took is damage. It must not count all numbers before it as
 * missing, nor hold up the events behind it. */
TEST(numbers_never_taken_are_damage)
{
    pass_beyond(MT_DRAIN_DEAD);
    pass_beyond(MT_DRAIN_LIVE);
    pass_beyond(MT_DRAIN_SKIP);
}

/* Events of kinds that do not exist: only a damaged tape has them. */
TEST(damaged_events_are_counted)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    struct mt_raw_event event = alloc_of(0);
    event.kind = 200;
    commit(&t, 0, event);
    assert_int_equal(pass(&t, MT_DRAIN_DEAD).missing, 1);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(batch.events[0].kind, MT_EVENT_DROPPED);
    assert_int_equal(batch.events[0].size_bytes, 1);
    mt_source_close(source);
    close_tape(&t);
}

TEST(definitions_become_symbols)
{
    const uint64_t thread[2] = {1, 4711}, pool[2] = {0, 7}, words[2] = {UINT64_C(1) << 32, 0};
    const uint64_t addresses[1] = {0x1235};
    struct {
        uint64_t facts[2];
        char name[4];
    } device = {{80, 2}, {'H', '2', '0', '0'}};
    struct mt_trace_header header = {.rank = -1};
    struct mt_event_batch batch;
    char thread_payload[20];
    struct tape t;
    bool changed;

    open_tape(&t);
    memcpy(thread_payload, thread, 16);
    memcpy(thread_payload + 16, "main", 4);
    define(&t, MT_DEFINE_THREAD, 1, thread_payload, sizeof thread_payload);
    define(&t, MT_DEFINE_POOL, 1, pool, sizeof pool);
    define(&t, MT_DEFINE_NAME, 1, "forward", 7);
    define(&t, MT_DEFINE_PYTHON_STACK, 1, words, 8);
    define(&t, MT_DEFINE_NATIVE_STACK, 1, addresses, 8);
    define(&t, MT_DEFINE_DEVICE, 1, &device, 20);
    define(&t, MT_DEFINE_FACT, 1, "sources=cupti", 13);
    define(&t, MT_DEFINE_FACT, 2, "sources=nvtx", 12);
    define(&t, MT_DEFINE_FACT, 3, "sources=cupti", 13);
    define(&t, MT_DEFINE_FACT, 4, "rank=3", 6);
    define(&t, MT_DEFINE_FACT, 5, "has_stacks=1", 12);
    struct mt_raw_event event = alloc_of(0);
    event.device = 2;
    event.id = 1;
    event.stream = 0x55;
    event.python_stack = 1;
    event.native_stack = 1;
    commit(&t, 0, event);
    event = (struct mt_raw_event){.seq = 1, .kind = MT_EVENT_PHASE_PUSH, .id = 1, .device = 255};
    commit(&t, 0, event);
    event = (struct mt_raw_event){
        .seq = 2, .kind = MT_EVENT_PHASE_POP, .id = 1, .aux_bytes = 1, .device = 0};
    commit(&t, 5, event); /* a thread that nobody described ends the first one's range */
    event = alloc_of(3);
    event.id = 99; /* not defined */
    event.native_stack = 99;
    event.heap = 200;
    commit(&t, 5, event);
    pass(&t, MT_DRAIN_LIVE);
    assert_int_equal(mt_drain_definitions(t.drain, &changed), MT_OK);
    assert_true(changed);
    mt_drain_header(t.drain, &header);
    assert_string_equal(header.sources, "cupti,nvtx");
    assert_int_equal(header.rank, 3);
    assert_true(header.has_stacks);
    assert_int_equal(mt_drain_definitions(t.drain, &changed), MT_OK);
    assert_false(changed);

    struct mt_source *source = read_back(&t, &batch);
    const struct mt_symbols *symbols = &source->symbols;
    assert_int_equal(batch.events[0].device, 2);
    assert_string_equal(mt_symbols_text(symbols, symbols->devices[2].name), "H200");
    assert_int_equal(symbols->pools[batch.events[0].pool].id[1], 7);
    assert_int_equal(symbols->streams[batch.events[0].stream].handle, 0x55);
    assert_int_equal(symbols->threads[batch.events[0].thread].os_id, 4711);
    assert_string_equal(mt_symbols_text(symbols, symbols->heaps[batch.events[0].heap].name),
                        "pytorch");
    assert_int_equal(symbols->stacks[batch.events[0].stack].depth, 2);
    assert_string_equal(mt_symbols_text(symbols, batch.events[1].name), "forward");
    assert_int_equal(batch.events[1].device, 2); /* the thread's last one */
    assert_int_equal(batch.events[2].thread, batch.events[0].thread);
    assert_int_equal(batch.events[2].aux_bytes, 0);
    assert_int_equal(batch.events[3].pool, 0);
    assert_int_equal(batch.events[3].heap, 0);
    assert_int_equal(batch.events[3].thread, 0);
    assert_int_equal(batch.events[3].stack, MT_NO_ID);
    mt_source_close(source);
    close_tape(&t);
}

/* The events are all there, so none is counted as dropped. */
TEST(missing_definitions_are_told_once)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    atomic_store(&t.tape->dropped_definitions, 3);
    pass(&t, MT_DRAIN_LIVE);
    atomic_store(&t.tape->dropped_definitions, 4);
    pass(&t, MT_DRAIN_LIVE);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(batch.count, 3);
    assert_int_equal(batch.events[1].kind, MT_EVENT_DROPPED);
    assert_int_equal(batch.events[1].size_bytes, 0);
    assert_non_null(strstr(mt_symbols_text(&source->symbols, batch.events[1].name), "no room"));
    assert_int_equal(source->integrity.events_dropped, 0);
    mt_source_close(source);
    close_tape(&t);
}

/* The counter of the time stamp and the clock are read one after the other. */
TEST(time_never_goes_back)
{
    struct mt_event_batch batch;
    struct tape t;

    open_tape(&t);
    commit(&t, 0, alloc_of(0));
    struct mt_raw_event event = alloc_of(1);
    event.ticks = 1700;
    commit(&t, 0, event);
    event = alloc_of(2);
    event.ticks = 1650;
    commit(&t, 1, event);
    pass(&t, MT_DRAIN_LIVE);
    struct mt_source *source = read_back(&t, &batch);
    assert_int_equal(batch.events[1].t_ns, 5000000700);
    assert_int_equal(batch.events[2].t_ns, 5000000700);
    mt_source_close(source);
    close_tape(&t);
}

TEST(ticks_follow_the_clock)
{
    const struct mt_clock_point first = {100, 1000}, last = {300, 1400};
    struct mt_clock clock;
    struct timespec pause = {0, 20000000};

    assert_int_equal(mt_ticks_unix_ns(first, last, 200), 1200);
    assert_int_equal(mt_ticks_unix_ns(first, last, 350), 1500);
    assert_int_equal(mt_ticks_unix_ns(first, last, 50), 900);
    assert_int_equal(mt_ticks_unix_ns(first, first, 350), 1000);
    mt_clock_start(&clock);
    struct mt_clock_point a = mt_clock_now(&clock);
    nanosleep(&pause, NULL);
    uint64_t before = mt_now_ns() + clock.unix_less_ns;
    uint64_t ticks = mt_clock_ticks(&clock);
    uint64_t after = mt_now_ns() + clock.unix_less_ns;
    nanosleep(&pause, NULL);
    struct mt_clock_point b = mt_clock_now(&clock);
    assert_in_range(mt_ticks_unix_ns(a, b, ticks), before - 200000, after + 200000);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
