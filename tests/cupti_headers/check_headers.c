/* Compiled, never run: our declarations beside the vendor's (fields.def), and the
 * numbers of the table by their names. */
#include <cupti.h>

#include "cupti_abi.h"

#define MEMBER(type, field) (((type *)0)->field)

#define STRUCT(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs);
#define FIELD(ours, our_field, theirs, their_field)                                                \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field),                     \
                   #theirs "." #their_field);                                                      \
    _Static_assert(sizeof MEMBER(ours, our_field) == sizeof MEMBER(theirs, their_field),           \
                   "size of " #theirs "." #their_field);
#define SAME(ours, theirs, field) FIELD(ours, field, theirs, field)
#define NUMBER(ours, theirs)      _Static_assert((int)(ours) == (int)(theirs), #theirs);
#include "fields.def"

/* Written by the script: CALL(number, name) for what these headers know. */
#define CALL(number, name)                                                                         \
    _Static_assert((number) == CUPTI_DRIVER_TRACE_CBID_##name, "number of " #name);
#include "calls.def"
