/* Converts stacks of a recorded trace to stacks with names and without frames of the recorder
 * (rules: finalize.h). Each distinct stack and frame is converted once. */
#ifndef MT_COLLECTOR_FINALIZE_STACKS_H
#define MT_COLLECTOR_FINALIZE_STACKS_H

#include "native_names.h"
#include "symbols.h"

struct mt_stack_finalizer;

/* All arguments are borrowed; `from` grows, and `to` gets the symbols that are needed. */
struct mt_stack_finalizer *mt_stack_finalizer_new(const struct mt_symbols *from,
                                                  struct mt_symbols *to,
                                                  struct mt_native_names *names);
void mt_stack_finalizer_free(struct mt_stack_finalizer *finalizer);

/* Returns the stack of `to` for one of `from`. Returns MT_NO_ID for MT_NO_ID, and for stacks
 * without remaining frames. MT_ERR_UNSUPPORTED: deeper than any recorded stack. */
enum mt_status mt_stack_finalizer_get(struct mt_stack_finalizer *finalizer, uint32_t stack,
                                      uint32_t *result) MT_MUST_USE;

/* Sets *native to the number of distinct native frames, and *named to how many of them got a
 * name. */
void mt_stack_finalizer_count(const struct mt_stack_finalizer *finalizer, uint32_t *native,
                              uint32_t *named);

/* Sets *native to the texts of a frame. Returns true if they have the form of a native frame
 * (modules.h). */
bool mt_frame_is_native_address(const struct mt_symbols *symbols, uint32_t frame,
                                struct mt_native_frame *native);

#endif
