/* What nodes of an icicle are called, and its stacks as lines. */
#include "icicle.h"

#include "site.h"
#include "speaking_stack.h"
#include "ties.h"
#include "units.h"

#include <string.h>

static const char *no_stack_label(struct mt_arena *arena, const struct mt_node *node)
{
    if (node->is_initial)
        return "allocated before recording started";
    if (node->is_engine && !strcmp(node->phase_name, "backward"))
        return "autograd engine";
    if (!*node->phase_name)
        return "no stack recorded";
    return mt_arena_printf(arena, "%s, in %s", node->is_engine ? "autograd engine" : "no stack",
                           node->phase_name);
}

const char *mt_node_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                          const struct mt_node *node)
{
    char size[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    switch (node->kind) {
    case MT_NODE_ROOT: return "all";
    case MT_NODE_FRAME: return mt_frame_label(arena, symbols, node->frame);
    case MT_NODE_NO_STACK: return no_stack_label(arena, node);
    case MT_NODE_TIED:
        return mt_tie_label(arena, symbols, node->tie, (struct mt_site){node->frame, node->own});
    case MT_NODE_BLOCKS: break;
    }
    if (!node->block_bytes)
        return mt_arena_printf(arena, "%s", mt_weigh_format(count, MT_WEIGH_COUNT, node->blocks));
    return mt_arena_printf(arena, "%s × %s", mt_format_count(count, node->blocks),
                           mt_format_bytes(size, node->block_bytes));
}

static void add_name(struct mt_buf *out, const char *name)
{
    for (; name && *name; name++)
        mt_buf_add_char(out, *name == ';' || *name == '\n' || *name == '\r' ? ':' : *name);
}

static void add_path(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                     uint32_t index, struct mt_buf *out)
{
    uint32_t path[MT_SPEAKING_DEPTH + 3], count = 0;
    struct mt_arena names = {0};

    for (; index; index = icicle->nodes[index].parent)
        path[count++] = index;
    while (count-- > 0) {
        add_name(out, mt_node_label(&names, symbols, &icicle->nodes[path[count]]));
        mt_buf_add_char(out, count ? ';' : ' ');
    }
    mt_arena_release(&names);
}

void mt_icicle_fold(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                    bool with_blocks, struct mt_buf *out)
{
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];
        uint64_t weight = with_blocks ? 0 : node->own_weight;

        if (with_blocks && node->kind == MT_NODE_BLOCKS)
            weight = node->weight;
        if (weight == 0)
            continue;
        add_path(icicle, symbols, i, out);
        mt_buf_add_u64(out, weight);
        mt_buf_add_char(out, '\n');
    }
}
