/* Memory budget of this process, and what happens if memory runs out. Any thread may call these
 * functions.
 *
 * Budget: the program `memtrace` counts every block that its own code allocates (memory_wrap.c). A
 * block that would exceed the budget is refused as if the host had no memory. The library in traced
 * processes has its own bounds and counts nothing.
 *
 * Out of memory ends the program: analyzer, fleet, render and cli have no error paths for it. Their
 * allocations (mt_memory_new and so on, arenas, buffers, maps, mt_grow_to) do not return NULL. The
 * program registers last words, which print a line and remove unfinished files.
 *
 * The collector must not end other people's processes, so functions of this folder also return
 * MT_ERR_MEMORY or NULL. The library in traced processes has its own mt_memory_failed, and does not
 * contain mt_memory_end. While the program waits for a command, failures are returned as well
 * (mt_memory_return_failures). */
#ifndef MT_BASE_PROCESS_MEMORY_H
#define MT_BASE_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets the budget. 0 = no budget, the initial state. Forgets earlier refusals. */
void mt_memory_budget_set(uint64_t bytes);
uint64_t mt_memory_budget(void);

/* Returns whether `size_bytes` more stay within the budget, and records a refusal. */
bool mt_memory_allows(uint64_t size_bytes);

/* Count allocated and freed bytes. */
void mt_memory_taken(uint64_t size_bytes);
void mt_memory_given_back(uint64_t size_bytes);
uint64_t mt_memory_in_use(void);

/* Returns the first refused total: the bytes that the program would have had in use. 0 = nothing
 * was refused. */
uint64_t mt_memory_refused(void);

/* Ends the process because of a lack of memory: calls the last words, then aborts if they return or
 * if there are none. */
_Noreturn void mt_memory_end(void);

/* Like mt_memory_end, but returns if failures are returned. Call it before an error path. */
void mt_memory_failed(void);

typedef void (*mt_memory_words)(void);
void mt_memory_last_words_set(mt_memory_words words);

/* Sets whether mt_memory_failed returns. Initially false. */
void mt_memory_return_failures(bool returns);

/* Returns whether mt_memory_failed was called, and returned. */
bool mt_memory_has_failed(void);

/* Takes the last words and the rule about failures from another copy of this module, for code in a
 * shared library that the program loads (module.h). */
struct mt_memory_rules {
    mt_memory_words words;
    bool returns_failures;
};
struct mt_memory_rules mt_memory_rules(void);
void mt_memory_rules_set(struct mt_memory_rules rules);

/* malloc, calloc, realloc and strdup, which end the process instead of returning NULL. */
void *mt_memory_new(size_t size_bytes) __attribute__((malloc, returns_nonnull));
void *mt_memory_zeroed(size_t count, size_t size_bytes) __attribute__((malloc, returns_nonnull));
void *mt_memory_resize(void *memory, size_t size_bytes) __attribute__((returns_nonnull));
char *mt_memory_text(const char *text) __attribute__((malloc, returns_nonnull));

#endif
