#include "grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"

enum { FIRST_CAPACITY = 16 };

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
