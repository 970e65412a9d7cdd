/* Modules that a program names itself: record_function and NVTX ranges inside one call of a
 * model. */
#ifndef MT_ANALYZER_MODULE_RANGES_H
#define MT_ANALYZER_MODULE_RANGES_H

#include "forward_logs.h"
#include "phases.h"

struct mt_module_range {
    const char *path; /* "encoder/layer"; "": the program named none */
    uint32_t layer;   /* number in the name: 3 of "layer_3" and of "h.3.attn"; MT_NO_ID */
};

/* The module of an allocation in `phase` during the call of `log`: the program's ranges around it,
 * outermost first, without those that last longer than the call. A layer ends the path and includes
 * everything inside. */
struct mt_module_range mt_module_range_of(struct mt_arena *arena, const struct mt_phases *phases,
                                          const struct mt_forward_log *log, int32_t phase);

/* Returns the start of the number of a layer in a name: after "layer_", "model.layers.", "block ["
 * or "h."; "conv1" has none. NULL: none. *layer: the number, *length: length of the text before it,
 * without separators. */
const char *mt_layer_number(const char *name, uint32_t *layer, size_t *length);

#endif
