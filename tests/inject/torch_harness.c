#include "torch_harness.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"
#include "torch_parts.h"

struct mt_inject_settings settings = {.asked = true, .follow = true, .phases_torch = true};
const struct mt_inject_settings *const mt_recorder_settings = &settings;

struct collected collected = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
    CHECK(inside && collected.count < MAX_EVENTS);
    collected.events[collected.count++] = *event;
    pthread_mutex_unlock(&collected.lock);
}

void mt_collect_stacks(struct mt_raw_event *event)
{
    CHECK(inside);
    event->python_stack = STACK;
    event->native_stack = ++collected.stack_count;
}

uint32_t mt_collect_name(const char *text, size_t length)
{
    CHECK(collected.name_count + 1 < MAX_NAMES);
    snprintf(collected.names[++collected.name_count], 64, "%.*s", (int)length, text);
    return collected.name_count;
}

uint32_t mt_collect_pool(uint64_t a, uint64_t b)
{
    CHECK(collected.pool_count + 1 < MAX_NAMES);
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

void mt_collect_message(bool *once, const char *format, ...)
{
    va_list arguments;

    if (*once)
        return;
    *once = true;
    CHECK(collected.said_count < MAX_SAID);
    va_start(arguments, format);
    vsnprintf(collected.said[collected.said_count++], sizeof collected.said[0], format, arguments);
    va_end(arguments);
}

void mt_collect_not_recorded(bool *once, const char *format, ...)
{
    char text[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mt_collect_message(once, "%s", text);
    mt_collect_fact("not_recorded", text);
}

struct torch_library torch;

void *need(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol);
    return symbol;
}

void load(const char *package)
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
void load_package(const char *version, const char *allocator_folder)
{
    static const char *const files[] = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so",
                                        "libtorch_cuda.so"};
    char folder[] = "/tmp/memtrace-torch-XXXXXX", from[512], to[512];

    CHECK(mkdtemp(folder));
    snprintf(to, sizeof to, "%s/lib", folder);
    CHECK(mkdir(to, 0700) == 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", STANDIN_TORCH,
                 strstr(files[i], "c10_cuda") ? allocator_folder : "lib", files[i]);
        snprintf(to, sizeof to, "%s/lib/%s", folder, files[i]);
        CHECK(symlink(from, to) == 0);
    }
    snprintf(to, sizeof to, "%s/version.py", folder);
    FILE *file = fopen(to, "w");
    CHECK(file);
    fprintf(file, "__version__ = '%s'\n", version);
    fclose(file);
    load(folder);
    snprintf(to, sizeof to, "rm -r %s", folder);
    CHECK(torch.begin() > 0);
    CHECK(system(to) == 0);
}

void load_version(const char *version)
{
    load_package(version, "lib");
}

void begin(void)
{
    load(STANDIN_TORCH);
    CHECK(torch.begin() > 0);
}

const struct mt_raw_event *event_at(unsigned index)
{
    CHECK(index < collected.count);
    CHECK(collected.events[index].heap == MT_RAW_PYTORCH);
    return &collected.events[index];
}

void expect(unsigned index, unsigned kind, uint64_t size_bytes)
{
    const struct mt_raw_event *event = event_at(index);

    if (event->kind != kind || event->size_bytes != size_bytes)
        fprintf(stderr, "event %u: kind %u, size %llu\n", index, event->kind,
                (unsigned long long)event->size_bytes);
    CHECK(event->kind == kind && event->size_bytes == size_bytes);
    CHECK(event->python_stack == STACK);
}

void poll_source(void)
{
    mt_torch_source.poll();
}

bool has_fact(const char *line)
{
    return strstr(collected.facts, line) != NULL;
}
