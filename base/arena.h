/* Bump allocator: many small objects that live and die together. If the host has no memory, the
 * process ends, and no result is NULL. In traced processes, results are NULL (process_memory.h). */
#ifndef MT_BASE_ARENA_H
#define MT_BASE_ARENA_H

#include <stddef.h>

struct mt_arena_chunk;

/* Zeroed memory is an empty arena. */
struct mt_arena {
    struct mt_arena_chunk *chunks; /* newest first */
    size_t used, capacity;         /* of the newest chunk */
    size_t total_bytes;            /* taken from the host so far */
};

/* Returns zeroed, 16-byte aligned memory that lives until mt_arena_release. Amortized O(1). */
void *mt_arena_alloc(struct mt_arena *arena, size_t size_bytes);

/* The same for an array of `count` items. A product that overflows counts as a lack of memory. */
void *mt_arena_array(struct mt_arena *arena, size_t count, size_t size_bytes);

/* Returns a NUL-terminated copy of `length` bytes. */
char *mt_arena_text(struct mt_arena *arena, const char *text, size_t length);

/* Returns a text formatted as by printf. */
char *mt_arena_printf(struct mt_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Moves all memory of `other` to `arena`, which now owns it. `other` is empty afterwards.
 * Existing pointers stay valid. O(chunks of other). */
void mt_arena_join(struct mt_arena *arena, struct mt_arena *other);

/* Frees everything; the arena is empty and usable again. */
void mt_arena_release(struct mt_arena *arena);

#endif
