/* The summary that `record` prints about a trace of XLA. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"
#include "trace_end.h"

enum { RUNS = 40 };

/* A trace of `requests` requests of device memory, then modules that run. */
static struct mt_trace_summary summary_of(unsigned requests, const char *range)
{
    static const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    char path[] = "/tmp/xla-summary-XXXXXX";
    int fd = mkstemp(path);
    struct mt_trace_summary summary;
    struct mt_writer *writer;
    struct mt_symbols symbols;
    struct mt_error error = {.text = ""};
    uint32_t name;

    assert_true(fd >= 0);
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, range, strlen(range), &name), MT_OK);
    assert_int_equal(mt_writer_new(fd, &header, &symbols, NULL, &writer, NULL), MT_OK);
    for (uint64_t i = 0; i < requests + RUNS; i++) {
        struct mt_event event = {.seq = i,
                                 .t_ns = 1000 + i,
                                 .stack = MT_NO_ID,
                                 .name = MT_NO_ID,
                                 .kind = MT_EVENT_ALLOC};

        event.addr = 4096 * (i + 1);
        event.size_bytes = 4096;
        if (i >= requests)
            event = (struct mt_event){.seq = i,
                                      .t_ns = 1000 + i,
                                      .stack = MT_NO_ID,
                                      .name = name,
                                      .kind = MT_EVENT_PHASE_PUSH};
        assert_int_equal(mt_writer_add(writer, &event, NULL), MT_OK);
    }
    assert_int_equal(mt_writer_finish(writer, NULL), MT_OK);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    close(fd);
    if (mt_trace_summarize(path, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    unlink(path);
    return summary;
}

TEST(requests_of_an_arena)
{
    static const char module[] = "TSL: XlaModule:#hlo_module=jit_step,program_id=1#";

    assert_true(summary_of(1, module).xla_requests_missing);
    assert_false(summary_of(RUNS, module).xla_requests_missing);
    assert_false(summary_of(1, "TSL: XlaPass:#name=fusion,module=jit_step#").xla_requests_missing);
    assert_false(summary_of(1, "step").xla_requests_missing);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
