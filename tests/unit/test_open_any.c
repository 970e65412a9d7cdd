/* Finds a trace in a file, in a pipe, and inside another zstd frame. The share of an input that was
 * read rises to 1, whatever its format. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "import.h"
#include "trace.h"

enum { EVENTS = 100 };

struct bytes {
    char data[4096];
    size_t length;
};

static void make_trace(struct bytes *trace)
{
    static const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    struct mt_symbols symbols;
    struct mt_writer *writer;
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &header, &symbols, NULL, &writer, NULL), MT_OK);
    for (uint64_t i = 0; i < EVENTS; i++) {
        struct mt_event event = {.seq = i,
                                 .t_ns = 1000 + i,
                                 .addr = 512 + 512 * i,
                                 .size_bytes = 512,
                                 .stack = MT_NO_ID,
                                 .name = MT_NO_ID,
                                 .kind = MT_EVENT_ALLOC};
        assert_int_equal(mt_writer_add(writer, &event, NULL), MT_OK);
    }
    assert_int_equal(mt_writer_finish(writer, NULL), MT_OK);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    rewind(file);
    trace->length = fread(trace->data, 1, sizeof trace->data, file);
    assert_true(trace->length > 0 && trace->length < sizeof trace->data);
    fclose(file);
}

static void compress(const struct bytes *in, struct bytes *out)
{
    out->length = ZSTD_compress(out->data, sizeof out->data, in->data, in->length, 3);
    assert_false(ZSTD_isError(out->length));
}

/* Opens the path and counts the allocations in it. */
static void expect_events(const char *path)
{
    struct mt_event_batch batch;
    struct mt_source *source;
    struct mt_error error = {.text = ""};
    size_t total = 0, i;

    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s", error.text);
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (i = 0; i < batch.count; i++)
            total += batch.events[i].kind == MT_EVENT_ALLOC;
    assert_int_equal(total, EVENTS);
    mt_source_close(source);
}

static void expect_in_file(const struct bytes *bytes)
{
    char path[] = "/tmp/memtrace-open-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes->data, bytes->length), bytes->length);
    close(fd);
    expect_events(path);
    unlink(path);
}

/* Opens the pipe by name, not as "-": it cannot be opened twice. */
static void expect_in_pipe(const struct bytes *bytes)
{
    char path[32];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes->data, bytes->length), bytes->length);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    expect_events(path);
    close(ends[0]);
}

TEST(test_wrappings)
{
    struct bytes trace, once;

    make_trace(&trace);
    compress(&trace, &once);
    expect_in_file(&trace);
    expect_in_file(&once);
    expect_in_pipe(&trace);
    expect_in_pipe(&once);
}

TEST(test_no_trace)
{
    struct bytes text = {"no trace at all", 15}, packed;
    struct mt_source *source;
    struct mt_error error;
    char path[32];
    int ends[2];

    compress(&text, &packed);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], packed.data, packed.length), packed.length);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(mt_import_open_any(path, &source, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "neither a memtrace trace nor a format that can be imported");
    close(ends[0]);
}

/* The files that these begin are named, some by their name. */
TEST(test_neighbors)
{
    static const struct {
        const char *ending, *bytes, *what;
    } files[] = {
        {".pickle", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "a pointer of Git"},
        {".pickle.gz", "\037\213\010..", "compressed data is "},
        {".raw.json.gz", "[[1, 2], [[0, 1]", "a memory timeline of"},
        {".pb", "\n\004\010\001\020\002\n\004", "the profile is damaged or cut"},
        {".pt", "PK\003\004....archive/data.pkl", "a file of torch.save"},
        {".pt", "\200\002\212\nl\374\234F\371 j\250P\031.", "a file of torch.save"},
        {".zip", "PK\003\004....snapshot.pickle", "a zip archive"},
        {".json", "{\"schemaVersion\": 1, \"traceEvents\": []}", "the JSON is damaged"},
        {".json", "[{\"ph\": \"X\"", "a Chrome trace"},
        {".json", "[[1, 2], [[0, 1]", "a memory timeline of"},
        {".html", "<html>\n<title>GPU Memory Timeline HTML</title>", "a memory timeline of"},
        {".html", "<!DOCTYPE html>\n", "a web page: "},
        {".csv", "event,t_ns,device,requested,allocated\n", "counters of memtrace replay, "},
        {".csv", "Name,Size(KB),Allocation Total Allocated(MB)\n", "memory of operators from a "},
        {".sqlite", "SQLite format 3", "the database is cut within its header"},
        {".nsys-rep", "anything", "a report of Nsight Systems: "},
        {".json", "{\"answer\": 42}", "neither a memtrace trace nor"},
        {".txt", "[[1, 2]]", "neither a memtrace trace nor"},
        {".bin", "\037", "neither a memtrace trace nor"},
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64];
        struct mt_source *source;
        struct mt_error error;

        snprintf(path, sizeof path, "/tmp/memtrace-open-XXXXXX%s", files[i].ending);
        int fd = mkstemps(path, (int)strlen(files[i].ending));
        assert_true(fd >= 0);
        assert_int_equal(write(fd, files[i].bytes, strlen(files[i].bytes) + 1),
                         strlen(files[i].bytes) + 1);
        close(fd);
        assert_int_equal(mt_import_open_any(path, &source, &error), MT_ERR_FORMAT);
        unlink(path);
        if (strncmp(error.text, files[i].what, strlen(files[i].what)) != 0)
            fail_msg("%s %zu: %s", files[i].ending, i, error.text);
    }
}

static void share_rises(void *context, const struct mt_source *source)
{
    double *share = context, now = mt_source_share(source);

    assert_true(now >= *share);
    *share = now;
}

/* `least_batches` is a lower limit for the number of batches. */
static void expect_rising_share(const char *path, unsigned least_batches)
{
    struct mt_event_batch batch;
    struct mt_source *source;
    struct mt_error error = {.text = ""};
    double share;

    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    source->watch = (struct mt_source_watch){share_rises, &share};
    for (int reading = 0; reading < 2; reading++) {
        unsigned steps = 0;
        double last = 0;

        share = 0;
        assert_int_equal(mt_source_rewind(source, &error), MT_OK);
        assert_true(mt_source_share(source) == 0);
        for (; mt_source_next(source, &batch, &error) == MT_OK; last = share)
            steps += share > last;
        if (steps < least_batches || share < 0.99)
            fail_msg("%s: %u steps to a share of %g", path, steps, share);
    }
    mt_source_close(source);
}

TEST(test_shares)
{
    expect_rising_share(MEMTRACE_FIXTURES "/captures/gpt_default.pickle.zst", 2);
    expect_rising_share(MEMTRACE_FIXTURES "/captures/twogpu.pickle.zst", 1);
    expect_rising_share(MEMTRACE_FIXTURES "/xplane/keras_conv.xplane.pb.zst", 1);
    expect_rising_share(MEMTRACE_FIXTURES "/recorded/paged_pool.trace.zst", 1);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
