/* What check_python_stacks.py loads into an interpreter: the collector's own
 * reader of Python stacks, with a tape that is a table in memory, and calls
 * that a script can make through ctypes. The state of the reader is ours to
 * see and to break, so its source is included. */
#include "python_stack.c"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "python_code.h"

enum { MAX_DEFINITIONS = 1 << 16 };

static struct definition {
    char *payload;
    size_t bytes;
} codes[MAX_DEFINITIONS], stacks[MAX_DEFINITIONS];
static _Atomic uint32_t code_count, stack_count;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static char facts[1024], said[512];

static uint32_t keep(struct definition *table, _Atomic uint32_t *count, const void *payload,
                     size_t bytes)
{
    uint32_t id = 0;

    pthread_mutex_lock(&table_lock);
    for (uint32_t i = *count; i > 0 && !id; i--)
        if (table[i - 1].bytes == bytes && !memcmp(table[i - 1].payload, payload, bytes))
            id = i;
    if (!id && *count < MAX_DEFINITIONS) {
        table[*count] = (struct definition){malloc(bytes), bytes};
        memcpy(table[*count].payload, payload, bytes);
        id = ++*count;
    }
    pthread_mutex_unlock(&table_lock);
    return id;
}

uint32_t mt_intern(enum mt_definition_kind kind, const void *payload, size_t payload_bytes)
{
    return kind == MT_DEFINE_CODE ? keep(codes, &code_count, payload, payload_bytes) : 0;
}

uint32_t mt_intern_stack(enum mt_definition_kind kind, const uint64_t *words, size_t count)
{
    static _Thread_local uint32_t last;

    if (kind != MT_DEFINE_PYTHON_STACK)
        return 0;
    /* as a cache of the calling thread would find it */
    if (last && stacks[last - 1].bytes == count * 8 &&
        !memcmp(stacks[last - 1].payload, words, count * 8))
        return last;
    return last = keep(stacks, &stack_count, words, count * sizeof *words);
}

void mt_collect_fact(const char *key, const char *value)
{
    size_t used = strlen(facts);

    snprintf(facts + used, sizeof facts - used, "%s=%s\n", key, value);
}

void mt_collect_message(bool *once, const char *format, ...)
{
    va_list values;

    if (*once)
        return;
    *once = true;
    va_start(values, format);
    vsnprintf(said, sizeof said, format, values);
    va_end(values);
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

#define EXPORT __attribute__((visibility("default")))

EXPORT int probe_stack(char *out, size_t capacity);
EXPORT int probe_state(void);
EXPORT const char *probe_facts(void);
EXPORT const char *probe_said(void);
EXPORT void probe_poll(void);
EXPORT void probe_stop(void);
EXPORT void probe_reset(void);
EXPORT void probe_layout(struct mt_python_layout *out, const struct mt_python_layout *in);
EXPORT uint32_t probe_kept(bool *too_deep);
EXPORT double probe_bench(long calls);
EXPORT void probe_spin(void);
EXPORT void probe_call_elsewhere(void (*call)(void));
EXPORT void probe_lines(uint32_t version, uint32_t first_line, const uint8_t *table,
                        uint32_t table_bytes, uint32_t *lines, uint32_t count);

/* Texts that a wrong layout gives may hold anything. */
static void add_text(char *out, size_t *used, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[(*used)++] = (char)((unsigned char)text[i] < 32 ? '?' : text[i]);
    out[(*used)++] = 0x1f;
}

/* "file\x1fname\x1fline\x1e" of each frame, outermost first; how many. */
static int decode(uint32_t stack, char *out, size_t capacity)
{
    const struct definition *d = &stacks[stack - 1];
    size_t used = 0;

    if (stack > stack_count)
        return -3; /* not an id of this process */
    for (size_t i = 0; i < d->bytes / 8; i++) {
        struct mt_code_definition head;
        uint64_t word;

        memcpy(&word, d->payload + i * 8, 8);
        if (word >> 32 == 0 || word >> 32 > code_count)
            return -3;
        const struct definition *code = &codes[(word >> 32) - 1];
        memcpy(&head, code->payload, sizeof head);
        const char *texts = code->payload + sizeof head;
        if (used + head.file_bytes + head.name_bytes + 32 > capacity)
            return -1;
        add_text(out, &used, texts, head.file_bytes);
        add_text(out, &used, texts + head.file_bytes, head.name_bytes);
        used += (size_t)sprintf(
            out + used, "%u\x1e",
            mt_python_line(&head, (const uint8_t *)texts + head.file_bytes + head.name_bytes,
                           (uint32_t)word));
    }
    return (int)(d->bytes / 8);
}

int probe_stack(char *out, size_t capacity)
{
    out[0] = 0;
    errno = 4711;
    uint32_t stack = mt_python_stack();
    if (errno != 4711)
        return -2;
    return stack ? decode(stack, out, capacity) : 0;
}

int probe_state(void)
{
    return atomic_load(&python.state);
}

const char *probe_facts(void)
{
    return facts;
}

const char *probe_said(void)
{
    return said;
}

static void *poll_once(void *unused)
{
    (void)unused;
    mt_python_source.poll();
    return NULL;
}

static void *call_one(void *call)
{
    void (*function)(void);

    memcpy(&function, call, sizeof function);
    function();
    return NULL;
}

static void elsewhere(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, argument) == 0)
        pthread_join(thread, NULL);
}

/* As the writer thread does. */
void probe_poll(void)
{
    elsewhere(poll_once, NULL);
}

void probe_call_elsewhere(void (*call)(void))
{
    elsewhere(call_one, &call);
}

void probe_stop(void)
{
    mt_python_source.stop();
}

/* Nothing is checked yet. */
void probe_reset(void)
{
    atomic_store(&python.state, UNCHECKED);
    atomic_store(&python.may_check, true);
    atomic_store(&python.different, 0);
    atomic_store(&python.shallow, 0);
    if (own_memory)
        memset(own_memory, 0, sizeof *own_memory);
    said[0] = 0;
}

void probe_layout(struct mt_python_layout *out, const struct mt_python_layout *in)
{
    if (out)
        *out = python.view.layout;
    if (in)
        python.view.layout = *in;
}

/* The stack that the thread keeps; and whether one was too deep since the last call. */
uint32_t probe_kept(bool *too_deep)
{
    uintptr_t *last = &own_memory->kept[MT_PYTHON_KEPT - 1].frame;

    *too_deep = *last != 0;
    *last = 0;
    return own_memory->kept_count ? own_memory->kept_id : 0;
}

double probe_bench(long calls)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < calls; i++)
        (void)mt_python_stack();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           (double)calls;
}

static _Atomic bool spins;

/* For a thread that goes on while the interpreter ends, and after it. */
void probe_spin(void)
{
    static const struct timespec pause = {.tv_nsec = 20000};

    for (spins = true;; nanosleep(&pause, NULL))
        (void)mt_python_stack();
}

__attribute__((destructor)) static void stay(void)
{
    static const struct timespec pause = {.tv_nsec = 50000000};

    if (spins)
        nanosleep(&pause, NULL);
}

void probe_lines(uint32_t version, uint32_t first_line, const uint8_t *table, uint32_t table_bytes,
                 uint32_t *lines, uint32_t count)
{
    struct mt_code_definition code = {
        .python_version = version, .first_line = first_line, .table_bytes = table_bytes};

    for (uint32_t i = 0; i < count; i++)
        lines[i] = mt_python_line(&code, table, i);
}

static void forked_child(void)
{
    pthread_mutex_init(&table_lock, NULL);
    mt_python_source.forked();
    code_count = 0;
    stack_count = 0;
    facts[0] = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked_child);
}
