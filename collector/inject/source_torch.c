/* PyTorch as a source: what the header of the trace says about it. */
#include "source_torch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect.h"

static atomic_bool told;

static char options[2048];

/* PyTorch reads it at that time, too, on the same thread: later the program may
 * be changing its environment. The first of these that is set counts. */
void mt_torch_note_options(void)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value) {
            snprintf(options, sizeof options, "%s", value);
            return;
        }
    }
}

static void tell_framework(void)
{
    const char *version = mt_torch_version_text();
    char text[96];

    snprintf(text, sizeof text, "PyTorch%s%s", *version ? " " : "", version);
    mt_collect_fact("framework", text);
    if (*options)
        mt_collect_fact("allocator_options", options);
}

static void tell_tracked(void)
{
    mt_collect_fact("sources", "pytorch-tracker");
    mt_collect_fact("has_segments", "1");
    mt_collect_fact("has_free_requested", "1");
    mt_collect_fact("has_free_completed", "1");
}

static void tell_reported(void)
{
    mt_collect_fact("sources", "pytorch-reports");
    mt_collect_fact("sizes_rounded", "1");
    mt_collect_fact("has_free_requested", "1");
}

void mt_torch_tell(void)
{
    enum mt_torch_mode mode = mt_torch_mode();

    if (!(mode == MT_TORCH_TRACKED || (mode == MT_TORCH_REPORTS && mt_torch_reports_seen())) ||
        atomic_exchange(&told, true))
        return;
    tell_framework();
    if (mode == MT_TORCH_TRACKED)
        tell_tracked();
    else
        tell_reported();
}

static void poll(void)
{
    mt_torch_limit_tell();
    mt_torch_scopes_begin();
}

static void stop(void)
{
    mt_torch_limit_tell();
    if (mt_torch_mode() == MT_TORCH_TRACKED && mt_torch_tracker_never_refused())
        mt_collect_fact("never_refused", "1");
}

static void forked(void)
{
    mt_torch_tracker_forked();
    mt_torch_scopes_forked();
    atomic_store(&told, false);
}

const struct mt_inject_source mt_torch_source = {
    .name = "pytorch",
    .poll = poll,
    .stop = stop,
    .forked = forked,
};
