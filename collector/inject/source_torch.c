/* PyTorch as a source: see torch_parts.h. */
#include "torch_parts.h"

#include "collect.h"

static void poll(void)
{
    mt_torch_allocator_tell();
    mt_torch_limit_tell();
    mt_torch_scopes_begin();
}

static void stop(void)
{
    mt_torch_allocator_tell(); /* the process may end before the next poll */
    mt_torch_limit_tell();
    if (mt_torch_mode() == MT_TORCH_TRACKED && mt_torch_tracker_never_refused())
        mt_collect_fact("never_refused", "1");
}

static void forked(void)
{
    mt_torch_allocator_forked();
    mt_torch_tracker_forked();
    mt_torch_scopes_forked();
    mt_torch_facts_forked();
}

const struct mt_inject_source mt_torch_source = {
    .name = "pytorch",
    .start = mt_torch_allocator_tell,
    .poll = poll,
    .stop = stop,
    .forked = forked,
};
