/* See torch_parts.h: state that all parts share, and facts of the trace's header. */
#include "torch_parts.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect.h"

static _Atomic int current_mode = MT_TORCH_REPORTS;
static atomic_bool seen, told;
static char options[2048], version_text[MT_TORCH_VERSION_BYTES];

enum mt_torch_mode mt_torch_mode(void)
{
    return (enum mt_torch_mode)atomic_load_explicit(&current_mode, memory_order_acquire);
}

void mt_torch_set_mode(enum mt_torch_mode mode)
{
    atomic_store_explicit(&current_mode, mode, memory_order_release);
}

bool mt_torch_reports_seen(void)
{
    return atomic_load_explicit(&seen, memory_order_relaxed);
}

void mt_torch_note_report(void)
{
    atomic_store(&seen, true);
}

void mt_torch_note_version(const char *text)
{
    snprintf(version_text, sizeof version_text, "%s", text);
}

const char *mt_torch_version_text(void)
{
    return version_text;
}

/* PyTorch reads it at the same time on the same thread; later the program may change its
 * environment. The first variable that is set counts. */
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

    if (atomic_load_explicit(&told, memory_order_relaxed))
        return;
    if (!(mode == MT_TORCH_TRACKED || (mode == MT_TORCH_REPORTS && mt_torch_reports_seen())) ||
        atomic_exchange(&told, true))
        return;
    tell_framework();
    if (mode == MT_TORCH_TRACKED)
        tell_tracked();
    else
        tell_reported();
}

void mt_torch_facts_forked(void)
{
    atomic_store(&told, false);
}
