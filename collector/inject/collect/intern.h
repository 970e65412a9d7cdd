/* Definitions of the traced process, which events refer to by id. Equal payloads of one kind get
 * one id. */
#ifndef MT_INJECT_INTERN_H
#define MT_INJECT_INTERN_H

#include <stddef.h>

#include "tape.h"

/* Returns the id of a payload (at least 1), and defines it in the tape at its first use. Returns 0
 * and counts a dropped definition if the tape is full. Fast if the calling thread has used the
 * payload before: a hash and one probe. Otherwise a lock-free lookup in the global table; only new
 * payloads take a lock. Call it between mt_collect_enter and leave. */
uint32_t mt_intern(enum mt_definition_kind kind, const void *payload, size_t payload_bytes);

/* Like mt_intern, for a stack of u64 words, outermost first. Keeps the innermost
 * MT_MAX_STACK_FRAMES. */
#define MT_MAX_STACK_FRAMES 512u
uint32_t mt_intern_stack(enum mt_definition_kind kind, const uint64_t *words, size_t count);

/* Adds a definition without searching for an equal one. Returns its id, or 0 if the tape is
 * full. */
uint32_t mt_define(enum mt_definition_kind kind, const void *payload, size_t payload_bytes);

#endif
