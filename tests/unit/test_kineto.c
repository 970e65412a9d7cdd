/* Traces of torch.profiler: events, order, state at the start, stacks, phases, facts of the header;
 * files that are cut anywhere, and events that do not fit. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "importers.h"
#include "util.h"

#define FACTS                                                                                      \
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\", "        \
    "\"totalGlobalMem\": 1073741824, \"numSms\": 132}], \"distributedInfo\": {\"backend\": "       \
    "\"nccl\", \"rank\": 3, \"pg_config\": [{\"ranks\": [0]}], \"world_size\": 8},\n"
#define ROWS "\"traceEvents\": [\n"
#define END  "{\"ph\": \"i\", \"name\": \"Record Window End\", \"pid\": \"\", \"ts\": 99}\n]}\n"

struct read {
    enum mt_status status;
    struct mt_source *source;
    struct mt_event events[64];
    size_t count;
    struct mt_error error;
};

static void open_only(const char *bytes, size_t length, struct read *read)
{
    char *copy = malloc(length + 1); /* sanitizers see a byte read after it */
    struct mt_feed *feed;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    assert_int_equal(mt_feed_open_memory(copy, length, &feed, &read->error), MT_OK);
    read->status = mt_kineto_open(feed, &read->source, &read->error);
    mt_feed_close(feed);
    free(copy);
}

static struct read read_bytes(const char *bytes, size_t length)
{
    struct read read = {.error = {.text = ""}};
    struct mt_event_batch batch;

    open_only(bytes, length, &read);
    if (read.status != MT_OK) {
        assert_true(read.error.text[0]);
        return read;
    }
    read.source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(read.source, &batch, &read.error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(read.count < MT_ARRAY_LEN(read.events));
            read.events[read.count++] = batch.events[i];
        }
    return read;
}

static struct read read_text(const char *text)
{
    struct read read = read_bytes(text, strlen(text));

    assert_true(mt_kineto_probe(text, mt_min_u64(strlen(text), MT_FEED_START_BYTES)));
    if (read.status != MT_OK)
        fail_msg("%s", read.error.text);
    return read;
}

struct memory {
    const char *t_us;
    int64_t bytes, allocated, addr, index;
    int device, type, thread;
};

static void add_memory(struct mt_buf *out, const struct memory *memory)
{
    mt_buf_printf(out,
                  "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": "
                  "\"[memory]\", \"pid\": 1, \"tid\": %d, \"ts\": %s, \"args\": {\"Total "
                  "Reserved\": 2097152, \"Total Allocated\": %lld, \"Bytes\": %lld, \"Device Id\": "
                  "%d, \"Device Type\": %d, \"Addr\": %lld, \"Ev Idx\": %lld}},\n",
                  memory->thread, memory->t_us, (long long)memory->allocated,
                  (long long)memory->bytes, memory->type ? memory->device : -1, memory->type,
                  (long long)memory->addr, (long long)memory->index);
}

static void add_range(struct mt_buf *out, const char *category, const char *name, const char *times)
{
    mt_buf_printf(out,
                  "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": 7, %s, "
                  "\"args\": {\"External id\": 1, \"Bytes\": \"none\"}},\n",
                  category, name, times);
}

static struct read read_memory(const struct memory *list, size_t count)
{
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "{" ROWS);
    for (size_t i = 0; i < count; i++)
        add_memory(&text, &list[i]);
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    mt_buf_release(&text);
    return read;
}

static void expect(const struct read *read, size_t i, uint8_t kind, uint64_t t_ns, uint64_t addr,
                   uint64_t bytes)
{
    assert_true(i < read->count);
    assert_int_equal(read->events[i].kind, kind);
    assert_int_equal(read->events[i].t_ns, t_ns);
    assert_int_equal(read->events[i].addr, addr);
    assert_int_equal(read->events[i].size_bytes, bytes);
}

/* Out of order in the file; two of the same time are ordered by their totals. */
TEST(events_in_their_order)
{
    static const struct memory list[] = {
        {"7.5", -512, 1024, 4096, 5, 0, 1, 7},
        {"5.001", 512, 512, 4096, 1, 0, 1, 7},
        {"6", 512, 1536, 1 << 20, 3, 0, 1, 9},
        {"6", 512, 1024, 8192, 4, 0, 1, 7},
        {"1000000000000.125", -512, 512, 8192, 6, 0, 1, 7},
    };
    struct read read = read_memory(list, MT_ARRAY_LEN(list));

    assert_int_equal(read.count, 6);
    expect(&read, 0, MT_EVENT_ALLOC, 5001, 4096, 512);
    assert_int_equal(read.events[0].aux_bytes, 512);
    expect(&read, 1, MT_EVENT_ALLOC, 6000, 8192, 512);
    expect(&read, 2, MT_EVENT_ALLOC, 6000, 1 << 20, 512);
    assert_int_not_equal(read.events[1].thread, read.events[2].thread);
    expect(&read, 3, MT_EVENT_FREE_REQUESTED, 7500, 4096, 512);
    expect(&read, 4, MT_EVENT_FREE_REQUESTED, 1000000000000125, 8192, 512);
    assert_int_equal(read.events[5].kind, MT_EVENT_END);
    assert_int_equal(read.source->integrity.events_dropped, 0);
    assert_false(read.source->header.starts_in_middle);
    assert_true(read.source->header.sizes_rounded);
    assert_false(read.source->header.has_segments);
    assert_non_null(mt_header_why_only_recorded(&read.source->header));
    mt_source_close(read.source);
}

TEST(facts_of_the_header)
{
    struct mt_buf text = {0};
    const struct memory memory = {"4000000.5", 512, 512, 4096, 1, 0, 1, 7};
    const struct memory host = {"3", 8, 8, 64, 1, 0, 0, 7};

    mt_buf_add_text(&text, FACTS ROWS);
    add_memory(&text, &memory);
    add_memory(&text, &host);
    mt_buf_add_text(&text, "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": 7, "
                           "\"args\": {\"name\": \"thread 7 (python3)\"}}],\n"
                           "\"baseTimeNanoseconds\": 1790857026000000000}");
    struct read read = read_text(text.data);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.events[0].t_ns, UINT64_C(1790857026000000000) + 4000000500);
    assert_int_equal(read.source->header.rank, 3);
    assert_int_equal(read.source->header.world_size, 8);
    assert_string_equal(read.source->header.framework, "PyTorch");
    assert_string_equal(read.source->header.sources, MT_SOURCES_KINETO);
    assert_string_equal(read.source->header.not_used,
                        "1 event of host memory (Device Type 0)\n"
                        "Total Reserved of gpu 0: 2,097,152 bytes at first, 2,097,152 at most, 0 "
                        "changes");
    assert_string_equal(
        mt_symbols_text(&read.source->symbols, read.source->symbols.devices[0].name),
        "NVIDIA H200");
    assert_int_equal(read.source->symbols.devices[0].total_memory_bytes, MT_GIB);
    assert_int_equal(read.source->symbols.threads[read.events[0].thread].os_id, 7);
    assert_string_equal(mt_symbols_text(&read.source->symbols,
                                        read.source->symbols.threads[read.events[0].thread].name),
                        "thread 7 (python3)");
    mt_source_close(read.source);
    mt_buf_release(&text);
}

/* Blocks from before the profile whose frees are in the file, and one block for the others. */
TEST(state_at_the_start)
{
    static const struct memory list[] = {
        {"5", 512, 4096, 4096, 1, 0, 1, 7},
        {"6", -1024, 3072, 8192, 2, 0, 1, 7},
        {"7", -512, 2560, 4096, 3, 0, 1, 7},
        {"8", -100, 900, 64, 4, 1, 1, 7},
    };
    struct read read = read_memory(list, MT_ARRAY_LEN(list));

    assert_int_equal(read.count, 9);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read.events[i].kind, MT_EVENT_ALLOC);
        assert_int_equal(read.events[i].flags, MT_EVENT_INITIAL);
        assert_int_equal(read.events[i].t_ns, 5000);
    }
    assert_int_equal(read.events[0].size_bytes, 1024);
    assert_int_equal(read.events[0].addr, 8192);
    assert_int_equal(read.events[1].size_bytes, 100);
    assert_int_equal(read.events[1].device, 1);
    assert_int_equal(read.events[2].size_bytes, 4096 - 512 - 1024);
    assert_int_equal(read.events[3].size_bytes, 900);
    assert_int_equal(read.events[3].device, 1);
    assert_true(read.source->header.starts_in_middle);
    assert_int_equal(read.source->integrity.events_dropped, 0);
    mt_source_close(read.source);
}

/* Returns the frames, innermost first. */
static const char *stack_text(const struct mt_source *source, uint32_t stack, struct mt_buf *out)
{
    const struct mt_symbols *symbols = &source->symbols;

    mt_buf_reset(out);
    mt_buf_add_text(out, "");
    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];

        mt_buf_printf(out, "%s|%s|%u;", mt_symbols_text(symbols, frame->function),
                      mt_symbols_text(symbols, frame->file), (unsigned)frame->line);
    }
    return out->data ? out->data : "";
}

TEST(stacks_and_phases)
{
    static const struct memory list[] = {
        {"12", 512, 512, 4096, 1, 0, 1, 7},  {"14", -512, 512, 4096, 2, 0, 1, 7},
        {"20", 512, 1024, 4096, 3, 0, 1, 7}, {"31", -512, 512, 4096, 4, 0, 1, 7},
        {"12", 512, 1024, 8192, 5, 0, 1, 9},
    };
    struct mt_buf text = {0}, stack = {0};

    mt_buf_add_text(&text, "{" ROWS);
    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++)
        add_memory(&text, &list[i]);
    add_range(&text, "cpu_op", "aten::empty", "\"ts\": 12, \"dur\": 0");
    add_range(&text, "cpu_op", "aten::mm", "\"ts\": 11, \"dur\": 9");
    add_range(&text, "cpu_op", "aten::add", "\"ts\": 20, \"dur\": 1");
    add_range(&text, "python_function", "/app/train.py(47): forward", "\"ts\": 10.5, \"dur\": 15");
    add_range(&text, "python_function", "nn.Module: Linear_0", "\"ts\": 10, \"dur\": 16");
    add_range(&text, "kernel", "void gemm", "\"ts\": 10, \"dur\": 16");
    add_range(&text, "user_annotation", "ProfilerStep#3", "\"ts\": 1, \"dur\": 30");
    add_range(&text, "user_annotation", "forward", "\"ts\": 1, \"dur\": 19");
    add_range(&text, "user_annotation", "instant", "\"ts\": 14, \"dur\": 0");
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    assert_int_equal(read.count, 12);
    assert_int_equal(read.events[0].kind, MT_EVENT_PHASE_PUSH);
    assert_string_equal(mt_symbols_text(&read.source->symbols, read.events[0].name),
                        "ProfilerStep#3");
    assert_int_equal(read.events[1].kind, MT_EVENT_PHASE_PUSH);
    assert_string_equal(stack_text(read.source, read.events[2].stack, &stack),
                        "aten::empty||0;aten::mm||0;forward|/app/train.py|47;nn.Module: "
                        "Linear_0||0;");
    assert_int_equal(read.events[3].stack, MT_NO_ID); /* of the other thread */
    assert_string_equal(stack_text(read.source, read.events[5].stack, &stack),
                        "aten::mm||0;forward|/app/train.py|47;nn.Module: Linear_0||0;");
    assert_int_equal(read.events[4].kind, MT_EVENT_PHASE_PUSH); /* the memory event is within */
    assert_int_equal(read.events[6].kind, MT_EVENT_PHASE_POP);
    assert_string_equal(stack_text(read.source, read.events[7].stack, &stack),
                        "aten::add||0;forward|/app/train.py|47;nn.Module: Linear_0||0;");
    assert_int_equal(read.events[8].kind, MT_EVENT_PHASE_POP); /* forward, at 20 */
    assert_int_equal(read.events[9].stack, MT_NO_ID);
    assert_int_equal(read.events[9].thread, read.events[0].thread);
    assert_int_equal(read.events[10].kind, MT_EVENT_PHASE_POP); /* the step, at 31 */
    assert_true(read.source->header.has_stacks);
    mt_source_close(read.source);
    mt_buf_release(&text);
    mt_buf_release(&stack);
}

/* An operation that ends before the one within it ended: only the open ones are the stack. */
TEST(ranges_that_overlap)
{
    static const struct memory list[] = {
        {"3", 512, 512, 4096, 1, 0, 1, 7},
        {"6", 512, 1024, 8192, 2, 0, 1, 7},
    };
    struct mt_buf text = {0}, stack = {0};

    mt_buf_add_text(&text, "{" ROWS);
    add_range(&text, "cpu_op", "a", "\"ts\": 1, \"dur\": 4");
    add_range(&text, "cpu_op", "b", "\"ts\": 2, \"dur\": 9");
    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++)
        add_memory(&text, &list[i]);
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    assert_string_equal(stack_text(read.source, read.events[0].stack, &stack), "b||0;a||0;");
    assert_string_equal(stack_text(read.source, read.events[1].stack, &stack), "b||0;");
    mt_source_close(read.source);
    mt_buf_release(&text);
    mt_buf_release(&stack);
}

/* A total that does not follow, a block that is already alive, and a free of another size. */
TEST(missing_events)
{
    static const struct memory lists[][3] = {
        {{"1", 512, 512, 4096, 1, 0, 1, 7},
         {"2", 512, 2048, 8192, 2, 0, 1, 7},
         {"3", 512, 2560, 16384, 3, 0, 1, 7}},
        {{"1", 512, 512, 4096, 1, 0, 1, 7},
         {"2", 512, 1024, 4096, 2, 0, 1, 7},
         {"3", 512, 1536, 16384, 3, 0, 1, 7}},
        {{"1", 512, 512, 4096, 1, 0, 1, 7},
         {"2", -256, 256, 4096, 2, 0, 1, 7},
         {"3", 512, 768, 16384, 3, 0, 1, 7}},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(lists); i++) {
        struct read read = read_memory(lists[i], 3);

        assert_int_equal(read.source->integrity.events_dropped, 1);
        assert_int_equal(read.events[1].kind, MT_EVENT_DROPPED);
        assert_string_equal(mt_symbols_text(&read.source->symbols, read.events[1].name),
                            "Total Allocated or the blocks show that events are missing");
        assert_non_null(strstr(read.source->header.not_used, "1 event does not follow"));
        mt_source_close(read.source);
    }
}

/* Checks the level of gpu 0 after each time at which the file has a total. */
static void expect_levels(const struct read *read, const struct memory *list, size_t count)
{
    uint64_t addrs[MT_ARRAY_LEN(read->events)], sizes[MT_ARRAY_LEN(read->events)], level = 0;
    size_t live = 0, next = 0;

    for (size_t i = 0; i < read->count && next < count; i++) {
        const struct mt_event *event = &read->events[i];
        size_t at = 0;

        if (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED)
            continue;
        while (at < live && addrs[at] != event->addr)
            at++;
        assert_true(event->kind == MT_EVENT_ALLOC || at < live);
        if (at < live) {
            level -= sizes[at];
            addrs[at] = addrs[--live];
            sizes[at] = sizes[live];
        }
        if (event->kind == MT_EVENT_ALLOC) {
            addrs[live] = event->addr;
            sizes[live++] = event->size_bytes;
            level += event->size_bytes;
        }
        if (read->events[i + 1].t_ns == event->t_ns && read->events[i + 1].kind != MT_EVENT_END)
            continue;
        assert_int_equal(level, list[next].allocated);
        next++;
    }
    assert_int_equal(next, count);
}

/* What is missing is found, or one block takes up the difference. */
TEST(levels_are_the_totals)
{
    static const struct {
        uint64_t dropped;
        struct memory list[4];
    } rows[] = {
        /* the allocation of 8192 is missing before the second event */
        {1,
         {{"1", 512, 512, 4096, 1, 0, 1, 7},
          {"2", 512, 3072, 16384, 2, 0, 1, 7},
          {"3", -2048, 1024, 8192, 3, 0, 1, 7},
          {"4", 512, 1536, 8192, 4, 0, 1, 7}}},
        /* allocations are missing, and their frees */
        {2,
         {{"1", 512, 512, 4096, 1, 0, 1, 7},
          {"2", 512, 3072, 16384, 2, 0, 1, 7},
          {"3", 512, 2560, 32768, 3, 0, 1, 7},
          {"4", -512, 2048, 4096, 4, 0, 1, 7}}},
        /* one address is freed twice, and no total has room for its allocation */
        {1,
         {{"1", -512, 1024, 4096, 1, 0, 1, 7},
          {"2", -512, 512, 4096, 2, 0, 1, 7},
          {"3", 512, 1024, 1048576, 3, 0, 1, 7},
          {"4", 512, 1536, 4096, 4, 0, 1, 7}}},
        /* a block is at the address that the block from before the profile usually has */
        {0,
         {{"1", 512, 8704, 512, 1, 0, 1, 7},
          {"2", 512, 9216, 8192, 2, 0, 1, 7},
          {"3", -512, 8704, 512, 3, 0, 1, 7},
          {"4", -1024, 7680, 1024, 4, 0, 1, 7}}},
        /* an address is allocated twice, and a free has another size */
        {2,
         {{"1", 512, 512, 4096, 1, 0, 1, 7},
          {"2", 512, 1024, 4096, 2, 0, 1, 7},
          {"3", -256, 768, 4096, 3, 0, 1, 7},
          {"4", 512, 1280, 8192, 4, 0, 1, 7}}},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        struct read read = read_memory(rows[i].list, 4);

        expect_levels(&read, rows[i].list, 4);
        assert_int_equal(read.source->integrity.events_dropped, rows[i].dropped);
        assert_int_equal(read.source->header.starts_in_middle, i == 2 || i == 3);
        mt_source_close(read.source);
    }
}

/* Totals that no blocks can have: the reading says so. */
TEST(totals_that_contradict)
{
    static const struct memory lists[][3] = {
        {{"1", 512, 512, 4096, 1, 0, 1, 7},
         {"2", -512, 0, 8192, 2, 0, 1, 7},
         {"3", 512, 512, 12288, 3, 0, 1, 7}},
        {{"1", 4096, 512, 4096, 1, 0, 1, 7},
         {"2", 512, 1024, 8192, 2, 0, 1, 7},
         {"3", 512, 1536, 16384, 3, 0, 1, 7}},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(lists); i++) {
        struct read read = read_memory(lists[i], 3);

        assert_int_equal(read.source->integrity.events_dropped, 1);
        assert_int_equal(read.count, i ? 5 : 4); /* a free without a block is left out */
        assert_false(read.source->header.starts_in_middle);
        mt_source_close(read.source);
    }
}

/* Blocks from before the profile have the time of the first event of any kind, so ranges keep their
 * times. */
TEST(ranges_before_the_memory)
{
    static const struct memory memory = {"1000", 512, 4096, 4096, 1, 0, 1, 7};
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "{" ROWS);
    add_memory(&text, &memory);
    add_range(&text, "user_annotation", "early", "\"ts\": 10, \"dur\": 100");
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    expect(&read, 0, MT_EVENT_ALLOC, 10000, 512, 4096 - 512);
    expect(&read, 1, MT_EVENT_PHASE_PUSH, 10000, 0, 0);
    expect(&read, 2, MT_EVENT_PHASE_POP, 110000, 0, 0);
    expect(&read, 3, MT_EVENT_ALLOC, 1000000, 4096, 512);
    mt_source_close(read.source);
    mt_buf_release(&text);
}

/* A phase and an operation that end with a memory event have it, unless others start then. */
TEST(ends_of_ranges)
{
    static const struct memory memory = {"20", 512, 512, 4096, 1, 0, 1, 7};

    for (int is_followed = 0; is_followed < 2; is_followed++) {
        struct mt_buf text = {0}, stack = {0};
        const char *phase = NULL;

        mt_buf_add_text(&text, "{" ROWS);
        add_memory(&text, &memory);
        add_range(&text, "user_annotation", "a", "\"ts\": 10, \"dur\": 10");
        add_range(&text, "cpu_op", "a", "\"ts\": 10, \"dur\": 10");
        if (is_followed)
            add_range(&text, "user_annotation", "b", "\"ts\": 20, \"dur\": 10");
        if (is_followed)
            add_range(&text, "cpu_op", "b", "\"ts\": 20, \"dur\": 10");
        mt_buf_add_text(&text, END);
        struct read read = read_text(text.data);
        for (size_t i = 0; i < read.count; i++) {
            const struct mt_event *event = &read.events[i];

            if (event->kind == MT_EVENT_PHASE_PUSH)
                phase = mt_symbols_text(&read.source->symbols, event->name);
            if (event->kind == MT_EVENT_PHASE_POP)
                phase = NULL;
            if (event->kind != MT_EVENT_ALLOC)
                continue;
            assert_non_null(phase);
            assert_string_equal(phase, is_followed ? "b" : "a");
            assert_string_equal(stack_text(read.source, event->stack, &stack),
                                is_followed ? "b||0;" : "a||0;");
        }
        mt_source_close(read.source);
        mt_buf_release(&text);
        mt_buf_release(&stack);
    }
}

/* Operations that are too deep, threads that are too many, names that are too long. */
TEST(limits)
{
    enum { DEPTH = 5000, THREADS = 65540, NAME = 70000 };
    static char name[NAME + 1];
    struct mt_buf text = {0};
    struct read read;

    memset(name, 'n', NAME);
    mt_buf_add_text(&text, "{" ROWS);
    for (int i = 0; i < DEPTH; i++)
        add_range(&text, "cpu_op", "aten::mm", "\"ts\": 1, \"dur\": 9");
    add_range(&text, "cpu_op", name, "\"ts\": 20, \"dur\": 1");
    for (int i = 0; i < THREADS; i++)
        mt_buf_printf(&text,
                      "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"a\", \"tid\": %d, "
                      "\"ts\": 5, \"dur\": 0},",
                      i);
    add_memory(&text, &(struct memory){"2", 512, 512, 4096, 1, 0, 1, 7});
    mt_buf_add_text(&text, END);
    open_only(text.data, text.length, &read);
    assert_string_equal(
        read.source->header.not_used,
        "7 threads too many: their events have no thread\n" /* also that of the memory */
        "1 name longer than 64 KiB: cut there\n"
        "Total Reserved of gpu 0: 2,097,152 bytes at first, 2,097,152 at most, 0 "
        "changes");
    assert_int_equal(read.source->symbols.frames_cut, DEPTH - MT_MAX_STACK_DEPTH);
    mt_source_close(read.source);
    mt_buf_release(&text);
}

/* Host memory only if there is nothing else; one type of devices, CUDA first. */
TEST(types_of_devices)
{
    static const struct memory list[] = {
        {"1", 8, 8, 64, 1, 0, 0, 7},
        {"2", 16, 16, 96, 2, 2, 20, 7},
        {"3", 512, 512, 4096, 3, 1, 1, 7},
        {"4", 16, 16, 96, 4, 2, 12, 7},
    };
    struct read read = read_memory(list, 1);

    assert_int_equal(read.count, 2);
    assert_false(read.source->header.sizes_rounded);
    assert_string_equal(
        mt_symbols_text(&read.source->symbols, read.source->symbols.devices[0].name),
        MT_HOST_MEMORY);
    mt_source_close(read.source);
    read = read_memory(list, 2);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.events[0].device, 2);
    assert_non_null(strstr(read.source->header.not_used,
                           "Device Type 20: read as if it were CUDA's allocator"));
    mt_source_close(read.source);
    read = read_memory(list, 3);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.events[0].device, 1);
    assert_non_null(
        strstr(read.source->header.not_used, "1 event of other devices (Device Type 20)"));
    mt_source_close(read.source);
    read = read_memory(list, 4);
    assert_int_equal(read.count, 2);
    assert_non_null(strstr(read.source->header.not_used,
                           "2 events of other devices (Device Type 20 and others)"));
    mt_source_close(read.source);
}

TEST(events_that_are_impossible)
{
    static const struct memory good = {"1", 512, 512, 4096, 1, 0, 1, 7};
    static const struct memory list[] = {
        {"\"soon\"", 512, 512, 4096, 1, 0, 1, 7}, {"-1", 512, 512, 4096, 1, 0, 1, 7},
        {"1", 0, 512, 4096, 1, 0, 1, 7},          {"1", INT64_MIN, 512, 4096, 1, 0, 1, 7},
        {"1", 512, -512, 4096, 1, 0, 1, 7},       {"1", 512, 512, 4096, 1, 1024, 1, 7},
        {"1", 512, 512, 4096, 1, 0, 256, 7},      {"NaN", 512, 512, 4096, 1, 0, 1, 7},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++) {
        const struct memory two[] = {good, list[i]};
        struct read read = read_memory(two, 2);

        assert_int_equal(read.count, 3); /* with the loss and the end */
        assert_int_equal(read.source->integrity.records_damaged, 1);
        assert_non_null(strstr(read.source->integrity.first_error.text, "a memory event "));
        mt_source_close(read.source);
    }
}

static void add_out_of_memory(struct mt_buf *text, int device, int type)
{
    mt_buf_printf(text,
                  "{\"ph\": \"i\", \"name\": \"[OutOfMemory]\", \"tid\": 7, \"ts\": 2, \"args\": "
                  "{\"Bytes\": 1048576, \"Device Id\": %d, \"Device Type\": %d}},",
                  device, type);
}

/* The driver refused a request, of the devices that the trace has. */
TEST(out_of_memory)
{
    static const struct memory memory = {"1", 512, 512, 4096, 1, 0, 1, 7};
    static const struct memory host = {"1", 512, 512, 4096, 1, 0, 0, 7};
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "{" ROWS);
    add_memory(&text, &memory);
    add_out_of_memory(&text, 5, 1);
    add_out_of_memory(&text, -1, 0);
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    assert_int_equal(read.count, 3);
    expect(&read, 1, MT_EVENT_ALLOC_FAILED, 2000, 0, 1048576);
    assert_int_equal(read.events[1].device, 5);
    assert_int_equal(read.events[1].heap, read.events[0].heap);
    assert_int_equal(read.source->symbols.device_count, 6);
    assert_non_null(strstr(read.source->header.not_used, "1 event of host memory (Device Type 0)"));
    mt_source_close(read.source);
    mt_buf_reset(&text);
    mt_buf_add_text(&text, "{" ROWS);
    add_out_of_memory(&text, 0, 1);
    mt_buf_add_text(&text, END);
    read = read_bytes(text.data, text.length);
    assert_int_equal(read.status, MT_ERR_UNSUPPORTED);
    mt_buf_reset(&text);
    mt_buf_add_text(&text, "{" ROWS);
    add_out_of_memory(&text, 0, 1);
    add_memory(&text, &host);
    mt_buf_add_text(&text, END);
    read = read_text(text.data);
    assert_int_equal(read.count, 2);
    assert_string_equal(read.source->header.not_used,
                        "1 event of other devices (Device Type 1)\n"
                        "Total Reserved of " MT_HOST_MEMORY ": 2,097,152 bytes at first, 2,097,152 "
                        "at most, 0 changes");
    mt_source_close(read.source);
    mt_buf_release(&text);
}

TEST(no_memory_events)
{
    static const char *const texts[] = {"{\"schemaVersion\": 1, \"traceEvents\": []}",
                                        "{\"traceEvents\": {}}", "{\"traceEvents\": [1, [], null]}",
                                        "{}"};
    struct read read;

    for (size_t i = 0; i < MT_ARRAY_LEN(texts); i++) {
        read = read_bytes(texts[i], strlen(texts[i]));
        assert_int_equal(read.status, MT_ERR_UNSUPPORTED);
        assert_non_null(strstr(read.error.text, "profile_memory=True"));
    }
    read = read_bytes("[]", 2);
    assert_int_equal(read.status, MT_ERR_FORMAT);
    assert_false(mt_kineto_probe("[]", 2));
    assert_false(mt_kineto_probe("{\"answer\": 42}", 14));
}

/* What was read before the cut is used, and the reading says where the file ends. */
TEST(cut_at_every_byte)
{
    static const struct memory list[] = {
        {"1", 512, 512, 4096, 1, 0, 1, 7},
        {"2", 1024, 1536, 8192, 2, 0, 1, 7},
        {"3", -512, 1024, 4096, 3, 0, 1, 9},
        {"4", 512, 1536, 4096, 4, 0, 1, 7},
    };
    struct mt_buf text = {0};
    size_t most = 0;

    mt_buf_add_text(&text, FACTS ROWS);
    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++) {
        add_range(&text, "cpu_op", "aten::mm", "\"ts\": 1, \"dur\": 1");
        add_memory(&text, &list[i]);
    }
    mt_buf_add_text(&text, END);
    for (size_t i = 0; i + 2 < text.length; i++) { /* a line feed follows the last brace */
        struct read read = read_bytes(text.data, i);

        if (read.status != MT_OK) {
            assert_int_equal(read.status, MT_ERR_FORMAT);
            assert_int_equal(most, 0);
            continue;
        }
        assert_true(read.source->integrity.cut);
        assert_int_equal(read.source->integrity.cut_offset, i);
        assert_int_equal(read.source->integrity.records_damaged, 0);
        assert_true(read.count >= most);
        most = read.count;
        for (size_t e = 0; e + 2 < read.count; e++) /* without the loss and the end */
            assert_int_equal(read.events[e].size_bytes, mt_magnitude(list[e].bytes));
        mt_source_close(read.source);
    }
    assert_int_equal(most, MT_ARRAY_LEN(list) + 2);
    mt_buf_release(&text);
}

/* Damage within the file ends the reading, and is an error. */
TEST(damage)
{
    static const struct memory memory = {"1", 512, 512, 4096, 1, 0, 1, 7};
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "{" ROWS);
    add_memory(&text, &memory);
    mt_buf_add_text(&text, "{\"ph\": }, ");
    add_memory(&text, &memory);
    mt_buf_add_text(&text, END);
    struct read read = read_text(text.data);
    assert_int_equal(read.count, 3); /* with the loss and the end */
    assert_true(read.source->integrity.cut);
    assert_int_equal(read.source->integrity.records_damaged, 1);
    assert_string_equal(read.source->integrity.first_error.text,
                        "the JSON is damaged: a value is missing");
    mt_source_close(read.source);
    mt_buf_release(&text);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
