/* See tape_facts.h. */
#include "tape_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "util.h"

struct mt_tape_fact {
    char *key, *value;
};

static struct mt_tape_fact *find(const struct mt_tape_facts *facts, const char *key, size_t length)
{
    size_t i;

    for (i = 0; i < facts->count; i++) {
        if (strlen(facts->facts[i].key) == length && !memcmp(facts->facts[i].key, key, length))
            return &facts->facts[i];
    }
    return NULL;
}

static struct mt_tape_fact *make(struct mt_tape_facts *facts, const char *key, size_t length)
{
    struct mt_tape_fact *fact;

    if (facts->count == facts->capacity &&
        mt_grow(&facts->facts, &facts->capacity, facts->count + 1, sizeof *facts->facts))
        return NULL;
    fact = &facts->facts[facts->count];
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
static enum mt_status join(struct mt_tape_fact *fact, char *item, char separator, bool *changed)
{
    size_t old = strlen(fact->value), length = strlen(item);
    char *joined;

    if (has_item(fact->value, item, separator)) {
        free(item);
        return MT_OK;
    }
    joined = realloc(fact->value, old + length + 2);
    if (joined) {
        joined[old] = separator;
        memcpy(joined + old + 1, item, length + 1);
        fact->value = joined;
        *changed = true;
    }
    free(item);
    return joined ? MT_OK : MT_ERR_MEMORY;
}

enum mt_status mt_tape_facts_add(struct mt_tape_facts *facts, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t key_length = equals ? (size_t)(equals - text) : 0;
    struct mt_tape_fact *fact;
    char *value;

    if (!key_length)
        return MT_ERR_FORMAT;
    fact = find(facts, text, key_length);
    if (!fact)
        fact = make(facts, text, key_length);
    value = strndup(equals + 1, length - key_length - 1);
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

static const char *text_of(const struct mt_tape_facts *facts, const char *key, const char *usual)
{
    const struct mt_tape_fact *fact = find(facts, key, strlen(key));

    return fact && fact->value ? fact->value : usual;
}

static bool flag_of(const struct mt_tape_facts *facts, const char *key, bool usual)
{
    const struct mt_tape_fact *fact = find(facts, key, strlen(key));

    return fact && fact->value ? !strcmp(fact->value, "1") : usual;
}

static uint64_t number_of(const struct mt_tape_facts *facts, const char *key, uint64_t usual)
{
    const struct mt_tape_fact *fact = find(facts, key, strlen(key));
    char *end;
    unsigned long long number;

    if (!fact || !fact->value || fact->value[0] < '0' || fact->value[0] > '9')
        return usual;
    number = strtoull(fact->value, &end, 10);
    return *end ? usual : number;
}

static int32_t small_of(const struct mt_tape_facts *facts, const char *key, int32_t usual)
{
    uint64_t number = number_of(facts, key, UINT64_MAX);

    return number <= INT32_MAX ? (int32_t)number : usual;
}

static void set_devices(const struct mt_tape_facts *facts, struct mt_trace_header *header)
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

static void set_identity(const struct mt_tape_facts *facts, struct mt_trace_header *header)
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

void mt_tape_facts_header(struct mt_tape_facts *facts, struct mt_trace_header *header)
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

void mt_tape_facts_release(struct mt_tape_facts *facts)
{
    size_t i;

    for (i = 0; i < facts->count; i++) {
        free(facts->facts[i].key);
        free(facts->facts[i].value);
    }
    free(facts->facts);
    *facts = (struct mt_tape_facts){0};
}
