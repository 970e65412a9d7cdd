/* Recorded roles: the name of an allocation gives the purpose of the block. */
#ifndef MT_ANALYZER_RECORDED_ROLES_H
#define MT_ANALYZER_RECORDED_ROLES_H

#include "holding.h"
#include "symbols.h"

/* Accepts the names of torch.profiler's categories, our own, and common synonyms ("weights"), in
 * any case, with '_', '-' or a space, singular or plural. A JSON object has it under "role". For
 * several texts, joined by "; ", the last one that is a role counts. Returns false for others, for
 * texts longer than 1,024 bytes and for MT_NO_ID: then the role is inferred. */
bool mt_recorded_role(const struct mt_symbols *symbols, uint32_t name, enum mt_role *role);

#endif
