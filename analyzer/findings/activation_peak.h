/* Findings about activations at the peak: those that wait for backward, those of the loss, and
 * matrices of attention. */
#ifndef MT_ANALYZER_ACTIVATION_PEAK_H
#define MT_ANALYZER_ACTIVATION_PEAK_H

#include "arena.h"
#include "site.h"

/* Advice on recomputing activations instead of keeping them, in terms of the library in use. */

/* Returns the code to write, in the arena: the library's own call if it has one
 * ("model.gradient_checkpointing_enable()"), otherwise torch.utils.checkpoint around the module of
 * the site. */
const char *mt_checkpoint_advice(struct mt_arena *arena, const struct mt_symbols *symbols,
                                 struct mt_site site);

#endif
