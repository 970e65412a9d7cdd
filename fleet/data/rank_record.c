#include "rank_record.h"

#include "check.h"
#include "util.h"

const char *mt_outcome_name(enum mt_outcome outcome)
{
    static const char *const names[] = {"unknown", "finished", "oom", "failed", "killed", "cut"};

    _Static_assert(MT_ARRAY_LEN(names) == MT_OUTCOME_COUNT, "each outcome has a name");
    MT_ASSERT((unsigned)outcome < MT_OUTCOME_COUNT);
    return names[outcome];
}

int mt_record_leaf_compare(const void *a, const void *b)
{
    const struct mt_record_leaf *x = a, *y = b;

    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    return (x->path > y->path) - (x->path < y->path);
}
