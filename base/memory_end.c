/* The end of a process without memory. Not a part of the library in traced processes, which has its
 * own mt_memory_failed. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"

static _Atomic(mt_memory_words) last_words;
static atomic_bool returns_failures, has_failed;

void mt_memory_end(void)
{
    mt_memory_words words = atomic_load(&last_words);

    if (words)
        words();
    abort();
}

void mt_memory_failed(void)
{
    if (!atomic_load(&returns_failures))
        mt_memory_end();
    atomic_store(&has_failed, true);
}

void mt_memory_last_words_set(mt_memory_words words)
{
    atomic_store(&last_words, words);
}

void mt_memory_return_failures(bool returns)
{
    atomic_store(&returns_failures, returns);
}

bool mt_memory_has_failed(void)
{
    return atomic_load(&has_failed);
}

struct mt_memory_rules mt_memory_rules(void)
{
    return (struct mt_memory_rules){atomic_load(&last_words), atomic_load(&returns_failures)};
}

void mt_memory_rules_set(struct mt_memory_rules rules)
{
    mt_memory_last_words_set(rules.words);
    mt_memory_return_failures(rules.returns_failures);
}

static void *or_end(void *memory)
{
    if (!memory)
        mt_memory_end();
    return memory;
}

void *mt_memory_new(size_t size_bytes)
{
    return or_end(malloc(size_bytes ? size_bytes : 1));
}

void *mt_memory_zeroed(size_t count, size_t size_bytes)
{
    return or_end(calloc(count ? count : 1, size_bytes));
}

void *mt_memory_resize(void *memory, size_t size_bytes)
{
    return or_end(realloc(memory, size_bytes ? size_bytes : 1));
}

char *mt_memory_text(const char *text)
{
    return or_end(strdup(text));
}
