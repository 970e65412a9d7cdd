/* PyTorch's allocator as a source, against stand-ins of its libraries. Every
 * case is a process of its own: what is hooked stays hooked. The collector is
 * this program's. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect.h"
#include "settings.h"
#include "source_torch.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- the collector ---- */

enum { EVENTS_MAX = 4096, NAMES_MAX = 64, SAID_MAX = 8 };

static struct mt_inject_settings settings = {.asked = true, .phases_torch = true};
const struct mt_inject_settings *const mt_settings = &settings;

static struct {
    pthread_mutex_t lock;
    struct mt_raw_event events[EVENTS_MAX];
    unsigned count, name_count, pool_count, said_count, thread_count;
    char names[NAMES_MAX][64], said[SAID_MAX][160], facts[1024];
    uint64_t pools[NAMES_MAX][2];
} collected = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool inside;
static _Thread_local uint32_t thread;

bool mt_collect_enter(void)
{
    if (inside)
        return false;
    return inside = true;
}

void mt_collect_leave(void)
{
    inside = false;
}

void mt_collect_emit(const struct mt_raw_event *event)
{
    pthread_mutex_lock(&collected.lock);
    CHECK(inside && collected.count < EVENTS_MAX);
    collected.events[collected.count++] = *event;
    pthread_mutex_unlock(&collected.lock);
}

void mt_collect_stacks(struct mt_raw_event *event)
{
    CHECK(inside);
    event->python_stack = 7;
}

uint32_t mt_collect_name(const char *text, size_t length)
{
    CHECK(collected.name_count + 1 < NAMES_MAX);
    snprintf(collected.names[++collected.name_count], 64, "%.*s", (int)length, text);
    return collected.name_count;
}

uint32_t mt_collect_pool(uint64_t a, uint64_t b)
{
    CHECK(collected.pool_count + 1 < NAMES_MAX);
    collected.pools[++collected.pool_count][0] = a;
    collected.pools[collected.pool_count][1] = b;
    return collected.pool_count;
}

uint32_t mt_collect_thread(void)
{
    if (!thread)
        thread = ++collected.thread_count;
    return thread;
}

void mt_collect_fact(const char *key, const char *value)
{
    size_t length = strlen(collected.facts);

    snprintf(collected.facts + length, sizeof collected.facts - length, "%s=%s\n", key, value);
}

void mt_collect_say(bool *once, const char *format, ...)
{
    va_list arguments;

    if (*once)
        return;
    *once = true;
    CHECK(collected.said_count < SAID_MAX);
    va_start(arguments, format);
    vsnprintf(collected.said[collected.said_count++], sizeof collected.said[0], format, arguments);
    va_end(arguments);
}

/* ---- the stand-ins, loaded as Python does: with nothing visible to others ---- */

static struct {
    int (*begin)(void);
    void *(*malloc)(int device, uint64_t bytes, uint64_t stream);
    void (*free)(void *block);
    void (*record_stream)(void *block);
    void (*use_pool)(uint64_t a, uint64_t b);
    void (*empty_cache)(void);
    void (*set_fraction)(double fraction, int device);
    double (*fraction)(void);
    unsigned (*reported)(void);
    void *(*scope_begin)(int scope, const char *name);
    void (*scope_end)(void *scope);
} torch;

static void *need(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol);
    return symbol;
}

static void load(const char *package)
{
    char path[512];
    void *library;

    snprintf(path, sizeof path, "%s/lib/libtorch_cuda.so", package);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    *(void **)&torch.begin = need(library, "ts_begin");
    *(void **)&torch.malloc = need(library, "ts_malloc");
    *(void **)&torch.free = need(library, "ts_free");
    *(void **)&torch.record_stream = need(library, "ts_record_stream");
    *(void **)&torch.use_pool = need(library, "ts_use_pool");
    *(void **)&torch.empty_cache = need(library, "ts_empty_cache");
    *(void **)&torch.set_fraction = need(library, "ts_set_fraction");
    *(void **)&torch.fraction = need(library, "ts_fraction");
    *(void **)&torch.reported = need(library, "ts_reported");
    *(void **)&torch.scope_begin = need(library, "ts_scope_begin");
    *(void **)&torch.scope_end = need(library, "ts_scope_end");
}

/* A package of that version: the stand-ins' libraries, but another version.py,
 * and the allocator from `allocator_folder`. */
static void load_package(const char *version, const char *allocator_folder)
{
    static const char *const files[] = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so",
                                        "libtorch_cuda.so"};
    char folder[] = "/tmp/memtrace-torch-XXXXXX", from[512], to[512];
    FILE *file;
    size_t i;

    CHECK(mkdtemp(folder));
    snprintf(to, sizeof to, "%s/lib", folder);
    CHECK(mkdir(to, 0700) == 0);
    for (i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", STANDIN_TORCH,
                 strstr(files[i], "c10_cuda") ? allocator_folder : "lib", files[i]);
        snprintf(to, sizeof to, "%s/lib/%s", folder, files[i]);
        CHECK(symlink(from, to) == 0);
    }
    snprintf(to, sizeof to, "%s/version.py", folder);
    file = fopen(to, "w");
    CHECK(file);
    fprintf(file, "__version__ = '%s'\n", version);
    fclose(file);
    load(folder);
    snprintf(to, sizeof to, "rm -r %s", folder);
    CHECK(torch.begin() > 0);
    CHECK(system(to) == 0);
}

static void load_version(const char *version)
{
    load_package(version, "lib");
}

static void begin(void)
{
    load(STANDIN_TORCH);
    CHECK(torch.begin() > 0);
}

/* ---- what is expected ---- */

static const struct mt_raw_event *event_at(unsigned index)
{
    CHECK(index < collected.count);
    CHECK(collected.events[index].heap == MT_RAW_PYTORCH);
    return &collected.events[index];
}

static void expect(unsigned index, unsigned kind, uint64_t size_bytes)
{
    const struct mt_raw_event *event = event_at(index);

    if (event->kind != kind || event->size_bytes != size_bytes)
        fprintf(stderr, "event %u: kind %u, size %llu\n", index, event->kind,
                (unsigned long long)event->size_bytes);
    CHECK(event->kind == kind && event->size_bytes == size_bytes);
    CHECK(event->python_stack == 7);
}

static void poll_source(void)
{
    mt_torch_source.poll();
}

static bool has_fact(const char *line)
{
    return strstr(collected.facts, line) != NULL;
}

/* ---- cases ---- */

static void case_first_allocation_as_requested(void)
{
    void *a, *b;

    begin();
    a = torch.malloc(0, 1000, 0);
    b = torch.malloc(0, 3 << 20, 0xabc);
    torch.free(a);
    CHECK(collected.count == 6);
    expect(0, MT_EVENT_SEGMENT_ALLOC, 2 << 20);
    expect(1, MT_EVENT_ALLOC, 1000);
    CHECK(event_at(1)->addr == (uintptr_t)a && event_at(1)->stream == 0);
    expect(2, MT_EVENT_SEGMENT_ALLOC, 4 << 20);
    expect(3, MT_EVENT_ALLOC, 3 << 20);
    CHECK(event_at(3)->addr == (uintptr_t)b && event_at(3)->stream == 0xabc);
    expect(4, MT_EVENT_FREE_REQUESTED, 1000);
    expect(5, MT_EVENT_FREE_COMPLETED, 1000);
    CHECK(torch.reported() == 3);
    CHECK(collected.said_count == 0);
    poll_source();
    CHECK(has_fact("framework=PyTorch 2.11.0+standin\n") && has_fact("has_segments=1\n"));
    CHECK(has_fact("has_free_completed=1\n") && !has_fact("sizes_rounded"));
    CHECK(!has_fact("never_refused"));
    mt_torch_source.stop();
    CHECK(has_fact("never_refused=1\n"));
}

static void case_free_completes_later(void)
{
    void *a;

    begin();
    a = torch.malloc(0, 100, 0);
    torch.record_stream(a);
    torch.free(a);
    torch.malloc(0, 200, 0);
    CHECK(collected.count == 5);
    expect(2, MT_EVENT_FREE_REQUESTED, 100);
    expect(3, MT_EVENT_FREE_COMPLETED, 100);
    expect(4, MT_EVENT_ALLOC, 200);
}

static void case_pools(void)
{
    begin();
    torch.use_pool(0, 5);
    torch.malloc(0, 100, 0);
    torch.use_pool(0, 0);
    torch.malloc(0, 100, 0);
    CHECK(collected.count == 4 && collected.pool_count == 2);
    CHECK(collected.pools[event_at(1)->id][0] == 0 && collected.pools[event_at(1)->id][1] == 5);
    CHECK(event_at(3)->id == 0);
}

static void case_devices(void)
{
    setenv("MEMTRACE_STANDIN_DEVICES", "3", 1);
    begin();
    torch.malloc(2, 100, 0);
    torch.malloc(0, 100, 0);
    CHECK(collected.count == 4);
    CHECK(event_at(1)->device == 2 && event_at(3)->device == 0);
}

static void case_empty_cache_is_said_once_a_device(void)
{
    setenv("MEMTRACE_STANDIN_DEVICES", "2", 1);
    begin();
    torch.free(torch.malloc(0, 100, 0));
    torch.free(torch.malloc(0, 100, 1));
    torch.free(torch.malloc(1, 100, 0));
    torch.empty_cache();
    CHECK(collected.count == 17);
    CHECK(event_at(12)->kind == MT_EVENT_EMPTY_CACHE && event_at(12)->device == 0);
    expect(13, MT_EVENT_SEGMENT_FREE, 2 << 20);
    expect(14, MT_EVENT_SEGMENT_FREE, 2 << 20);
    CHECK(event_at(15)->kind == MT_EVENT_EMPTY_CACHE && event_at(15)->device == 1);
    expect(16, MT_EVENT_SEGMENT_FREE, 2 << 20);
    torch.empty_cache();
    CHECK(collected.count == 17);
    torch.free(torch.malloc(0, 100, 0));
    torch.empty_cache();
    CHECK(event_at(21)->kind == MT_EVENT_EMPTY_CACHE);
}

/* The last one that was told: 0 = none. */
static unsigned long long told_limit(void)
{
    const char *at = collected.facts, *last = NULL;

    mt_torch_source.stop();
    while ((at = strstr(at, "memory_limit_bytes=")) != NULL)
        last = at++;
    return last ? strtoull(strchr(last, '=') + 1, NULL, 10) : 0;
}

static void begin_with_driver(const char *memory, const char *device_count)
{
    int (*start)(unsigned flags);
    void *driver;

    setenv("MEMTRACE_STANDIN_MEMORY", memory, 1);
    setenv("MEMTRACE_STANDIN_DEVICES", device_count, 1);
    driver = dlopen(STANDIN_DRIVER, RTLD_NOW | RTLD_GLOBAL);
    CHECK(driver);
    *(void **)&start = need(driver, "cuInit");
    CHECK(start(0) == 0);
    begin();
}

static void case_limit_is_told(void)
{
    begin_with_driver("1000000000", "2");
    torch.set_fraction(0.25, 1);
    CHECK(torch.fraction() == 0.25);
    torch.malloc(1, 100, 0);
    CHECK(told_limit() == 250000000);
    torch.malloc(0, 100, 0); /* which has none */
    CHECK(told_limit() == 0);
}

static void case_limit_that_changes_is_not_told(void)
{
    begin_with_driver("1000000000", "1");
    torch.malloc(0, 100, 0);
    torch.set_fraction(0.5, 0); /* more than there was so far */
    CHECK(told_limit() == 500000000);
    torch.set_fraction(0.4, 0);
    CHECK(told_limit() == 0);
}

static void case_limit_that_was_passed_is_not_told(void)
{
    begin_with_driver("1000000000", "1");
    torch.malloc(0, 200000000, 0);
    torch.set_fraction(0.1, 0);
    CHECK(told_limit() == 0);
}

static void case_out_of_memory(void)
{
    begin();
    CHECK(!torch.malloc(0, UINT64_C(1) << 41, 0));
    CHECK(collected.count == 1);
    expect(0, MT_EVENT_OOM, UINT64_C(1) << 41);
    CHECK(event_at(0)->aux_bytes == UINT64_C(7) << 30 && event_at(0)->addr == 0);
    mt_torch_source.stop();
    CHECK(!has_fact("never_refused"));
    torch.malloc(0, 10, 0);
    expect(2, MT_EVENT_ALLOC, 10);
}

static void expect_reports(const char *reason)
{
    void *a = torch.malloc(0, 1000, 3);

    torch.free(a);
    CHECK(!torch.malloc(0, UINT64_C(1) << 41, 0));
    CHECK(collected.count == 4);
    expect(0, MT_EVENT_ALLOC, 1024);
    CHECK(event_at(0)->addr == (uintptr_t)a);
    expect(1, MT_EVENT_FREE_REQUESTED, 1024);
    expect(2, MT_EVENT_FREE_COMPLETED, 1024);
    expect(3, MT_EVENT_OOM, UINT64_C(1) << 41);
    CHECK(torch.reported() == 3);
    CHECK(collected.said_count == 1 && strstr(collected.said[0], reason));
    poll_source();
    CHECK(has_fact("sizes_rounded=1\n") && !has_fact("has_segments"));
}

static void case_other_version_reports(void)
{
    load_version("2.16.0");
    expect_reports("a build that is not known");
}

static void case_unreleased_version_reports(void)
{
    load_version("2.11.0a0+git70d99e9");
    expect_reports("a build that is not known");
}

static void case_other_table_reports(void)
{
    setenv("MEMTRACE_STANDIN_TORCH", "51,16,7,18,44,1", 1);
    begin();
    expect_reports("a build that is not known");
}

static void case_other_type_reports(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "type", 1);
    begin();
    expect_reports("another allocator");
}

static void case_symbols_tell_of_unknown_builds(void)
{
    setenv("MEMTRACE_STANDIN_TORCH", "71,11,12,14,13,1", 1);
    load_package("2.16.0a0+git70d99e9", "named");
    torch.use_pool(0, 9);
    torch.free(torch.malloc(0, 1000, 5));
    torch.empty_cache();
    CHECK(collected.count == 6);
    expect(1, MT_EVENT_ALLOC, 1000);
    CHECK(event_at(1)->stream == 5 && collected.pools[event_at(1)->id][1] == 9);
    CHECK(event_at(4)->kind == MT_EVENT_EMPTY_CACHE);
    CHECK(collected.said_count == 0);
}

static void case_disagreement_reports(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "entries", 1);
    begin();
    expect_reports("do not agree");
}

static void case_not_asked_touches_nothing(void)
{
    settings.asked = false;
    load(STANDIN_TORCH);
    CHECK(torch.begin() == 1);
    CHECK(mt_torch_mode() == MT_TORCH_REPORTS && !*mt_torch_version_text());
}

static void case_child_is_silent(void)
{
    begin();
    torch.malloc(0, 100, 0);
    mt_torch_source.forked();
    torch.malloc(0, 100, 0);
    torch.scope_end(torch.scope_begin(7, "step"));
    CHECK(collected.count == 2);
}

static void *end_scope(void *scope)
{
    mt_collect_thread();
    torch.scope_end(scope);
    return NULL;
}

static const struct mt_raw_event *phase_at(unsigned index, unsigned kind, const char *name)
{
    const struct mt_raw_event *event = &collected.events[index];

    CHECK(index < collected.count && event->kind == kind);
    CHECK(strcmp(collected.names[event->id], name) == 0);
    return event;
}

static void case_scopes(void)
{
    pthread_t other;
    void *outer, *inner;

    begin();
    mt_collect_thread();
    poll_source();
    outer = torch.scope_begin(7, "outer");
    inner = torch.scope_begin(7, "inner");
    torch.scope_end(torch.scope_begin(1, "AddBackward0"));
    torch.scope_end(torch.scope_begin(0, "aten::add"));
    torch.scope_end(inner);
    CHECK(pthread_create(&other, NULL, end_scope, outer) == 0);
    pthread_join(other, NULL);
    CHECK(collected.count == 4);
    phase_at(0, MT_EVENT_PHASE_PUSH, "outer");
    phase_at(1, MT_EVENT_PHASE_PUSH, "inner");
    CHECK(phase_at(2, MT_EVENT_PHASE_POP, "inner")->aux_bytes == 0);
    CHECK(phase_at(3, MT_EVENT_PHASE_POP, "outer")->aux_bytes == 1);
}

static void case_backward_scopes(void)
{
    settings.phases_torch = false;
    settings.phases_autograd = true;
    begin();
    torch.scope_end(torch.scope_begin(7, "outer"));
    torch.scope_end(torch.scope_begin(1, "AddBackward0"));
    CHECK(collected.count == 2);
    phase_at(0, MT_EVENT_PHASE_PUSH, "AddBackward0");
}

/* ---- every version that is known ---- */

static const struct {
    const char *version, *layout;
    bool pool;
} versions[] = {
    {"2.2.2", "32,7,10,9,26,0", false},  {"2.3.1", "34,9,12,11,28,0", false},
    {"2.4.1", "34,9,12,11,28,0", false}, {"2.5.1", "36,9,12,11,30,0", false},
    {"2.6.0", "41,9,13,12,35,0", false}, {"2.7.1", "41,9,13,12,35,0", false},
    {"2.8.0", "44,9,13,12,38,1", true},  {"2.9.1", "45,15,7,17,39,1", true},
    {"2.10.0", "50,16,7,18,44,1", true}, {"2.11.0", "50,16,7,18,44,1", true},
    {"2.12.1", "52,16,7,18,46,1", true}, {"2.13.0", "55,16,7,18,48,1", true},
    {"2.14.1", "57,16,7,18,50,1", true}, {"2.15.0+cu130", "57,16,7,18,50,1", true},
};

static size_t version_under_test;

static void case_version(void)
{
    setenv("MEMTRACE_STANDIN_TORCH", versions[version_under_test].layout, 1);
    load_version(versions[version_under_test].version);
    torch.use_pool(3, 0);
    torch.free(torch.malloc(0, 1000, 0));
    torch.empty_cache();
    CHECK(collected.count == 6);
    expect(1, MT_EVENT_ALLOC, 1000);
    CHECK((event_at(1)->id != 0) == versions[version_under_test].pool);
    CHECK(event_at(4)->kind == MT_EVENT_EMPTY_CACHE);
}

/* ---- */

static void run_case(void (*body)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        body();
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void test_tracker(void **state)
{
    (void)state;
    run_case(case_first_allocation_as_requested);
    run_case(case_free_completes_later);
    run_case(case_pools);
    run_case(case_devices);
    run_case(case_empty_cache_is_said_once_a_device);
    run_case(case_out_of_memory);
    run_case(case_limit_is_told);
    run_case(case_limit_that_changes_is_not_told);
    run_case(case_limit_that_was_passed_is_not_told);
    run_case(case_symbols_tell_of_unknown_builds);
}

static void test_reports_where_the_tracker_is_doubtful(void **state)
{
    (void)state;
    run_case(case_other_version_reports);
    run_case(case_unreleased_version_reports);
    run_case(case_other_table_reports);
    run_case(case_other_type_reports);
    run_case(case_disagreement_reports);
}

static void test_stands_aside(void **state)
{
    (void)state;
    run_case(case_not_asked_touches_nothing);
    run_case(case_child_is_silent);
}

static void test_scopes(void **state)
{
    (void)state;
    run_case(case_scopes);
    run_case(case_backward_scopes);
}

static void test_every_known_version(void **state)
{
    (void)state;
    for (; version_under_test < sizeof versions / sizeof *versions; version_under_test++)
        run_case(case_version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tracker),
        cmocka_unit_test(test_reports_where_the_tracker_is_doubtful),
        cmocka_unit_test(test_stands_aside),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_every_known_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
