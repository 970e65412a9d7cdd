/* Roles of blocks that were alive when the trace began. Where such a block was
 * born is unknown, and mostly it has no stack either. What is known is what
 * follows: when blocks of its size are born and freed. That is weaker than a
 * birth that was seen, so the rules are tried in this order, each for what the
 * ones before leave open:
 *
 * 1. The block's own stack says it (roles.c); here such blocks are evidence.
 * 2. Blocks that end tell by where they end: where gradients are cleared,
 *    gradients; in the part that was running when the trace began, what that
 *    part makes, and in backward activations: what backward made before the trace began
 *    for itself looks the same. Elsewhere they are what blocks of that size, or else most
 *    bytes, that end there are and whose birth was seen: a batch ends where
 *    the next one is fetched, activations end in backward.
 *    Blocks that the optimizer frees while it leaves as many of that size behind
 *    are its state, which it makes again in each step.
 * 3. A gradient has the size of its parameter. Backward leaves n blocks of a
 *    size behind at once: n of the blocks of that size that stay are parameters.
 *    If stacks name the parameters, it is the other way round.
 * 4. Optimizers keep m blocks the size of each parameter, the same m for all:
 *    1 with momentum, 2 with Adam, 3 with AMSGrad. The largest m is taken for
 *    which nearly all are there, and only blocks beyond rule 3 count. The third
 *    may as well be a copy of the model (an average of its parameters, a
 *    teacher): both are made once and changed in place, so its role is not known. Of
 *    parameters that lie in one block (cuDNN's flat weights) the state comes in
 *    pieces: m of each, which together have the bytes that are missing.
 *    If there are none, blocks of twice the size: the state, and the copy of
 *    the parameters, of a model that computes in half of the precision.
 * 5. Blocks of other sizes that have the bytes of all gradients together, in
 *    fewer blocks: DDP's buckets, which are gradients.
 * 6. Gradients that are cleared in place are born once, so no birth shows n.
 *    Then each parameter has as many blocks of its size as all others have:
 *    itself, its gradient, its state. Embeddings are there once, so that the
 *    largest divisor of 2 to 4 that nearly all counts have is that number. What backward
 *    makes and frees again, once for each parameter, tells more surely, where it makes no
 *    more of a size than there are; only parts of backward that were seen from their begin
 *    count. The rule does not apply if most gradients are freed where gradients are cleared.
 *    It applies if the trace begins within backward and no later turn leaves gradients
 *    behind: then the first part left some of them, and later turns add to them.
 *    Where no part of backward was seen from its begin, the optimizer says which sizes are
 *    those of parameters: it makes and frees blocks of their size, if it does so for most of
 *    what stays. It does so for the pieces of a flat parameter as well. The pieces of which
 *    only the state is there have, together, the bytes of the flat blocks: half of these
 *    are parameters, half gradients.
 * 7. The sizes of cuBLAS's workspaces, if the model's calls made few of that size; 1 MiB is
 *    one of them if a stack shows the call.
 * 8. A size of which the model's calls leave one block more behind in each
 *    turn: older ones of that, so activations. So are sizes that the call in which the trace
 *    begins keeps, if that call is all there is: it failed, and what it made before stays. A
 *    range whose begin is in the trace shows the whole call.
 * 9. What stays while the model works is its parameters: frozen ones,
 *    buffers, and all of them if nothing goes backward.
 *
 * Without any part of what a model does nothing is inferred: the role stays "other".
 */
#ifndef MT_ANALYZER_INITIAL_ROLES_H
#define MT_ANALYZER_INITIAL_ROLES_H

#include "early_blocks.h"

/* What the stack of an initial block says: MT_ROLE_OTHER = nothing. */
enum mt_role mt_initial_role_by_stack(enum mt_phase_kind kind, bool kept);

/* After the last event: sets the roles of initial blocks that are not known. */
enum mt_status mt_initial_roles_infer(struct mt_early_blocks *initial) MT_MUST_USE;

#endif
