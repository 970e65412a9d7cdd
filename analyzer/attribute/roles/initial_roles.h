/* Roles of blocks that were alive when the trace began. The allocation of such a block is unknown,
 * and usually it has no stack. The only evidence is later: when blocks of its size are allocated
 * and freed. This evidence is weaker than an allocation in the trace. The rules are tried in this
 * order, each for the blocks that earlier rules leave open:
 *
 * 1. The block's own stack identifies it (roles.c). Such blocks are evidence for the other rules.
 * 2. The place of a block's end. Blocks freed where gradients are cleared are gradients. Blocks
 *    that the optimizer frees while it leaves as many of that size behind are its state, which it
 *    makes again in each step. Blocks freed in the part that was running when the trace began are
 *    activations if that part is backward, otherwise temporaries. (Temporaries that backward made
 *    before the trace look like activations.) Any other block gets the role of most bytes that have
 *    the same end and whose allocation is in the trace: among blocks of its size, or otherwise
 *    among all. A batch ends where the next one is fetched, and activations end in backward.
 * 3. A gradient has the size of its parameter. Backward leaves n blocks of a size behind at one
 *    time: n of the blocks of that size that stay are parameters. If stacks name the parameters,
 *    the rule is reversed.
 * 4. Optimizers keep m blocks of the size of each parameter, the same m for all: 1 with momentum,
 *    2 with Adam, 3 with AMSGrad. The rule takes the largest m for which nearly all of these blocks
 * exist, and counts only blocks beyond those of rule 3. The third block may also be a copy of the
 * model (an average of its parameters, a teacher). State and copies are both made once and changed
 * in place, so the role of the third block is unknown. The state of parameters that share one block
 * (cuDNN's flat weights) is in pieces: m of each, which together have the missing bytes. If there
 * are no such blocks, blocks of twice the size are the state and the copy of the parameters in a
 * model that computes in half precision.
 * 5. Blocks of other sizes with the total bytes of all gradients, in fewer blocks, are DDP's
 *    buckets, which are gradients.
 * 6. Gradients that are cleared in place are allocated once, so no allocation shows n. Then every
 * parameter has the same number of blocks of its size: the parameter, its gradient, its state.
 * Embeddings exist once, so this number is the largest of 2 to 4 that divides nearly all counts of
 * blocks of a size. Blocks that backward makes and frees again, once for each parameter, are better
 * evidence, if it makes no more blocks of a size than exist. Only parts of backward whose start is
 * in the trace count. The rule does not apply if most gradients are freed where gradients are
 *    cleared. It applies if the trace begins in backward and no later turn leaves gradients behind:
 *    then the first part left some of them, and later turns add to them. Without any part of
 *    backward whose start is in the trace, the optimizer identifies the sizes of parameters: it
 *    makes and frees blocks of their size, if it does so for most of the blocks that stay. It also
 * does so for the pieces of a flat parameter. Blocks of the size of such a piece are only state,
 * and together they have the bytes of the flat blocks. Half of the flat blocks are then parameters,
 * and half are gradients.
 * 7. Blocks with the sizes of cuBLAS's workspaces are workspaces if the model's calls made few of
 *    that size; 1 MiB counts if a stack shows the call.
 * 8. If the model's calls leave one more block of a size behind in each turn, older blocks of that
 *    size are the same, so activations. Sizes that the call in which the trace begins keeps are
 * also activations if the trace has only this call: it failed, and its earlier blocks stay. A range
 * whose start is in the trace shows the whole call.
 * 9. Blocks that stay while the model works are its parameters: frozen ones, buffers, and all of
 *    them if nothing goes backward.
 *
 * If the trace has no part of a model's work, nothing is inferred: the role stays "other". */
#ifndef MT_ANALYZER_INITIAL_ROLES_H
#define MT_ANALYZER_INITIAL_ROLES_H

#include "early_blocks.h"

/* Returns the role of an initial block according to its stack; MT_ROLE_OTHER = unknown. */
enum mt_role mt_initial_role_by_stack(enum mt_phase_kind kind, bool kept);

/* Call it after the last event. Sets the roles of initial blocks that are still unknown. */
void mt_initial_roles_infer(struct mt_early_blocks *initial);

#endif
