/* Stacks of a recorded trace -> stacks with names, and only what the program
 * did: see finalize.h for the rules. Each distinct stack and frame once. */
#ifndef MT_COLLECTOR_FINALIZE_STACKS_H
#define MT_COLLECTOR_FINALIZE_STACKS_H

#include "native_names.h"
#include "symbols.h"

struct mt_stack_finalizer;

/* All borrowed; `from` grows, `to` gets what is needed. */
struct mt_stack_finalizer *mt_stack_finalizer_new(const struct mt_symbols *from,
                                                  struct mt_symbols *to,
                                                  struct mt_native_names *names);
void mt_stack_finalizer_free(struct mt_stack_finalizer *finalizer);

/* The stack of `to` for one of `from`; MT_NO_ID for MT_NO_ID, and for stacks of
 * which nothing is left. MT_ERR_UNSUPPORTED: deeper than any recorded stack. */
enum mt_status mt_stack_finalizer_get(struct mt_stack_finalizer *finalizer, uint32_t stack,
                                      uint32_t *result) MT_MUST_USE;

/* Distinct native frames seen, and those that got a name. */
void mt_stack_finalizer_count(const struct mt_stack_finalizer *finalizer, uint32_t *native,
                              uint32_t *named);

/* A frame as modules.h writes them? Its texts. */
bool mt_frame_is_native_address(const struct mt_symbols *symbols, uint32_t frame,
                                struct mt_native_frame *native);

#endif
