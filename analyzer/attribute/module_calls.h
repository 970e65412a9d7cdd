/* Finds the function that one call of a model enters repeatedly, from the order of its allocations.
 * In
 *
 *     for layer in self.layers: x = layer(x)
 *
 * all allocations of all layers have the same stacks, but control returns to the first line of the
 * layer's function n times. That is a body: a function, called from one line. It is entered as
 * often as most of its lines are reached, and the first such line begins an entry. A loop over
 * several lines of one function also counts: its turns are the entries.
 *
 * Only the outermost repeated body is reported. A body with fewer than two repeated lines does not
 * count, because one line that allocates twice looks the same. */
#ifndef MT_ANALYZER_MODULE_CALLS_H
#define MT_ANALYZER_MODULE_CALLS_H

#include "python_tree.h"

/* Limits. Calls deeper below the model's call than MT_MODULE_CALL_DEPTH are not distinguished. A
 * sequence whose distinct stacks have more than MT_MODULE_CALL_CELLS frames in total is not
 * searched. */
#define MT_MODULE_CALL_DEPTH 128
#define MT_MODULE_CALL_CELLS (UINT64_C(1) << 22)

struct mt_module_call {
    uint32_t body;  /* node of the line that begins an entry; MT_NO_ID: in no repeated body */
    uint32_t entry; /* 0.. */
    uint32_t times; /* entries into the body in the whole sequence */
};

/* Allocations of one call of a model, in order: all below the node `root`, or at the node
 * itself. */
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
