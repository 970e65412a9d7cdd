#include "failing_alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "process_memory.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);

static atomic_bool armed, all_from_there;
static atomic_size_t number, fails_at;

void fail_allocation(size_t n, bool from_there_on)
{
    mt_memory_return_failures(true);
    number = 0;
    fails_at = n;
    all_from_there = from_there_on;
    armed = true;
}

size_t stop_failing(void)
{
    armed = false;
    mt_memory_return_failures(false);
    return number;
}

static bool fails(void)
{
    if (!armed)
        return false;
    size_t at = atomic_fetch_add(&number, 1) + 1;
    if (!fails_at || (all_from_there ? at < fails_at : at != fails_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strndup(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = __wrap_malloc(length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}
