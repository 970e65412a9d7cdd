#include "snapshot.h"

int mt_snapshot_order(const void *a, const void *b)
{
    const struct mt_snapshot *x = a, *y = b;

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (int)x->device - (int)y->device;
}
