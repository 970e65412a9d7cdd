/* The collector as a test sees it: collect.h and intern.h, kept in memory. For
 * tests of single sources. */
#ifndef RECORDED_EVENTS_H
#define RECORDED_EVENTS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "intern.h"
#include "settings.h"

enum { MAX_RECORDED = 1 << 18, RECORDED_NAMES = 1 << 14 };

static struct {
    pthread_mutex_t lock;
    struct mt_raw_event events[MAX_RECORDED];
    size_t count;
    char *names[RECORDED_NAMES];
    uint32_t name_count;
    uint64_t pools[64][2];
    uint32_t pool_count;
    char facts[4096], devices[1024], definitions[4096], said[1024];
    bool refuses;
    uint32_t threads;
    void (*before_fact)(void); /* what other threads do while one tells a fact */
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct mt_inject_settings recorded_settings = {
    .asked = true, .output = "/nowhere", .phases_nvtx = true};
const struct mt_inject_settings *const mt_recorder_settings = &recorded_settings;

static _Thread_local uint32_t recorded_thread;
static _Thread_local int recorded_depth;

bool mt_collect_enter(void)
{
    if (recorded.refuses || recorded_depth)
        return false;
    recorded_depth++;
    return true;
}

void mt_collect_leave(void)
{
    recorded_depth--;
}

bool mt_collect_is_running(void)
{
    return !recorded.refuses;
}

uint32_t mt_collect_thread(void)
{
    pthread_mutex_lock(&recorded.lock);
    if (!recorded_thread)
        recorded_thread = ++recorded.threads;
    pthread_mutex_unlock(&recorded.lock);
    return recorded_thread;
}

void mt_collect_emit(const struct mt_raw_event *event)
{
    uint32_t thread = mt_collect_thread();

    pthread_mutex_lock(&recorded.lock);
    if (recorded_depth && recorded.count < MAX_RECORDED) {
        recorded.events[recorded.count] = *event;
        recorded.events[recorded.count].ticks = thread; /* who emitted it */
        recorded.events[recorded.count].seq = recorded.count;
        recorded.count++;
    }
    pthread_mutex_unlock(&recorded.lock);
}

void mt_collect_stacks(struct mt_raw_event *event)
{
    event->python_stack = 71;
    event->native_stack = 72;
}

uint32_t mt_collect_name(const char *text, size_t length)
{
    uint32_t id = 0;

    pthread_mutex_lock(&recorded.lock);
    for (uint32_t i = 0; i < recorded.name_count && !id; i++)
        if (strlen(recorded.names[i]) == length && !memcmp(recorded.names[i], text, length))
            id = i + 1;
    if (!id && recorded.name_count < RECORDED_NAMES) {
        recorded.names[recorded.name_count++] = strndup(text, length);
        id = recorded.name_count;
    }
    pthread_mutex_unlock(&recorded.lock);
    return id;
}

uint32_t mt_collect_pool(uint64_t a, uint64_t b)
{
    if (!a && !b)
        return 0;
    for (uint32_t i = 0; i < recorded.pool_count; i++)
        if (recorded.pools[i][0] == a && recorded.pools[i][1] == b)
            return i + 1;
    recorded.pools[recorded.pool_count][0] = a;
    recorded.pools[recorded.pool_count][1] = b;
    return ++recorded.pool_count;
}

static void recorded_add(char *to, size_t capacity, const char *format, ...)
{
    size_t length = strlen(to);
    va_list list;

    va_start(list, format);
    vsnprintf(to + length, capacity - length, format, list);
    va_end(list);
}

bool mt_collect_is_idle(void)
{
    return false;
}

void mt_collect_fact(const char *key, const char *value)
{
    if (recorded.before_fact)
        recorded.before_fact();
    recorded_add(recorded.facts, sizeof recorded.facts, "%s=%s\n", key, value);
}

void mt_collect_device(uint32_t index, uint64_t total_bytes, const char *name)
{
    recorded_add(recorded.devices, sizeof recorded.devices, "%u %llu %s\n", index,
                 (unsigned long long)total_bytes, name);
}

void mt_collect_message(bool *once, const char *format, ...)
{
    size_t length = strlen(recorded.said);
    va_list list;

    if (*once)
        return;
    *once = true;
    va_start(list, format);
    vsnprintf(recorded.said + length, sizeof recorded.said - length, format, list);
    va_end(list);
}

void mt_collect_not_recorded(bool *once, const char *format, ...)
{
    char text[448];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    mt_collect_message(once, "%s", text);
    mt_collect_fact("not_recorded", text);
}

/* Only definitions of threads: "given|renamed OS-id name". */
uint32_t mt_define(enum mt_definition_kind kind, const void *payload, size_t payload_bytes)
{
    const uint64_t *words = payload;

    if (recorded_depth && kind == MT_DEFINE_THREAD)
        recorded_add(recorded.definitions, sizeof recorded.definitions, "%s %llu %.*s\n",
                     words[0] == MT_THREAD_GIVEN     ? "given"
                     : words[0] == MT_THREAD_RENAMED ? "renamed"
                                                     : "?",
                     (unsigned long long)words[1], (int)(payload_bytes - 16),
                     (const char *)(words + 2));
    return 1;
}

/* What a source leaves behind in a forked child is no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static void recorded_clear(void)
{
    recorded.count = 0;
    recorded.facts[0] = recorded.devices[0] = recorded.definitions[0] = recorded.said[0] = 0;
    recorded.refuses = false;
}

/* "push a|pop a|..." of all events; cleared afterwards. Memory events are
 * "alloc ADDRESS SIZE pool", and so on. */
static inline const char *recorded_story(void)
{
    static char story[1 << 16];

    story[0] = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct mt_raw_event *event = &recorded.events[i];
        bool named = event->kind == MT_EVENT_PHASE_PUSH || event->kind == MT_EVENT_PHASE_POP ||
                     event->kind == MT_EVENT_MARK;
        recorded_add(story, sizeof story, "%s%s ", i ? "|" : "",
                     named ? event->kind == MT_EVENT_PHASE_PUSH  ? "push"
                             : event->kind == MT_EVENT_PHASE_POP ? "pop"
                                                                 : "mark"
                           : mt_event_kind_name(event->kind));
        if (named)
            recorded_add(story, sizeof story, "%s",
                         event->id && event->id <= recorded.name_count
                             ? recorded.names[event->id - 1]
                             : "?");
        if (named && event->kind == MT_EVENT_PHASE_POP && event->aux_bytes)
            recorded_add(story, sizeof story, " of %llu", (unsigned long long)event->aux_bytes);
        if (!named || event->addr)
            recorded_add(story, sizeof story, named ? " at %llx %llu" : "%llx %llu",
                         (unsigned long long)event->addr, (unsigned long long)event->size_bytes);
        if (!named && event->id)
            recorded_add(story, sizeof story, " of %llx",
                         (unsigned long long)recorded.pools[event->id - 1][0]);
    }
    recorded_clear();
    return story;
}

#endif
