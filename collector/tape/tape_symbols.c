/* A definition of the tape is kept as a position in its log, and resolved when an event needs it.
 * Stacks are added frame by frame to the trace's tree. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "modules.h"
#include "python_code.h"
#include "source.h"
#include "tape.h"
#include "tape_symbols.h"
#include "util.h"

/* Facts about the run that sources set ("key=value"), for the trace's header. Keys are those of
 * docs/internals/trace-format.md 2.1. */

struct tape_fact {
    char *key, *value;
};

/* Zeroed memory holds no facts. */
struct tape_facts {
    struct tape_fact *facts;
    size_t count, capacity;
    bool changed; /* since tape_facts_header */
};

static struct tape_fact *find(const struct tape_facts *facts, const char *key, size_t length)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strlen(facts->facts[i].key) == length && !memcmp(facts->facts[i].key, key, length))
            return &facts->facts[i];
    return NULL;
}

static struct tape_fact *make(struct tape_facts *facts, const char *key, size_t length)
{
    if (facts->count == facts->capacity &&
        mt_grow(&facts->facts, &facts->capacity, facts->count + 1, sizeof *facts->facts))
        return NULL;
    struct tape_fact *fact = &facts->facts[facts->count];
    fact->value = NULL;
    fact->key = strndup(key, length);
    if (!fact->key)
        return NULL;
    facts->count++;
    return fact;
}

/* The separator between the values of a fact; 0 if it has only one value. */
static char separator_of(const char *key)
{
    if (!strcmp(key, "sources"))
        return ',';
    return strcmp(key, "not_recorded") ? '\0' : '\n';
}

static bool has_item(const char *list, const char *item, char separator)
{
    const char between[] = {separator, '\0'}, *at = list;
    size_t length = strlen(item);

    for (;; at++) {
        size_t next = strcspn(at, between);
        if (next == length && !memcmp(at, item, length))
            return true;
        at += next;
        if (!*at)
            return false;
    }
}

/* Takes ownership of `item`. */
static enum mt_status join(struct tape_fact *fact, char *item, char separator, bool *changed)
{
    size_t old = strlen(fact->value), length = strlen(item);

    if (has_item(fact->value, item, separator)) {
        free(item);
        return MT_OK;
    }
    char *joined = realloc(fact->value, old + length + 2);
    if (joined) {
        joined[old] = separator;
        memcpy(joined + old + 1, item, length + 1);
        fact->value = joined;
        *changed = true;
    }
    free(item);
    return joined ? MT_OK : MT_ERR_MEMORY;
}

/* `text` is "key=value". Values of `sources` are joined with commas and those of `not_recorded`
 * with newlines, each value once. For other keys the last value replaces earlier ones.
 * MT_ERR_FORMAT: there is no '='. */
static enum mt_status tape_facts_add(struct tape_facts *facts, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t key_length = equals ? (size_t)(equals - text) : 0;

    if (!key_length)
        return MT_ERR_FORMAT;
    struct tape_fact *fact = find(facts, text, key_length);
    if (!fact)
        fact = make(facts, text, key_length);
    char *value = strndup(equals + 1, length - key_length - 1);
    if (!fact || !value) {
        free(value);
        return MT_ERR_MEMORY;
    }
    if (fact->value && separator_of(fact->key))
        return join(fact, value, separator_of(fact->key), &facts->changed);
    if (fact->value && !strcmp(fact->value, value)) {
        free(value);
        return MT_OK;
    }
    free(fact->value);
    fact->value = value;
    facts->changed = true;
    return MT_OK;
}

static const char *text_of(const struct tape_facts *facts, const char *key, const char *usual)
{
    const struct tape_fact *fact = find(facts, key, strlen(key));

    return fact && fact->value ? fact->value : usual;
}

static bool flag_of(const struct tape_facts *facts, const char *key, bool usual)
{
    const struct tape_fact *fact = find(facts, key, strlen(key));

    return fact && fact->value ? !strcmp(fact->value, "1") : usual;
}

static uint64_t number_of(const struct tape_facts *facts, const char *key, uint64_t usual)
{
    const struct tape_fact *fact = find(facts, key, strlen(key));
    char *end;

    if (!fact || !fact->value || fact->value[0] < '0' || fact->value[0] > '9')
        return usual;
    unsigned long long number = strtoull(fact->value, &end, 10);
    return *end ? usual : number;
}

static int32_t small_of(const struct tape_facts *facts, const char *key, int32_t usual)
{
    uint64_t number = number_of(facts, key, UINT64_MAX);

    return number <= INT32_MAX ? (int32_t)number : usual;
}

static void set_devices(const struct tape_facts *facts, struct mt_trace_header *header)
{
    for (unsigned i = 0; i < MT_IDENTITY_DEVICES; i++) {
        const char *const keys[] = {"uuid", "pci", "mig"};
        const char **const fields[] = {&header->device_uuid[i], &header->device_pci[i],
                                       &header->device_mig[i]};

        for (size_t k = 0; k < MT_ARRAY_LEN(keys); k++) {
            char key[32];
            snprintf(key, sizeof key, "device.%u.%s", i, keys[k]);
            *fields[k] = text_of(facts, key, *fields[k]);
        }
    }
}

static void set_identity(const struct tape_facts *facts, struct mt_trace_header *header)
{
    header->host = text_of(facts, "host", header->host);
    header->process_id = number_of(facts, "process_id", header->process_id);
    header->rank = small_of(facts, "rank", header->rank);
    header->world_size = small_of(facts, "world_size", header->world_size);
    header->local_rank = text_of(facts, "local_rank", header->local_rank);
    header->restart = text_of(facts, "restart", header->restart);
    header->boot_id = text_of(facts, "boot_id", header->boot_id);
    header->job = text_of(facts, "job", header->job);
    header->mesh = text_of(facts, "mesh", header->mesh);
    header->ended = text_of(facts, "ended", header->ended);
    header->ended_t_ns = number_of(facts, "ended_t_ns", header->ended_t_ns);
    header->cgroup_limit_bytes = number_of(facts, "cgroup_limit_bytes", header->cgroup_limit_bytes);
    set_devices(facts, header);
}

/* Sets the facts that are known. Strings are valid until the fact changes or `facts` is
 * released. */
static void tape_facts_header(struct tape_facts *facts, struct mt_trace_header *header)
{
    facts->changed = false;
    set_identity(facts, header);
    header->framework = text_of(facts, "framework", header->framework);
    header->allocator_options = text_of(facts, "allocator_options", header->allocator_options);
    header->settings = text_of(facts, "settings", header->settings);
    header->sources = text_of(facts, "sources", header->sources);
    header->driver_calls = text_of(facts, "driver_calls", header->driver_calls);
    header->not_recorded = text_of(facts, "not_recorded", header->not_recorded);
    header->dry_run = text_of(facts, "dry_run", header->dry_run);
    header->command = text_of(facts, "command", header->command);
    header->memory_limit_bytes = number_of(facts, "memory_limit_bytes", header->memory_limit_bytes);
    header->starts_in_middle = flag_of(facts, "starts_in_middle", header->starts_in_middle);
    header->sizes_rounded = flag_of(facts, "sizes_rounded", header->sizes_rounded);
    header->has_stacks = flag_of(facts, "has_stacks", header->has_stacks);
    header->has_segments = flag_of(facts, "has_segments", header->has_segments);
    header->has_free_requested = flag_of(facts, "has_free_requested", header->has_free_requested);
    header->has_free_completed = flag_of(facts, "has_free_completed", header->has_free_completed);
    header->never_refused = flag_of(facts, "never_refused", header->never_refused);
}

static void tape_facts_release(struct tape_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->facts[i].key);
        free(facts->facts[i].value);
    }
    free(facts->facts);
    *facts = (struct tape_facts){0};
}

enum { MAX_THREADS = 65535, MAX_PAYLOAD_BYTES = 1 << 20 };

/* Payloads of one kind; the entry of id n is at n - 1. */
struct table {
    struct entry {
        const uint8_t *payload;
        uint32_t bytes;
        uint32_t symbol; /* resolved id, MT_NO_ID = not yet */
    } * entries;
    size_t count, capacity;
};

struct mt_tape_symbols {
    struct mt_tape *tape;
    struct mt_symbols *symbols;
    uint64_t read; /* bytes of the log */
    bool damaged;
    struct table tables[MT_DEFINE_KIND_COUNT];
    struct table threads;      /* by number */
    struct table late_names;   /* for threads, in their order */
    struct mt_map stacks;      /* python id << 32 | native id -> stack + 1 */
    struct mt_map code_frames; /* code id << 32 | offset -> frame */
    struct mt_modules *modules;
    struct tape_facts facts;
    uint32_t heaps[MT_RAW_HEAP_COUNT]; /* + 1, 0 = not yet */
};

struct mt_tape_symbols *mt_tape_symbols_new(struct mt_tape *tape, struct mt_symbols *symbols)
{
    struct mt_tape_symbols *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    self->tape = tape;
    self->symbols = symbols;
    self->modules = mt_modules_new();
    if (!self->modules) {
        free(self);
        return NULL;
    }
    return self;
}

void mt_tape_symbols_free(struct mt_tape_symbols *self)
{
    if (!self)
        return;
    for (size_t kind = 0; kind < MT_DEFINE_KIND_COUNT; kind++)
        free(self->tables[kind].entries);
    free(self->threads.entries);
    free(self->late_names.entries);
    mt_map_release(&self->stacks);
    mt_map_release(&self->code_frames);
    mt_modules_free(self->modules);
    tape_facts_release(&self->facts);
    free(self);
}

static enum mt_status set_entry(struct table *table, size_t index, const uint8_t *payload,
                                uint32_t bytes)
{
    if (index >= table->capacity &&
        mt_grow(&table->entries, &table->capacity, index + 1, sizeof *table->entries))
        return MT_ERR_MEMORY;
    for (; table->count <= index; table->count++)
        table->entries[table->count] = (struct entry){NULL, 0, MT_NO_ID};
    table->entries[index].payload = payload;
    table->entries[index].bytes = bytes;
    return MT_OK;
}

static enum mt_status take_thread(struct mt_tape_symbols *self, const uint8_t *payload,
                                  uint32_t bytes)
{
    uint64_t number;

    if (bytes < 16)
        return MT_ERR_FORMAT;
    memcpy(&number, payload, sizeof number);
    if (number == MT_THREAD_RENAMED || number == MT_THREAD_GIVEN)
        return set_entry(&self->late_names, self->late_names.count, payload, bytes);
    if (number > MAX_THREADS)
        return MT_OK; /* more than a trace can distinguish */
    return set_entry(&self->threads, (size_t)number, payload, bytes);
}

static enum mt_status take_device(struct mt_tape_symbols *self, const uint8_t *payload,
                                  uint32_t bytes)
{
    uint64_t facts[2];
    uint32_t name = MT_NO_ID;
    enum mt_status status = MT_OK;

    if (bytes < sizeof facts)
        return MT_ERR_FORMAT;
    memcpy(facts, payload, sizeof facts);
    if (facts[1] >= 1024)
        return MT_OK;
    if (bytes > sizeof facts)
        status = mt_symbols_string(self->symbols, (const char *)payload + sizeof facts,
                                   bytes - sizeof facts, &name);
    if (status == MT_OK)
        status = mt_symbols_device(self->symbols, (uint32_t)facts[1], name, facts[0]);
    return status;
}

static enum mt_status take(struct mt_tape_symbols *self, const struct mt_definition *definition,
                           const uint8_t *payload)
{
    struct table *table = &self->tables[definition->kind];

    switch ((enum mt_definition_kind)definition->kind) {
    case MT_DEFINE_THREAD: return take_thread(self, payload, definition->payload_bytes);
    case MT_DEFINE_DEVICE: return take_device(self, payload, definition->payload_bytes);
    case MT_DEFINE_FACT:
        return tape_facts_add(&self->facts, (const char *)payload, definition->payload_bytes);
    case MT_DEFINE_MODULE: return mt_modules_add(self->modules, payload, definition->payload_bytes);
    default:
        if (definition->id != table->count + 1)
            return MT_ERR_FORMAT;
        return set_entry(table, table->count, payload, definition->payload_bytes);
    }
}

enum mt_status mt_tape_symbols_read(struct mt_tape_symbols *self)
{
    const uint8_t *log = (const uint8_t *)self->tape + self->tape->definitions_offset;
    uint64_t end = atomic_load_explicit(&self->tape->definitions_bytes, memory_order_acquire);

    while (!self->damaged && self->read < end) {
        struct mt_definition definition;
        uint64_t next;
        enum mt_status status = MT_ERR_FORMAT;
        if (end - self->read >= sizeof definition) {
            memcpy(&definition, log + self->read, sizeof definition);
            next = mt_round_up((uint64_t)definition.payload_bytes + sizeof definition, 8);
            if (definition.kind && definition.kind < MT_DEFINE_KIND_COUNT &&
                definition.payload_bytes <= MAX_PAYLOAD_BYTES && next <= end - self->read)
                status = take(self, &definition, log + self->read + sizeof definition);
        }
        if (status == MT_ERR_MEMORY)
            return status;
        self->damaged = status != MT_OK;
        if (!self->damaged)
            self->read += next;
    }
    return MT_OK;
}

bool mt_tape_symbols_header_changed(const struct mt_tape_symbols *self)
{
    return self->facts.changed;
}

void mt_tape_symbols_header(struct mt_tape_symbols *self, struct mt_trace_header *header)
{
    tape_facts_header(&self->facts, header);
}

static struct entry *entry_of(struct table *table, size_t index)
{
    return index < table->count && table->entries[index].payload ? &table->entries[index] : NULL;
}

static struct entry *defined(struct mt_tape_symbols *self, enum mt_definition_kind kind,
                             uint32_t id)
{
    return id ? entry_of(&self->tables[kind], id - 1) : NULL;
}

/* Texts longer than a trace's strings are cut. */
static enum mt_status string_of(struct mt_tape_symbols *self, const void *text, size_t length,
                                uint32_t *string)
{
    return mt_symbols_string(self->symbols, text, mt_min_u64(length, UINT16_MAX), string);
}

enum mt_status mt_tape_symbols_name(struct mt_tape_symbols *self, uint32_t id, uint32_t *string)
{
    struct entry *entry = defined(self, MT_DEFINE_NAME, id);
    enum mt_status status = MT_OK;

    if (entry && entry->symbol == MT_NO_ID)
        status = string_of(self, entry->payload, entry->bytes, &entry->symbol);
    *string = entry ? entry->symbol : MT_NO_ID;
    return status;
}

/* A thread that an earlier part of the trace has keeps its id. */
static bool find_thread(const struct mt_symbols *symbols, uint64_t os_id, uint32_t *thread)
{
    for (*thread = 1; *thread < symbols->thread_count; ++*thread)
        if (symbols->threads[*thread].os_id == os_id)
            return true;
    return false;
}

/* Final name of the thread: the last name that was explicitly given to its OS id, or its name after
 * a rename that followed the definition. */
static const struct entry *name_of_thread(const struct mt_tape_symbols *self,
                                          const struct entry *defined)
{
    const struct entry *name = defined;
    bool given = false;

    for (size_t i = 0; i < self->late_names.count; i++) {
        const struct entry *late = &self->late_names.entries[i];
        uint64_t kind;
        if (memcmp(late->payload + 8, defined->payload + 8, 8))
            continue;
        memcpy(&kind, late->payload, sizeof kind);
        if (kind == MT_THREAD_GIVEN || (!given && late->payload > defined->payload))
            name = late;
        given |= kind == MT_THREAD_GIVEN;
    }
    return name;
}

enum mt_status mt_tape_symbols_thread(struct mt_tape_symbols *self, uint32_t number,
                                      uint16_t *thread)
{
    struct entry *entry = entry_of(&self->threads, number);
    uint32_t name = MT_NO_ID;
    enum mt_status status = MT_OK;
    uint64_t os_id;

    *thread = 0;
    if (!entry)
        return MT_OK;
    if (entry->symbol == MT_NO_ID) {
        memcpy(&os_id, entry->payload + 8, sizeof os_id);
        if (!find_thread(self->symbols, os_id, &entry->symbol)) {
            const struct entry *called = name_of_thread(self, entry);
            if (called->bytes > 16)
                status = string_of(self, called->payload + 16, called->bytes - 16, &name);
            if (status == MT_OK)
                status = mt_symbols_thread(self->symbols, name, os_id, &entry->symbol);
        }
    }
    if (status == MT_OK)
        *thread = (uint16_t)entry->symbol;
    return status;
}

enum mt_status mt_tape_symbols_pool(struct mt_tape_symbols *self, uint32_t id, uint16_t *pool)
{
    struct entry *entry = defined(self, MT_DEFINE_POOL, id);
    uint64_t numbers[2];
    enum mt_status status = MT_OK;

    *pool = 0;
    if (!entry || entry->bytes != sizeof numbers)
        return MT_OK;
    memcpy(numbers, entry->payload, sizeof numbers);
    if (entry->symbol == MT_NO_ID)
        status = mt_symbols_pool(self->symbols, numbers[0], numbers[1], &entry->symbol);
    if (status == MT_OK)
        *pool = (uint16_t)entry->symbol;
    return status;
}

/* In the order of enum mt_raw_heap. */
static const char *const heap_names[] = {
    [MT_RAW_DRIVER] = "driver",
    [MT_RAW_PYTORCH] = "pytorch",
    [MT_RAW_MANAGED] = "driver:managed",
    [MT_RAW_ARRAY] = "driver:array",
    [MT_RAW_ASYNC] = "driver:async",
    [MT_RAW_VIRTUAL] = "driver:virtual",
    [MT_RAW_GRAPH] = "driver:graph",
    [MT_RAW_HOST] = "driver:host",
    [MT_RAW_RESERVED] = "driver:reserved",
    [MT_RAW_MAPPED] = "driver:mapped",
    [MT_RAW_IMPORTED] = "driver:imported",
};

_Static_assert(MT_ARRAY_LEN(heap_names) == MT_RAW_HEAP_COUNT, "every heap has a name");

const char *mt_raw_heap_name(unsigned heap)
{
    return heap < MT_ARRAY_LEN(heap_names) ? heap_names[heap] : NULL;
}

enum mt_status mt_tape_symbols_heap(struct mt_tape_symbols *self, uint8_t raw_heap, uint16_t *heap)
{
    const char *name = mt_raw_heap_name(raw_heap);
    enum mt_status status = MT_OK;
    uint32_t string, id;

    *heap = 0;
    if (!name)
        return MT_OK;
    if (!self->heaps[raw_heap]) {
        status = mt_symbols_string(self->symbols, name, strlen(name), &string);
        if (status == MT_OK)
            status = mt_symbols_heap(self->symbols, string, &id);
        if (status == MT_OK)
            self->heaps[raw_heap] = id + 1;
    }
    if (status == MT_OK)
        *heap = (uint16_t)(self->heaps[raw_heap] - 1);
    return status;
}

/* Sets *frame to MT_NO_ID for code of the Python part of a dry run, which is between the program
 * and PyTorch. */
static enum mt_status frame_of_code(struct mt_tape_symbols *self, uint64_t word, uint32_t *frame)
{
    static const char own_folder[] = "/memtrace_dry_run/";
    struct entry *entry = defined(self, MT_DEFINE_CODE, (uint32_t)(word >> 32));
    struct mt_code_definition code = {0};
    uint32_t known = mt_map_get(&self->code_frames, word), function = MT_NO_ID, file = MT_NO_ID;

    if (known != MT_MAP_NONE) {
        *frame = known;
        return MT_OK;
    }
    if (entry && entry->bytes >= sizeof code)
        memcpy(&code, entry->payload, sizeof code);
    uint64_t bytes = (uint64_t)code.file_bytes + code.name_bytes + code.table_bytes;
    if (!entry || entry->bytes < sizeof code || bytes > entry->bytes - sizeof code)
        return mt_symbols_frame(self->symbols, MT_NO_ID, MT_NO_ID, 0, frame);
    const uint8_t *texts = entry->payload + sizeof code;
    *frame = MT_NO_ID;
    if (memmem(texts, code.file_bytes, own_folder, sizeof own_folder - 1))
        return MT_OK;
    enum mt_status status = string_of(self, texts, code.file_bytes, &file);
    if (status == MT_OK)
        status = string_of(self, texts + code.file_bytes, code.name_bytes, &function);
    if (status == MT_OK)
        status = mt_symbols_frame(
            self->symbols, function, file,
            mt_python_line(&code, texts + code.file_bytes + code.name_bytes, (uint32_t)word),
            frame);
    return status == MT_OK ? mt_map_set(&self->code_frames, word, *frame) : status;
}

static enum mt_status frame_of_address(struct mt_tape_symbols *self, uint64_t word, uint32_t *frame)
{
    struct mt_native_frame native;
    uint32_t function, file;

    mt_modules_frame(self->modules, word, &native);
    enum mt_status status = string_of(self, native.file, native.file_length, &file);
    if (status == MT_OK)
        status = string_of(self, native.function, native.function_length, &function);
    return status == MT_OK ? mt_symbols_frame(self->symbols, function, file, 0, frame) : status;
}

/* Puts the frames of a stack of the tape on top of *stack. */
static enum mt_status add_frames(struct mt_tape_symbols *self, enum mt_definition_kind kind,
                                 uint32_t id, uint32_t *stack)
{
    const struct entry *entry = defined(self, kind, id);
    size_t count = entry ? entry->bytes / sizeof(uint64_t) : 0, i = 0;
    enum mt_status status = MT_OK;

    if (count > MT_MAX_STACK_DEPTH) { /* no recorder of memtrace writes that */
        i = count - MT_MAX_STACK_DEPTH;
        self->symbols->frames_cut += i;
    }
    for (; i < count && status == MT_OK; i++) {
        uint64_t word;
        uint32_t frame;
        memcpy(&word, entry->payload + i * sizeof word, sizeof word);
        status = kind == MT_DEFINE_PYTHON_STACK ? frame_of_code(self, word, &frame)
                                                : frame_of_address(self, word, &frame);
        if (status == MT_OK && frame != MT_NO_ID)
            status = mt_symbols_stack(self->symbols, *stack, frame, stack);
    }
    return status;
}

enum mt_status mt_tape_symbols_stack(struct mt_tape_symbols *self, uint32_t python_id,
                                     uint32_t native_id, uint32_t *stack)
{
    uint64_t key = (uint64_t)python_id << 32 | native_id;

    *stack = MT_NO_ID;
    if (!key)
        return MT_OK;
    uint32_t known = mt_map_get(&self->stacks, key);
    if (known != MT_MAP_NONE) {
        *stack = known - 1;
        return MT_OK;
    }
    enum mt_status status = add_frames(self, MT_DEFINE_PYTHON_STACK, python_id, stack);
    if (status == MT_OK)
        status = add_frames(self, MT_DEFINE_NATIVE_STACK, native_id, stack);
    return status == MT_OK ? mt_map_set(&self->stacks, key, *stack + 1) : status;
}
