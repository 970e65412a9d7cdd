/* See raw_heaps.h; the order is that of enum mt_raw_heap. */
#include "raw_heaps.h"

#include <stddef.h>

#include "tape.h"
#include "util.h"

static const char *const names[] = {
    [MT_RAW_DRIVER] = "driver",
    [MT_RAW_PYTORCH] = "pytorch",
    [MT_RAW_MANAGED] = "driver:managed",
    [MT_RAW_ARRAY] = "driver:array",
    [MT_RAW_ASYNC] = "driver:async",
    [MT_RAW_VIRTUAL] = "driver:virtual",
    [MT_RAW_GRAPH] = "driver:graph",
    [MT_RAW_HOST] = "driver:host",
    [MT_RAW_RESERVED] = "driver:reserved",
    [MT_RAW_MAPPED] = "driver:mapped",
    [MT_RAW_IMPORTED] = "driver:imported",
    [MT_RAW_USER] = "user",
};

_Static_assert(MT_ARRAY_LEN(names) == MT_RAW_HEAP_COUNT, "every heap has a name");

const char *mt_raw_heap_name(unsigned heap)
{
    return heap < MT_ARRAY_LEN(names) ? names[heap] : NULL;
}
