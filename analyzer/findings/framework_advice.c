#include "framework_advice.h"

#include "frame_judge.h"
#include "heaps.h"

#include <string.h>

/* Files of the frameworks that pass modules to XLA, in the stack of every request. */
static const struct {
    const char *folder;
    enum mt_framework framework;
} folders[] = {
    {"jax/_src/", MT_FRAMEWORK_JAX},
    {"tensorflow/python/", MT_FRAMEWORK_TENSORFLOW},
};

static enum mt_framework named_in_stacks(const struct mt_symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->frame_count; i++) {
        const char *file = mt_symbols_text(symbols, symbols->frames[i].file);

        for (size_t j = 0; j < MT_ARRAY_LEN(folders); j++)
            if (mt_path_has(file, folders[j].folder))
                return folders[j].framework;
    }
    return MT_FRAMEWORK_UNKNOWN;
}

/* A recording without Python frames: jax.jit names a module after the function. */
static enum mt_framework named_in_modules(const struct mt_xla_runs *runs)
{
    static const char prefix[] = "jit_";

    for (uint32_t i = 0; i < runs->modules.count; i++)
        if (strncmp(runs->modules.texts[i], prefix, sizeof prefix - 1) == 0)
            return MT_FRAMEWORK_JAX;
    return MT_FRAMEWORK_UNKNOWN;
}

enum mt_framework mt_framework_of(const struct mt_finding_search *search)
{
    const struct mt_source *source = search->analysis->source;
    enum mt_framework named;

    if (!search->analysis->report->is_driver_level)
        return strcmp(mt_heap_name(&source->symbols, source->view.heap), "pytorch") == 0
                   ? MT_FRAMEWORK_TORCH
                   : MT_FRAMEWORK_UNKNOWN;
    if (!search->analysis->survey.phases.xla_modules)
        return MT_FRAMEWORK_UNKNOWN;
    named = named_in_stacks(&source->symbols);
    return named ? named : named_in_modules(&search->analysis->survey.xla.runs);
}

const char *mt_framework_text(const struct mt_finding_search *search,
                              const struct mt_framework_texts *texts)
{
    const char *text = texts->of[mt_framework_of(search)];

    return text ? text : texts->of[MT_FRAMEWORK_UNKNOWN];
}
