#include "grow.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process_memory.h"

enum { FIRST_CAPACITY = 16, PAGE_BYTES = 4096, LARGE_BYTES = 4 << 20 };

/* speed only: requests pages of 2 MiB for a large array, since each page that is used for the first
 * time costs a call of the kernel. All pages of the memory from malloc, including its header, must
 * be alike, or realloc copies them. */
static void request_large_pages(void *memory, size_t bytes)
{
    size_t before = (uintptr_t)memory % PAGE_BYTES;
    int saved = errno;

    if (bytes >= LARGE_BYTES)
        (void)madvise((char *)memory - before, before + bytes, MADV_HUGEPAGE);
    errno = saved; /* a kernel may have none */
}

enum mt_status mt_grow(void *array, size_t *capacity, size_t count, size_t entry_bytes)
{
    size_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
    void *memory;

    if (count <= *capacity)
        return MT_OK;
    while (wanted < count) {
        if (wanted > SIZE_MAX / 2)
            return mt_memory_failed(), MT_ERR_MEMORY;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / 2 / entry_bytes)
        return mt_memory_failed(), MT_ERR_MEMORY;
    /* copies the pointer, since its object type is unknown */
    memcpy(&memory, array, sizeof memory);
    memory = realloc(memory, wanted * entry_bytes);
    if (!memory)
        return mt_memory_failed(), MT_ERR_MEMORY;
    request_large_pages(memory, wanted * entry_bytes);
    memcpy(array, &memory, sizeof memory);
    *capacity = wanted;
    return MT_OK;
}

enum mt_status mt_grow_zeroed(void *array, size_t *capacity, size_t count, size_t entry_bytes)
{
    size_t old = *capacity;
    enum mt_status status = mt_grow(array, capacity, count, entry_bytes);
    char *memory;

    if (status == MT_OK && *capacity > old) {
        memcpy(&memory, array, sizeof memory);
        memset(memory + old * entry_bytes, 0, (*capacity - old) * entry_bytes);
    }
    return status;
}
