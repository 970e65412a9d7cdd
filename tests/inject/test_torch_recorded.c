/* A program that uses PyTorch's allocator, recorded by the real library: what it
 * says it did is what its trace says. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "map.h"
#include "trace.h"

enum { MAX_BLOCKS = 65536 };

struct block {
    uint64_t addr, bytes, stream;
    unsigned allocs, frees_requested, frees_completed;
};

static char folder[] = "/tmp/memtrace-torch-XXXXXX", trace[64], truth[64];

static struct {
    struct block blocks[MAX_BLOCKS];
    struct mt_map index; /* address -> index */
    unsigned count, freed;
} told;

static void run(const char *threads, const char *count)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        const char *slash = strrchr(MEMTRACE_INJECT, '/');
        char place[sizeof MEMTRACE_INJECT];

        /* the loader searches for the library, because LD_PRELOAD cannot contain a space */
        snprintf(place, sizeof place, "%.*s", (int)(slash - MEMTRACE_INJECT), MEMTRACE_INJECT);
        setenv("LD_LIBRARY_PATH", place, 1);
        setenv("LD_PRELOAD", slash + 1, 1);
        setenv("MEMTRACE_OUTPUT", trace, 1);
        setenv("MEMTRACE_STACKS", "none", 1);
        setenv("MEMTRACE_PHASES", "torch", 1);
        if (freopen(truth, "w", stdout))
            execl(TORCH_PROGRAM, TORCH_PROGRAM, STANDIN_TORCH, threads, count, (char *)NULL);
        _exit(127);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void read_truth(void)
{
    FILE *file = fopen(truth, "r");
    char line[128];

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long long addr, bytes, stream;
        if (sscanf(line, "alloc 0x%llx %llu %llu", &addr, &bytes, &stream) == 3) {
            assert_true(told.count < MAX_BLOCKS);
            assert_int_equal(mt_map_set(&told.index, addr, told.count), MT_OK);
            told.blocks[told.count++] =
                (struct block){.addr = addr, .bytes = bytes, .stream = stream};
        } else {
            assert_int_equal(strncmp(line, "free ", 5), 0);
            told.freed++;
        }
    }
    fclose(file);
}

static struct {
    unsigned segments_made, segments_gone, empty_caches, pushes, pops;
} seen;

static void see_block(const struct mt_source *source, const struct mt_event *event)
{
    uint32_t at = mt_map_get(&told.index, event->addr);

    assert_true(at != MT_MAP_NONE);
    struct block *block = &told.blocks[at];
    assert_int_equal(event->size_bytes, block->bytes);
    assert_int_equal(source->symbols.streams[event->stream].handle, block->stream);
    block->allocs += event->kind == MT_EVENT_ALLOC;
    block->frees_requested += event->kind == MT_EVENT_FREE_REQUESTED;
    block->frees_completed += event->kind == MT_EVENT_FREE_COMPLETED;
    assert_true(block->allocs >= block->frees_requested &&
                block->frees_requested >= block->frees_completed);
}

static void see(const struct mt_source *source, const struct mt_event *event)
{
    if (event->kind >= MT_EVENT_ALLOC && event->kind <= MT_EVENT_FREE_COMPLETED)
        see_block(source, event);
    seen.segments_made += event->kind == MT_EVENT_SEGMENT_ALLOC;
    seen.segments_gone += event->kind == MT_EVENT_SEGMENT_FREE;
    seen.empty_caches += event->kind == MT_EVENT_EMPTY_CACHE;
    if (event->kind == MT_EVENT_PHASE_PUSH || event->kind == MT_EVENT_PHASE_POP)
        assert_string_equal(mt_symbols_text(&source->symbols, event->name), "everything");
    seen.pushes += event->kind == MT_EVENT_PHASE_PUSH;
    seen.pops += event->kind == MT_EVENT_PHASE_POP;
}

static void check_header(const struct mt_trace_header *header)
{
    assert_string_equal(header->framework, "PyTorch 2.11.0+standin");
    assert_non_null(strstr(header->sources, "pytorch-tracker"));
    assert_true(header->has_segments && header->has_free_requested && header->has_free_completed);
    assert_false(header->sizes_rounded);
}

static void read_trace(void)
{
    struct mt_error error = {0};
    struct mt_source *source;
    struct mt_event_batch batch;
    enum mt_status status;

    assert_int_equal(mt_trace_open(trace, &source, &error), MT_OK);
    check_header(&source->header);
    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++)
            see(source, &batch.events[i]);
    }
    assert_int_equal(status, MT_END);
    assert_true(source->integrity.closed && !source->integrity.events_dropped);
    mt_source_close(source);
}

TEST(test_eight_threads)
{
    unsigned i, freed = 0;

    run("8", "500");
    read_truth();
    assert_int_equal(told.count, 4000);
    read_trace();
    for (i = 0; i < told.count; i++) {
        assert_int_equal(told.blocks[i].allocs, 1);
        assert_int_equal(told.blocks[i].frees_requested, told.blocks[i].frees_completed);
        freed += told.blocks[i].frees_completed;
    }
    assert_int_equal(freed, told.freed);
    assert_true(seen.segments_made >= 8 && seen.segments_gone == seen.segments_made);
    assert_int_equal(seen.empty_caches, 1);
    assert_true(seen.pushes == 1 && seen.pops == 1);
}

int main(void)
{
    char command[64];

    if (!mkdtemp(folder))
        return 1;
    snprintf(trace, sizeof trace, "%s/trace.zst", folder);
    snprintf(truth, sizeof truth, "%s/truth", folder);
    int failed = run_tests_of_file(NULL, NULL);
    mt_map_release(&told.index);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
