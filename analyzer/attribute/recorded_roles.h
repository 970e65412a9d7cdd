/* Roles as the trace has them: the name of an allocation is what its recorder says
 * the block is for. */
#ifndef MT_ANALYZER_RECORDED_ROLES_H
#define MT_ANALYZER_RECORDED_ROLES_H

#include "role.h"
#include "symbols.h"

/* Words of torch.profiler's categories, our own, and what people call the same ("weights"), in any
 * case, with '_', '-' or a space, singular or plural. A JSON object says it with "role". Of several
 * texts, joined by "; ", the last one that is a role holds. False for others, for texts beyond
 * 1,024 bytes and for MT_NO_ID: then the role is inferred. */
bool mt_recorded_role(const struct mt_symbols *symbols, uint32_t name, enum mt_role *role);

#endif
