/* Rows of events (CSV, JSON Lines): cut at every byte, damaged, contradictory, and huge. The check
 * tests/check_rows.py compares whole files with a slow reader. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "feed.h"
#include "importers.h"

static struct mt_error error;

static struct mt_source *open_bytes(const char *bytes, size_t length)
{
    struct mt_source *source = NULL;
    struct mt_feed *feed;

    error = (struct mt_error){.offset = MT_NO_OFFSET};
    assert_int_equal(mt_feed_open_memory(bytes, length, &feed, &error), MT_OK);
    if (mt_rows_open(feed, &source, &error) != MT_OK)
        source = NULL;
    mt_feed_close(feed);
    if (source)
        source->view.level = MT_VIEW_EVERYTHING;
    return source;
}

static struct mt_source *open_text(const char *text)
{
    struct mt_source *source = open_bytes(text, strlen(text));

    if (!source)
        fail_msg("%s: %s", text, error.text);
    return source;
}

/* Events without the end, and without the one that reports rows that cannot be read. */
static size_t read_events(struct mt_source *source, struct mt_event *events, size_t capacity)
{
    struct mt_event_batch batch;
    size_t count = 0;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            if (batch.events[i].kind != MT_EVENT_END && count < capacity)
                events[count++] = batch.events[i];
    if (count && events[count - 1].kind == MT_EVENT_DROPPED &&
        (source->integrity.records_damaged || source->integrity.cut))
        count--;
    return count;
}

static void expect_damage(const char *text, size_t events, uint64_t damaged, const char *why)
{
    struct mt_event list[64];
    struct mt_source *source = open_text(text);
    const struct mt_error *first = &source->integrity.first_error;

    assert_int_equal(read_events(source, list, 64), events);
    assert_int_equal(source->integrity.records_damaged, damaged);
    if (why && !strstr(first->text, why))
        fail_msg("%s: '%s' has no '%s'", text, first->text, why);
    mt_source_close(source);
}

#define HEADER "op,addr,bytes,t_ns\n"
#define GOOD   "alloc,0x10,5,1\n"

TEST(rows_that_cannot_be_read)
{
    static const struct {
        const char *row, *why;
    } rows[] = {
        {"alloc,x,5,1\n", "line 3: the address is not a number"},
        {"alloc,0x20,-5,1\n", "line 3: the size is not a number"},
        {"alloc,0x20,5.5,1\n", "the size is not a number"},
        {"alloc,0x20,99999999999999999999,1\n", "the size is not a number"},
        {"alloc,0x20,281474976710657,1\n", "the size or the address is too large"},
        {"alloc,0xffffffffffffffff,5,1\n", "the size or the address is too large"},
        {"alloc,0x20,5,now\n", "the time is not a number"},
        {"alloc,0x20,5,\n", "there is no time"},
        {"alloc,0x20,,1\n", "line 3: there is no size"},
        {"alloc,0x20,5,1e30\n", "the time is not a number"},
        {"alloc,,5,1\n", "there is no address"},
        {"take,0x20,5,1\n", "the op is unknown"},
        {"mark,,,1\n", "there is no name"},
        {"alloc,0x20,5\n", "the number of cells"},
        {"alloc,0x20,5,1,\n", "the number of cells"},
        {"alloc,\"0x20\"0,5,1\n", "text follows a quoted cell"},
        {"alloc,\"0x20,5,1\n", "a quote is not closed"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mt_buf text = {0};

        mt_buf_printf(&text, HEADER GOOD "%salloc,0x30,5,1\n", rows[i].row);
        expect_damage(text.data, 2, 1, rows[i].why);
        mt_buf_release(&text);
    }
}

TEST(forms_that_are_read)
{
    expect_damage("\xEF\xBB\xBF" HEADER GOOD, 1, 0, NULL);
    expect_damage("op,addr,bytes,t_ns\r\nalloc,16,5,1\r\n\r\nfree,16,,2\r\n", 2, 0, NULL);
    expect_damage("op\taddr\tbytes\nalloc\t16\t5\n", 1, 0, NULL);
    expect_damage("bytes,\"addr\",op\n\"5\",\"16\",\"alloc\"\n", 1, 0, NULL);
    expect_damage(HEADER "alloc,16.0,5.000,1.75\n", 1, 0, NULL);
    expect_damage(HEADER "alloc,0X1f,5,1.5e3", 1, 0, NULL); /* without the end of the line */
    expect_damage(
        "{\"op\":\"alloc\",\"addr\":16,\"bytes\":5}\n\n{\"op\":\"free\",\"addr\":\"0x10\"}\n", 2, 0,
        NULL);
    expect_damage(" op ,addr , bytes\nalloc,16,5\n", 1, 0, NULL); /* blanks around names */
    expect_damage("{\"op\":\"alloc\",\"addr\":16,\"bytes\":5}\n[1]\n{\"op\":1}\n{\"op\"\n"
                  "{\"op\":\"alloc\",\"addr\":32,\"bytes\":[5]}\n{\"op\":\"free\",\"addr\":16}\n",
                  2, 4, "line 2: the line is not an object");
}

TEST(a_zero_byte)
{
    static const char text[] = HEADER "alloc,0x20\0,5,1\n" GOOD;
    struct mt_event events[4];
    struct mt_source *source = open_bytes(text, sizeof text - 1);

    assert_non_null(source);
    assert_int_equal(read_events(source, events, 4), 1);
    assert_string_equal(source->integrity.first_error.text, "line 2: there is a zero byte");
    mt_source_close(source);
}

TEST(times)
{
    struct mt_event events[8];
    struct mt_source *source = open_text("op,addr,bytes,t_s\nalloc,16,1,1700000000.123456789\n"
                                         "alloc,17,1,1700000000.1\nalloc,18,1,1.8e9\n");

    assert_int_equal(read_events(source, events, 8), 3);
    assert_int_equal(events[0].t_ns, 1700000000123456789);
    assert_int_equal(events[1].t_ns, 1700000000123456789); /* it went back */
    assert_int_equal(events[2].t_ns, 1800000000000000000);
    assert_non_null(strstr(source->header.not_recorded, "times: 1 row is earlier"));
    mt_source_close(source);
    source = open_text("op,addr,bytes\nalloc,16,1\nbad,1,1\nalloc,17,1\n");
    assert_int_equal(read_events(source, events, 8), 2);
    assert_int_equal(events[0].t_ns, 1);
    assert_int_equal(events[1].t_ns, 3);
    assert_non_null(strstr(source->header.not_recorded, "times: the file has none"));
    mt_source_close(source);
}

/* Rows of JSON may lack what others have. */
TEST(times_of_some_rows)
{
    struct mt_event events[8];
    struct mt_source *source = open_text("{\"op\":\"alloc\",\"addr\":16,\"bytes\":5}\n"
                                         "{\"op\":\"alloc\",\"addr\":17,\"bytes\":5,\"t_ns\":90}\n"
                                         "{\"op\":\"alloc\",\"addr\":18,\"bytes\":5}\n");

    assert_int_equal(read_events(source, events, 8), 2);
    assert_int_equal(events[0].t_ns, 1);
    assert_int_equal(events[1].t_ns, 90);
    assert_string_equal(source->integrity.first_error.text, "line 3: there is no time");
    assert_non_null(strstr(source->header.not_recorded, "times: 1 row before the first"));
    mt_source_close(source);
}

/* Threads log in turn, so that a row of the day before may follow midnight. */
TEST(midnight)
{
    struct mt_event events[8];
    struct mt_source *source = open_text("Thread,Time,Action,Pointer,Size,Stream\n"
                                         "1,23:59:59.9,allocate,0x10,10,0\n"
                                         "1,00:00:00.1,allocate,0x20,10,0\n"
                                         "2,23:59:59.95,allocate,0x30,10,0\n"
                                         "1,00:00:00.2,allocate,0x40,10,0\n");

    assert_int_equal(read_events(source, events, 8), 4);
    assert_int_equal(events[1].t_ns - events[0].t_ns, 200000000);
    assert_int_equal(events[2].t_ns, events[1].t_ns);
    assert_int_equal(events[3].t_ns - events[1].t_ns, 100000000);
    assert_non_null(strstr(source->header.not_recorded, "times: 1 row is earlier"));
    mt_source_close(source);
}

TEST(a_long_log_after_midnight)
{
    struct mt_event events[8];
    struct mt_source *source = open_text("Thread,Time,Action,Pointer,Size,Stream\n"
                                         "1,23:59:59.9,allocate,0x10,10,0\n"
                                         "1,00:10:00.1,allocate,0x20,10,0\n"
                                         "1,13:00:00.1,allocate,0x30,10,0\n"
                                         "1,00:05:00.1,allocate,0x40,10,0\n");

    assert_int_equal(read_events(source, events, 8), 4);
    assert_int_equal(events[2].t_ns - events[1].t_ns, 46200 * UINT64_C(1000000000));
    assert_int_equal(events[3].t_ns - events[2].t_ns, 39900 * UINT64_C(1000000000));
    mt_source_close(source);
}

/* An empty cell is not device 0 or the usual heap if allocations name others. */
TEST(frees_without_their_place)
{
    expect_damage("op,addr,bytes,device\nalloc,16,5,1\nfree,16,,\n", 1, 1,
                  "line 3: there is no device");
    expect_damage("op,addr,bytes,heap\nalloc,16,5,h\nfree,16,,\n", 1, 1,
                  "line 3: there is no heap");
    expect_damage("op,addr,bytes,device,heap\nalloc,16,5,,\nfree,16,,,\n", 2, 0, NULL);
    expect_damage("op,addr,bytes,device\nalloc,16,5,0\nfree,16,,\n", 2, 0, NULL);
    expect_damage("op,addr,bytes,block_bytes\nalloc,16,5,4\nalloc,32,5,8\nalloc,48,5,0\n", 2, 1,
                  "line 2: the block is smaller than the request");
}

TEST(one_process)
{
    struct mt_event events[8];
    struct mt_source *source =
        open_text("Event,Event Type,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr\n"
                  "ACCESS,READ,1,3,9,0,16,{size:7}\nMALLOC,HAL,2,1,9,0,16,{size:7}\n"
                  "MALLOC,HAL,3,2,9,0,16,{size:8}\nFREE,HAL,4,2,9,0,16,{size:8}\n"
                  "FREE,HAL,5,1,9,0,16,{size:7}\n");

    assert_int_equal(read_events(source, events, 8), 2);
    assert_int_equal(events[0].size_bytes, 7);
    assert_int_equal(events[1].t_ns, 5);
    assert_int_equal(source->integrity.events_dropped, 0);
    assert_non_null(strstr(source->header.not_used, "2 rows of other processes than 1"));
    assert_non_null(strstr(source->header.not_used, "1 row other than MALLOC or FREE"));
    mt_source_close(source);
}

/* More than a trace can have: the file is read without those rows. */
static void too_many(const char *column, const char *why)
{
    static struct mt_event events[8300];
    struct mt_buf text = {0};

    mt_buf_printf(&text, "op,addr,bytes,%s\n", column);
    for (int i = 0; i < 8200; i++)
        mt_buf_printf(&text, "alloc,%d,1,%d\n", i + 1, i);
    struct mt_source *source = open_bytes(text.data, text.length);
    assert_non_null(source);
    size_t count = read_events(source, events, 8300);
    assert_in_range(count, 8190, 8193);
    assert_int_equal(source->integrity.records_damaged, 8200 - count);
    assert_non_null(strstr(source->integrity.first_error.text, why));
    mt_source_close(source);
    mt_buf_release(&text);
}

TEST(names_beyond_what_a_trace_can_have)
{
    too_many("heap", "a trace cannot have more than 8,192 heaps");
    too_many("pool", "a trace cannot have more than 8,192 pools");
}

/* Nothing is invented, nothing is lost, and both are counted. */
TEST(contradictions)
{
    struct mt_event events[8];
    struct mt_source *source = open_text(HEADER "alloc,16,5,1\nalloc,16,6,2\nfree,16,,3\n"
                                                "free,16,,4\n");

    assert_int_equal(read_events(source, events, 8), 5);
    assert_int_equal(events[1].kind, MT_EVENT_DROPPED);
    assert_int_equal(events[2].size_bytes, 6);
    assert_int_equal(source->integrity.events_dropped, 1);
    assert_true(source->header.starts_in_middle);
    assert_non_null(strstr(source->header.not_recorded, "1 free is of an address"));
    mt_source_close(source);
    source = open_text(HEADER "alloc,16,5,1\nfree_requested,16,,2\nfree_completed,16,,3\n");
    assert_int_equal(read_events(source, events, 8), 3);
    assert_false(source->header.starts_in_middle);
    mt_source_close(source);
    expect_damage("op,addr,bytes,flags\nalloc,16,5,initial\nalloc,16,6,initial\nfree,16,,\n"
                  "alloc,32,6,initial\n",
                  2, 2, "line 3: an initial block is at the address of another one");
    source = open_text(HEADER "alloc,16,5,1\nfree_requested,16,,2\nfree_completed,16,,3\n");
    assert_true(source->header.has_free_requested && source->header.has_free_completed);
    mt_source_close(source);
}

TEST(stacks)
{
    struct mt_event events[4];
    struct mt_source *source =
        open_text("op,addr,bytes,stack\nalloc,1,1,main (a (b):12.py:7);f\\;g \\(x:1)\n"
                  "alloc,2,1,main (a (b):12.py:7)\n");
    const struct mt_symbols *symbols = &source->symbols;

    assert_int_equal(read_events(source, events, 4), 2);
    const struct mt_stack *inner = &symbols->stacks[events[0].stack];
    assert_int_equal(inner->parent, events[1].stack);
    const struct mt_stack *outer = &symbols->stacks[inner->parent];
    assert_string_equal(mt_symbols_text(symbols, symbols->frames[inner->frame].function),
                        "f;g (x:1)");
    assert_int_equal(symbols->frames[inner->frame].file, MT_NO_ID);
    assert_string_equal(mt_symbols_text(symbols, symbols->frames[outer->frame].function),
                        "main (a");
    assert_string_equal(mt_symbols_text(symbols, symbols->frames[outer->frame].file), "b):12.py");
    assert_int_equal(symbols->frames[outer->frame].line, 7);
    mt_source_close(source);
}

/* What is read of a part is the beginning of what is read of the whole, except for the last cell of
 * a line whose end is missing. */
static void cut_everywhere(const char *text, uint64_t most_damaged)
{
    static struct mt_event whole[64], part[64];
    struct mt_source *source = open_text(text);
    const size_t count = read_events(source, whole, 64), length = strlen(text);

    mt_source_close(source);
    for (size_t cut = 1; cut < length; cut++) {
        source = open_bytes(text, cut);
        if (!source) {
            assert_true(error.text[0] != 0);
            continue;
        }
        size_t got = read_events(source, part, 64);
        bool is_open = source->header.not_recorded &&
                       strstr(source->header.not_recorded,
                              "the last line has no end: its last cell may be incomplete");
        assert_true(got <= count && source->integrity.records_damaged <= most_damaged);
        assert_true(text[cut - 1] == '\n' || text[cut] == '\n' || is_open || source->integrity.cut);
        for (size_t i = 0; i + (is_open ? 1 : 0) < got; i++) {
            assert_int_equal(part[i].addr, whole[i].addr);
            assert_int_equal(part[i].t_ns, whole[i].t_ns);
            assert_int_equal(part[i].size_bytes, whole[i].size_bytes);
        }
        mt_source_close(source);
    }
}

TEST(files_cut_at_every_byte)
{
    cut_everywhere("op,addr,bytes,t_ns,stack,name\r\nalloc,0x10,5,1,\"f \"\"x\"\"\r\n;g\",\r\n"
                   "alloc,0x20,6,20,f (a.py:12),\"n,m\"\r\nfree,0x10,,30,,\r\n",
                   1); /* within a cell of two lines */
    cut_everywhere("{\"op\":\"alloc\",\"addr\":16,\"bytes\":5,\"t_ns\":1,\"stack\":[\"f\",\"g\"]}\n"
                   "{\"op\":\"free\",\"addr\":16,\"bytes\":0,\"t_ns\":12,\"name\":\"\\u00e9\"}\n",
                   0);
    cut_everywhere("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.5,allocate,0x10,10,0\n"
                   "1,10:00:01.5,allocate failure,(nil),10,0x2\n1,10:00:02,free,0x10,10,0\n",
                   0);
}

static void fill(struct mt_buf *text, char c, size_t count)
{
    memset(mt_buf_reserve(text, count), c, count);
    text->length += count;
}

TEST(large_cells)
{
    struct mt_buf text = {0};
    struct mt_event events[8];

    mt_buf_add_text(&text, "op,addr,bytes,name\nalloc,1,1,\"");
    fill(&text, '\n', 1 << 20);
    mt_buf_add_text(&text, "\"\nalloc,2,1,");
    fill(&text, 'x', 17 << 20);
    mt_buf_add_text(&text, "\nalloc,3,1,\"");
    fill(&text, ',', 17 << 20);
    mt_buf_add_text(&text, "\nalloc,4,1,\n");
    struct mt_source *source = open_bytes(text.data, text.length);
    assert_non_null(source);
    assert_int_equal(read_events(source, events, 8), 2);
    assert_int_equal(events[1].addr, 4);
    assert_int_equal(source->integrity.records_damaged, 2);
    assert_string_equal(source->integrity.first_error.text,
                        "line 1048579: the row is longer than 16 MiB");
    mt_source_close(source);
    mt_buf_release(&text);
}

static void expect_refusal(const char *text, size_t length, const char *why)
{
    struct mt_source *source = open_bytes(text, length);

    assert_null(source);
    if (!strstr(error.text, why))
        fail_msg("'%s' has no '%s'", error.text, why);
}

TEST(files_that_are_refused)
{
    struct mt_buf text = {0};

    expect_refusal("op,addr\nalloc,1\n", 16, "no column 'bytes'");
    expect_refusal("op,addr,bytes,op\nalloc,1,1,1\n", 30, "two columns 'op'");
    expect_refusal(HEADER, strlen(HEADER), "no row is an event");
    expect_refusal(HEADER "x,1,1,1\n", strlen(HEADER) + 8, "first: line 2: the op is unknown");
    mt_buf_add_text(&text, "op,addr,bytes");
    fill(&text, ',', 1000000);
    mt_buf_add_char(&text, '\n');
    expect_refusal(text.data, text.length, "the row has more than 256 cells");
    mt_buf_release(&text);
}

TEST(probes)
{
    static const char *const rows[] = {"op,addr,bytes\n",
                                       "\xEF\xBB\xBFt_ns,kind,\"addr\",size\r\n",
                                       "op\taddr\tbytes",
                                       "op,addr,t_ns\n",
                                       "Thread,Time,Action,Pointer,Size,Stream\n",
                                       "{\"addr\":1,\"op\":\"alloc\"}\n"};
    static const char *const others[] = {"lower,upper,size\n",
                                         "id,start,end,size\n",
                                         "op,x\n",
                                         "",
                                         "{\"traceEvents\":[]}",
                                         "{\"op\":1}\n{\"addr\":1}",
                                         "event,t_ns,device,requested,allocated\n"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(mt_rows_probe(rows[i], strlen(rows[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(mt_rows_probe(others[i], strlen(others[i])));
}

TEST(threads_of_a_trace_keep_their_numbers)
{
    struct mt_event events[8];
    struct mt_source *source = open_text(
        "op,addr,bytes,thread,seq\nalloc,1,1,3,0\nalloc,2,1,1,1\nalloc,3,1,140000000000,2\n"
        "alloc,4,1,4,3\nalloc,5,1,loader,4\nalloc,6,1,0,5\n");

    assert_int_equal(read_events(source, events, 8), 6);
    assert_int_equal(events[0].thread, 3);
    assert_int_equal(events[1].thread, 1);
    assert_int_equal(events[2].thread, 4);
    assert_int_equal(events[3].thread, 5);
    assert_int_equal(events[4].thread, 6);
    assert_int_equal(events[5].thread, 0);
    mt_source_close(source);
    source = open_text("op,addr,bytes,thread\nalloc,1,1,300\nalloc,2,1,1\n");
    assert_int_equal(read_events(source, events, 8), 2);
    assert_int_equal(source->symbols.threads[events[0].thread].os_id, 300);
    assert_int_equal(source->symbols.threads[events[1].thread].os_id, 1);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
