/* What the tests of the whole way share, from emitting events to a trace that reads: children that
 * record, a parent that recovers what they leave and reads it. Addresses are chosen so that the
 * trace says by itself what is missing: thread and counter. */
#ifndef MT_COLLECT_BENCH_H
#define MT_COLLECT_BENCH_H

#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "inject_source.h"
#include "own_file.h"
#include "recover.h"
#include "tape_file.h"
#include "trace.h"

/* The writer is inside this source for most of its time, if `slow` is set. */
static bool slow;
static _Atomic bool working;

static inline void work(void)
{
    if (!slow)
        return;
    atomic_store(&working, true);
    usleep(50000);
    atomic_store(&working, false);
}

static const struct mt_inject_source source_of_work = {.poll = work};
static const struct mt_inject_source *const sources[] = {&source_of_work, NULL};

__attribute__((constructor)) static void hand_in(void)
{
    mt_core.sources = sources;
}

enum { MAX_THREADS = 32 };

static char folder[64], trace[128];

/* What the child has surely emitted, in memory shared with the parent. */
static struct shared {
    _Atomic uint64_t emitted[MAX_THREADS];
} * shared;

static inline void emit(uint64_t thread, uint64_t count, const char *name)
{
    struct mt_raw_event event = {.addr = thread << 48 | count << 9,
                                 .size_bytes = count + 1,
                                 .heap = MT_RAW_PYTORCH,
                                 .device = 0,
                                 .kind = MT_EVENT_ALLOC};

    if (!mt_collect_enter())
        return;
    mt_collect_emit(&event);
    if (name) {
        event = (struct mt_raw_event){.kind = MT_EVENT_MARK, .device = UINT8_MAX};
        event.id = mt_collect_name(name, strlen(name));
        mt_collect_emit(&event);
    }
    mt_collect_leave();
    atomic_store(&shared->emitted[thread], count + 1);
}

static inline void emit_many(uint64_t thread, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        emit(thread, from, from % 1000 ? NULL : "thousand");
}

static inline int run_child(void (*body)(void))
{
    int status;

    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

struct found {
    uint64_t allocs[MAX_THREADS], last[MAX_THREADS], dropped, marks;
    bool in_order, closed;
};

static inline void read_trace(const char *path, struct found *found)
{
    struct mt_error error = {0};
    struct mt_event_batch batch;
    struct mt_source *source;
    enum mt_status status;

    *found = (struct found){.in_order = true};
    if (mt_trace_open(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            uint64_t thread = event->addr >> 48;
            if (event->kind == MT_EVENT_ALLOC && thread < MAX_THREADS) {
                found->last[thread] = event->size_bytes;
                found->in_order &= event->size_bytes == found->allocs[thread] + 1;
                found->allocs[thread] += !strcmp(
                    mt_symbols_text(&source->symbols, source->symbols.heaps[event->heap].name),
                    "pytorch");
                assert_string_equal(
                    mt_symbols_text(&source->symbols, source->symbols.heaps[event->heap].name),
                    "pytorch");
            } else if (event->kind == MT_EVENT_MARK) {
                found->marks += !strcmp(mt_symbols_text(&source->symbols, event->name), "thousand");
            } else if (event->kind == MT_EVENT_DROPPED) {
                found->dropped += event->size_bytes;
            }
        }
    }
    assert_int_equal(status, MT_END);
    found->closed = source->integrity.closed && !source->integrity.frames_damaged;
    mt_source_close(source);
}

static inline struct mt_recovery recover(const char *path)
{
    struct mt_recovery recovery;
    struct mt_error error = {0};

    if (mt_recover(path, NULL, &recovery, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    assert_false(mt_recover_is_needed(path));
    return recovery;
}

static inline void clean(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s; mkdir %s", folder, folder);
    assert_int_equal(system(command), 0);
}

static inline int set_up(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

/* Beside the folder, with its six letters. */
static inline void name_manifest(char manifest[160])
{
    snprintf(manifest, 160, "/tmp/" MT_MANIFEST_PREFIX "%s", strrchr(folder, '.') + 1);
}

/* The settings are read before main: so this program runs itself again. */
static inline void run_again(char **argv)
{
    char manifest[160];

    snprintf(folder, sizeof folder, "/tmp/test_collect.XXXXXX");
    if (!mkdtemp(folder))
        exit(1);
    snprintf(trace, sizeof trace, "%s/run.trace.zst", folder);
    name_manifest(manifest);
    FILE *file = fopen(manifest, "w");
    /* as memtrace record does; it holds the lock until it ends */
    if (!file || flock(fileno(file), LOCK_EX) || fputs(MT_MANIFEST_FIRST_LINE, file) < 0 ||
        fflush(file))
        exit(1);
    setenv("MEMTRACE_OUTPUT", trace, 1);
    setenv("MEMTRACE_MANIFEST", manifest, 1);
    setenv("MEMTRACE_QUIET", "1", 1);
    setenv("TEST_COLLECT_FOLDER", folder, 1);
    execv("/proc/self/exe", argv);
    exit(1);
}

/* Before the tests: `argv` may name one of them. */
static inline void bench_begin(int argc, char **argv)
{
    if (!getenv("TEST_COLLECT_FOLDER"))
        run_again(argv);
    snprintf(folder, sizeof folder, "%s", getenv("TEST_COLLECT_FOLDER"));
    snprintf(trace, sizeof trace, "%s", getenv("MEMTRACE_OUTPUT"));
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
}

static inline int bench_end(int failed)
{
    char command[400], manifest[160];

    name_manifest(manifest);
    snprintf(command, sizeof command, "rm -rf %s %s", folder, manifest);
    return system(command) || failed;
}

#endif
