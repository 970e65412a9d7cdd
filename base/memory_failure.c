#include "memory_failure.h"

#include <stdatomic.h>

static atomic_bool has_failed;

void mt_memory_note_failure(void)
{
    atomic_store_explicit(&has_failed, true, memory_order_relaxed);
}

bool mt_memory_has_failed(void)
{
    return atomic_load_explicit(&has_failed, memory_order_relaxed);
}
