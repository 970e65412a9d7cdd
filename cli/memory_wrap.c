/* In the program `memtrace`, the linker redirects every malloc, calloc, realloc and free of the
 * program's own code to these functions (--wrap, see CMakeLists.txt). They limit all memory whose
 * size depends on a file, in every layer, and end the program if there is no memory. They do not
 * count memory of system libraries, because other checks limit its size (zstd windows, pictures).
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>

#include "process_memory.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static void *refused(void)
{
    mt_memory_failed();
    errno = ENOMEM;
    return NULL;
}

static void *counted(void *memory)
{
    if (!memory)
        return refused();
    mt_memory_taken(malloc_usable_size(memory));
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return mt_memory_allows(size) ? counted(__real_malloc(size)) : refused();
}

void *__wrap_calloc(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return refused();
    return mt_memory_allows(count * size) ? counted(__real_calloc(count, size)) : refused();
}

/* The old and the new block may exist at the same time, so both must fit. */
void *__wrap_realloc(void *memory, size_t size)
{
    size_t before = memory ? malloc_usable_size(memory) : 0;

    if (size > before && !mt_memory_allows(size))
        return refused();
    void *moved = __real_realloc(memory, size);
    if (moved || !size)
        mt_memory_given_back(before);
    return moved || size ? counted(moved) : NULL;
}

void __wrap_free(void *memory)
{
    if (memory)
        mt_memory_given_back(malloc_usable_size(memory));
    __real_free(memory);
}
