/* The definitions of a tape, as symbols of a trace: made when an event first
 * refers to them. */
#ifndef MT_COLLECTOR_TAPE_SYMBOLS_H
#define MT_COLLECTOR_TAPE_SYMBOLS_H

#include "source.h"
#include "tape.h"

struct mt_tape_symbols;

/* Both are borrowed; `symbols` may contain definitions of an earlier part of the trace. NULL: out
 * of memory. */
struct mt_tape_symbols *mt_tape_symbols_new(struct mt_tape *tape, struct mt_symbols *symbols);
void mt_tape_symbols_free(struct mt_tape_symbols *self); /* NULL is fine */

/* Reads new definitions. A damaged definition ends the reading permanently; references to later
 * ones become none. */
enum mt_status mt_tape_symbols_read(struct mt_tape_symbols *self) MT_MUST_USE;

/* Returns true if facts for the header changed since the last call of mt_tape_symbols_header. */
bool mt_tape_symbols_header_changed(const struct mt_tape_symbols *self);

/* Fills in the recorded facts and leaves the others. Strings live as long as `self`. */
void mt_tape_symbols_header(struct mt_tape_symbols *self, struct mt_trace_header *header);

/* Maps the tape's ids to symbols. Undefined ids become MT_NO_ID (a name, a stack) or 0 (a thread,
 * a pool). */
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

/* The name of an allocator in a trace's table of heaps: "driver", "pytorch", "driver:managed",
 * ... by enum mt_raw_heap; NULL for other numbers. */
const char *mt_raw_heap_name(unsigned heap);

#endif
