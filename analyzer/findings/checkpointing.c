#include "checkpointing.h"

#include <string.h>

#include "frame_judge.h"
#include "util.h"

/* Libraries whose models have a switch, by the folder of their models. */
static const struct {
    const char *folder, *call;
} libraries[] = {
    {"/transformers/models/",
     "model.gradient_checkpointing_enable(), or TrainingArguments(gradient_checkpointing=True)"},
    {"/timm/models/", "model.set_grad_checkpointing(True)"},
    {"/diffusers/models/", "model.enable_gradient_checkpointing()"},
};

static const char *call_of(const struct mt_symbols *symbols, uint32_t frame)
{
    const char *file =
        frame == MT_NO_ID ? NULL : mt_symbols_text(symbols, symbols->frames[frame].file);

    for (size_t i = 0; file && i < MT_ARRAY_LEN(libraries); i++)
        if (mt_path_has(file, libraries[i].folder))
            return libraries[i].call;
    return NULL;
}

/* "LlamaMLP" of "LlamaMLP.forward", NULL if the recording has no class. */
static const char *module_of(struct mt_arena *arena, const struct mt_symbols *symbols,
                             uint32_t frame)
{
    static const char method[] = ".forward";
    const char *function = frame == MT_NO_ID ? NULL : mt_frame_function(arena, symbols, frame);
    size_t length = function ? strlen(function) : 0;

    if (length < sizeof method || strcmp(function + length - (sizeof method - 1), method) != 0)
        return NULL;
    return mt_arena_text(arena, function, length - (sizeof method - 1));
}

const char *mt_checkpoint_advice(struct mt_arena *arena, const struct mt_symbols *symbols,
                                 struct mt_site site)
{
    const char *call = call_of(symbols, site.frame);
    const char *module = call ? NULL : module_of(arena, symbols, site.frame);

    if (call)
        return call;
    return mt_arena_printf(arena,
                           "torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False) "
                           "around %s; or torch.autograd.graph.save_on_cpu(), which keeps them in "
                           "host memory",
                           module ? module : "the modules that make them");
}
