/* Lifetimes, fed by every block that ends or exists at the end. */
#include "lifetimes_model.h"

#include <string.h>

#include "analysis.h"
#include "model_ops.h"
#include "pytorch_config.h"

static void on_end(void *builder, const struct mt_block_life *life)
{
    const struct mt_lifetime lifetime = {.bytes = life->requested_bytes,
                                         .ns = life->end_t_ns - life->birth_t_ns,
                                         .ended = life->end_event != UINT64_MAX,
                                         .is_older = life->initial,
                                         .role = (enum mt_role)life->role};

    mt_lifetimes_builder_add(builder, &lifetime);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_lifetimes_builder *builder = NULL;

    mt_lifetimes_builder_new(&analysis->report->arena, &builder);
    (void)slot;
    *feed = (struct mt_model_feed){.builder = builder, .on_end = on_end};
    return MT_OK;
}

static bool is_pytorch(const struct mt_source *source)
{
    return source->view.level == MT_VIEW_FRAMEWORK && source->header.framework &&
           strncmp(source->header.framework, "PyTorch", 7) == 0;
}

/* PyTorch's limits in the run. */
static void set_pools(const struct mt_source *source, struct mt_lifetimes *lifetimes)
{
    struct mt_pytorch_config config;
    struct mt_error unused;

    if (!is_pytorch(source) ||
        mt_pytorch_config_recorded(&source->header, &config, &unused) != MT_OK ||
        config.async_backend)
        return;
    lifetimes->small_pool_bytes = MT_PYTORCH_SMALL_LIMIT;
    if (!config.expandable_segments)
        lifetimes->own_segment_bytes = MT_PYTORCH_OWN_SEGMENT;
}

static enum mt_status finish(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out)
{
    out->lifetimes = mt_lifetimes_builder_finish(builder);
    set_pools(analysis->source, out->lifetimes);
    return MT_OK;
}

const struct mt_model_ops mt_model_lifetimes = {.begin = begin, .finish = finish};
