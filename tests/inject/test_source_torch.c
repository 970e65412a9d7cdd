/* PyTorch's allocator as a source, against stand-ins of its libraries. */
#include <dlfcn.h>
#include <pthread.h>
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torch_parts.h"
#include "torch_harness.h"

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
    CHECK(event_at(4)->native_stack == event_at(5)->native_stack);
    CHECK(event_at(4)->native_stack != event_at(3)->native_stack);
    CHECK(torch.reported() == 3);
    CHECK(collected.said_count == 0);
    CHECK(has_fact("framework=PyTorch 2.11.0+standin\n") && has_fact("has_segments=1\n"));
    CHECK(has_fact("has_free_completed=1\n") && !has_fact("sizes_rounded"));
    CHECK(!has_fact("never_refused"));
    mt_torch_source.stop();
    CHECK(has_fact("never_refused=1\n"));
}

static bool meet_before_cuda(void)
{
    void *library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);

    CHECK(library);
    bool met = mt_torch_allocator_meet(library, false);
    dlclose(library);
    return met;
}

/* Nothing is held back for a report that would not come. */
static void case_loaded_before_the_collector(void)
{
    load(STANDIN_TORCH);
    CHECK(meet_before_cuda());
    CHECK(!meet_before_cuda()); /* once */
    CHECK(torch.begin() > 0);
    CHECK(mt_torch_mode() == MT_TORCH_TRACKED);
    torch.free(torch.malloc(0, 1000, 0));
    CHECK(collected.count == 4);
    expect(0, MT_EVENT_SEGMENT_ALLOC, 2 << 20);
    expect(1, MT_EVENT_ALLOC, 1000);
    CHECK(has_fact("framework=PyTorch 2.11.0+standin\n") && !has_fact("sizes_rounded"));
}

/* Symbols give the places of the functions, but nothing would check them. */
static void case_loaded_before_the_collector_and_not_known(void)
{
    setenv("MEMTRACE_STANDIN_TORCH", "33,1,9,6,21,1", 1);
    load(STANDIN_TORCH);
    CHECK(!meet_before_cuda());
    CHECK(collected.said_count == 1 && strstr(collected.said[0], "an unknown build"));
}

static void case_foreign_and_loaded_before_the_collector(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "type", 1);
    load(STANDIN_TORCH);
    CHECK(!meet_before_cuda());
}

/* Its blocks are calls of the driver. */
static void case_async_and_loaded_before_the_collector(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "async", 1);
    load(STANDIN_TORCH);
    CHECK(meet_before_cuda());
}

static void case_free_completes_later(void)
{
    void *a, *b;

    begin();
    a = torch.malloc(0, 100, 0);
    b = torch.malloc(0, 300, 0);
    torch.record_stream(a);
    torch.free(a);
    torch.free(b);
    torch.malloc(0, 200, 0);
    CHECK(collected.count == 8);
    expect(3, MT_EVENT_FREE_REQUESTED, 100);
    expect(4, MT_EVENT_FREE_REQUESTED, 300);
    expect(5, MT_EVENT_FREE_COMPLETED, 300);
    expect(6, MT_EVENT_FREE_COMPLETED, 100);
    expect(7, MT_EVENT_ALLOC, 200);
    CHECK(event_at(6)->native_stack > event_at(5)->native_stack);
    torch.record_stream(b = torch.malloc(0, 400, 0));
    torch.free(b);
    torch.malloc(0, 10, 0);
    expect(9, MT_EVENT_FREE_REQUESTED, 400);
    expect(10, MT_EVENT_FREE_COMPLETED, 400);
    CHECK(event_at(10)->native_stack > event_at(9)->native_stack);
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
    setenv("MEMTRACE_SIMULATED_DEVICES", "3", 1);
    begin();
    torch.malloc(2, 100, 0);
    torch.malloc(0, 100, 0);
    CHECK(collected.count == 4);
    CHECK(event_at(1)->device == 2 && event_at(3)->device == 0);
}

static void case_empty_cache_is_said_once_a_device(void)
{
    setenv("MEMTRACE_SIMULATED_DEVICES", "2", 1);
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

    setenv("MEMTRACE_SIMULATED_MEMORY", memory, 1);
    setenv("MEMTRACE_SIMULATED_DEVICES", device_count, 1);
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
    CHECK(has_fact("sizes_rounded=1\n") && !has_fact("has_segments"));
}

static void case_other_version_reports(void)
{
    load_version("2.16.0");
    expect_reports("an unknown build");
}

static void case_unreleased_version_reports(void)
{
    load_version("2.11.0a0+git70d99e9");
    expect_reports("an unknown build");
}

static void case_other_table_reports(void)
{
    setenv("MEMTRACE_STANDIN_TORCH", "51,16,7,18,44,1", 1);
    begin();
    expect_reports("an unknown build");
}

static void case_other_type_reports(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "type", 1);
    begin();
    expect_reports("an allocator other than");
    CHECK(!strstr(collected.facts, "not_recorded"));
    mt_torch_source.start();
    mt_torch_source.poll();
    CHECK(collected.said_count == 1);
    CHECK(has_fact(
        "not_recorded=PyTorch 2.11.0+standin: an allocator other than its native one; only its "
        "calls of the driver are recorded\n"));
}

/* All of its blocks are calls of the driver: nothing is missing. */
static void case_async_allocator_misses_nothing(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "async", 1);
    begin();
    expect_reports("an allocator other than");
    mt_torch_source.poll();
    CHECK(!strstr(collected.facts, "not_recorded"));
}

static void case_child_misses_nothing_of_its_parent(void)
{
    setenv("MEMTRACE_STANDIN_FAULT", "type", 1);
    begin();
    mt_torch_source.forked();
    mt_torch_source.poll();
    CHECK(!strstr(collected.facts, "not_recorded"));
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

static void case_not_followed_touches_nothing(void)
{
    settings.follow = false;
    settings.root_process = 1;
    begin();
    CHECK(mt_torch_mode() == MT_TORCH_REPORTS && !*mt_torch_version_text());
}

static void case_options_are_told(void)
{
    setenv("PYTORCH_ALLOC_CONF", "backend:native", 1);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
    begin();
    setenv("PYTORCH_CUDA_ALLOC_CONF", "later", 1);
    torch.malloc(0, 100, 0);
    CHECK(has_fact("allocator_options=max_split_size_mb:64\n"));
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

static void case_child_that_begins_itself_is_recorded(void)
{
    load(STANDIN_TORCH);
    mt_torch_source.forked();
    CHECK(torch.begin() == 1);
    torch.malloc(0, 100, 0);
    torch.scope_end(torch.scope_begin(7, "step"));
    CHECK(collected.count == 4);
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

static void run_case(void (*body)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        alarm(240); /* ends a child that hangs; an emulator needs a minute */
        body();
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

TEST(test_tracker)
{
    run_case(case_first_allocation_as_requested);
    run_case(case_loaded_before_the_collector);
    run_case(case_loaded_before_the_collector_and_not_known);
    run_case(case_foreign_and_loaded_before_the_collector);
    run_case(case_async_and_loaded_before_the_collector);
    run_case(case_free_completes_later);
    run_case(case_pools);
    run_case(case_devices);
    run_case(case_empty_cache_is_said_once_a_device);
    run_case(case_options_are_told);
    run_case(case_out_of_memory);
    run_case(case_limit_is_told);
    run_case(case_limit_that_changes_is_not_told);
    run_case(case_limit_that_was_passed_is_not_told);
    run_case(case_symbols_tell_of_unknown_builds);
}

TEST(test_reports_where_the_tracker_is_doubtful)
{
    run_case(case_other_version_reports);
    run_case(case_unreleased_version_reports);
    run_case(case_other_table_reports);
    run_case(case_other_type_reports);
    run_case(case_async_allocator_misses_nothing);
    run_case(case_child_misses_nothing_of_its_parent);
    run_case(case_disagreement_reports);
}

TEST(test_stands_aside)
{
    run_case(case_not_asked_touches_nothing);
    run_case(case_not_followed_touches_nothing);
    run_case(case_child_is_silent);
    run_case(case_child_that_begins_itself_is_recorded);
}

TEST(test_scopes)
{
    run_case(case_scopes);
    run_case(case_backward_scopes);
}

TEST(test_every_known_version)
{
    for (; version_under_test < sizeof versions / sizeof *versions; version_under_test++)
        run_case(case_version);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
