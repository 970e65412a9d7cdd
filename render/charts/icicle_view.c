#include "icicle_view.h"

#include "chart_frame.h"
#include "units.h"

double mt_icicle_pixels(const struct mt_icicle_view *view, uint64_t weight)
{
    return (double)weight * view->scale;
}

enum mt_color mt_icicle_color(const struct mt_icicle_view *view, const struct mt_node *node)
{
    switch (node->kind) {
    case MT_NODE_ROOT: return MT_COLOR_ROOT;
    case MT_NODE_NO_STACK:
    case MT_NODE_TIED: return MT_ENGINE_COLOR;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(view->symbols, node->frame);
}

const char *mt_icicle_exact(const struct mt_icicle_view *view, uint64_t weight)
{
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    const char *said;

    mt_weigh_format(text, view->icicle->weigh, weight);
    said = view->icicle->weigh == MT_WEIGH_COUNT
               ? mt_arena_printf(&view->drawing->arena, "%s", text)
               : mt_arena_printf(&view->drawing->arena, "%s (%s B)", text,
                                 mt_format_count(exact, weight));
    return said ? said : "";
}
