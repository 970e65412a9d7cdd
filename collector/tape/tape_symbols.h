/* Converts the definitions of a tape to symbols of a trace. A symbol is created when an event first
 * refers to its definition. */
#ifndef MT_COLLECTOR_TAPE_SYMBOLS_H
#define MT_COLLECTOR_TAPE_SYMBOLS_H

#include "source.h"
#include "tape.h"

struct mt_tape_symbols;

/* Both are borrowed; `symbols` may contain definitions of an earlier part of the trace. NULL: out
 * of memory. */
struct mt_tape_symbols *mt_tape_symbols_new(struct mt_tape *tape, struct mt_symbols *symbols);
void mt_tape_symbols_free(struct mt_tape_symbols *self); /* NULL is fine */

/* Reads new definitions. After a damaged definition, no more definitions are read, and references
 * to them resolve to nothing. */
enum mt_status mt_tape_symbols_read(struct mt_tape_symbols *self) MT_MUST_USE;

/* Returns true if facts for the header changed since the last call of mt_tape_symbols_header. */
bool mt_tape_symbols_header_changed(const struct mt_tape_symbols *self);

/* Sets the header facts that the tape has, and leaves other facts unchanged. Strings live as long
 * as `self`. */
void mt_tape_symbols_header(struct mt_tape_symbols *self, struct mt_trace_header *header);

/* Map ids of the tape to symbols. Undefined ids become MT_NO_ID (names and stacks) or 0 (threads
 * and pools). */
enum mt_status mt_tape_symbols_name(struct mt_tape_symbols *self, uint32_t id,
                                    uint32_t *string) MT_MUST_USE;
enum mt_status mt_tape_symbols_stack(struct mt_tape_symbols *self, uint32_t python_id,
                                     uint32_t native_id, uint32_t *stack) MT_MUST_USE;
enum mt_status mt_tape_symbols_thread(struct mt_tape_symbols *self, uint32_t number,
                                      uint16_t *thread) MT_MUST_USE;
enum mt_status mt_tape_symbols_pool(struct mt_tape_symbols *self, uint32_t id,
                                    uint16_t *pool) MT_MUST_USE;
enum mt_status mt_tape_symbols_heap(struct mt_tape_symbols *self, uint8_t raw_heap,
                                    uint16_t *heap) MT_MUST_USE;

/* Returns the name of an allocator (enum mt_raw_heap) in a trace's table of heaps: "driver",
 * "pytorch", "driver:managed", ...; NULL for other numbers. */
const char *mt_raw_heap_name(unsigned heap);

#endif
