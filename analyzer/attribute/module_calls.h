/* Which function one call of a model enters again and again, told from the order of
 * its allocations. In
 *
 *     for layer in self.layers: x = layer(x)
 *
 * all allocations of all layers have the same stacks; but control comes back to the
 * first line of the layer's function n times. That is a body: a function, called from
 * one line. It is entered as often as most of its lines are reached, and the first
 * such line begins an entry. A loop over several lines of one function counts as well:
 * its turns are the entries.
 *
 * Only the outermost repeated body is told. A body in which fewer than two lines come
 * again is none: one line that allocates twice looks the same. */
#ifndef MT_ANALYZER_MODULE_CALLS_H
#define MT_ANALYZER_MODULE_CALLS_H

#include "python_tree.h"

/* Calls that are deeper below the model's are not told apart; nor are those of a
 * sequence with more (frames of distinct stacks) in all. */
#define MT_MODULE_CALL_DEPTH 128
#define MT_MODULE_CALL_CELLS (UINT64_C(1) << 22)

struct mt_module_call {
    uint32_t body;  /* node of the line that begins an entry; MT_NO_ID: in no repeated body */
    uint32_t entry; /* 0.. */
    uint32_t times; /* entries into the body in the whole sequence */
};

/* What one call of a model allocated, in order: all below the node `root`, or that itself. */
struct mt_module_sequence {
    uint32_t root;
    const uint32_t *nodes;
    size_t count;
    bool is_cut; /* the call did not end: its last entry may lack lines */
};

/* Fills calls[i] for each allocation. O(count * depth * log count). */
enum mt_status mt_module_calls_find(const struct mt_python_tree *tree,
                                    const struct mt_symbols *symbols,
                                    const struct mt_module_sequence *sequence,
                                    struct mt_module_call *calls) MT_MUST_USE;

#endif
