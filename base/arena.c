#include "arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct mt_arena_chunk {
    struct mt_arena_chunk *next;
    size_t padding; /* keeps the payload 16-byte aligned */
};

static int add_chunk(struct mt_arena *arena, size_t payload)
{
    struct mt_arena_chunk *chunk;

    if (payload > SIZE_MAX - sizeof *chunk)
        return mt_memory_failed(), -1;
    /* the pages of a large calloc cost nothing until they are touched */
    chunk = calloc(1, sizeof *chunk + payload);
    if (!chunk)
        return mt_memory_failed(), -1;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used = 0;
    arena->capacity = payload;
    arena->total_bytes += sizeof *chunk + payload;
    return 0;
}

void *mt_arena_alloc(struct mt_arena *arena, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX - ALIGNMENT)
        return mt_memory_failed(), NULL;
    size_t size = size_bytes ? (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    if (!arena->chunks || size > arena->capacity - arena->used) {
        if (add_chunk(arena, size > CHUNK_BYTES ? size : CHUNK_BYTES) < 0)
            return NULL;
    }
    void *memory = (char *)(arena->chunks + 1) + arena->used;
    arena->used += size;
    return memory;
}

void *mt_arena_array(struct mt_arena *arena, size_t count, size_t size_bytes)
{
    if (size_bytes && count > SIZE_MAX / size_bytes)
        return mt_memory_failed(), NULL;
    return mt_arena_alloc(arena, count * size_bytes);
}

char *mt_arena_text(struct mt_arena *arena, const char *text, size_t length)
{
    char *copy = mt_arena_alloc(arena, length < SIZE_MAX ? length + 1 : length);

    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *mt_arena_printf(struct mt_arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) /* 2 GiB or more */
        return mt_memory_failed(), NULL;
    char *text = mt_arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void mt_arena_join(struct mt_arena *arena, struct mt_arena *other)
{
    struct mt_arena_chunk **last = &other->chunks;

    while (*last)
        last = &(*last)->next;
    if (!arena->chunks) {
        arena->chunks = other->chunks;
        arena->used = other->used;
        arena->capacity = other->capacity;
    } else { /* insert after the newest chunk, which is still being filled */
        *last = arena->chunks->next;
        arena->chunks->next = other->chunks;
    }
    arena->total_bytes += other->total_bytes;
    memset(other, 0, sizeof *other);
}

void mt_arena_release(struct mt_arena *arena)
{
    struct mt_arena_chunk *chunk = arena->chunks;

    while (chunk) {
        struct mt_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    memset(arena, 0, sizeof *arena);
}
