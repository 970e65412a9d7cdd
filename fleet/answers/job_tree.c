#include "job_tree.h"

#include "check.h"
#include "job_values.h"

uint32_t mt_job_node_imbalance_ppm(const struct mt_job_tree *tree, const struct mt_job_node *node)
{
    return mt_job_ppm((unsigned __int128)node->max_bytes * tree->row_count - node->sum_bytes,
                      node->sum_bytes);
}

static bool siblings_are_sound(const struct mt_job_tree *tree, uint32_t parent, const char **why)
{
    const struct mt_job_node *nodes = tree->nodes;
    unsigned __int128 before = nodes[parent].before_bytes;

    for (uint32_t i = parent + 1; i < nodes[parent].end; i = nodes[i].end) {
        MT_SOUND(why, nodes[i].parent == parent);
        MT_SOUND(why, nodes[i].depth == nodes[parent].depth + 1);
        MT_SOUND(why, nodes[i].end > i && nodes[i].end <= nodes[parent].end);
        MT_SOUND(why, nodes[i].before_bytes == before);
        MT_SOUND(why, nodes[i].row_count <= nodes[parent].row_count);
        MT_SOUND(why, nodes[i].max_bytes <= nodes[parent].max_bytes);
        before += nodes[i].sum_bytes;
    }
    MT_SOUND(why, before == nodes[parent].before_bytes + nodes[parent].sum_bytes);
    return true;
}

bool mt_job_tree_is_sound(const struct mt_job_tree *tree, const char **why)
{
    MT_SOUND(why, !tree->count || tree->nodes[0].end == tree->count);
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct mt_job_node *node = &tree->nodes[i];

        MT_SOUND(why, !i || node->sum_bytes);
        MT_SOUND(why, node->row_count <= tree->row_count);
        MT_SOUND(why, node->min_row < tree->row_count && node->max_row < tree->row_count);
        MT_SOUND(why, node->min_bytes <= node->mean_bytes && node->mean_bytes <= node->max_bytes);
        MT_SOUND(why, node->row_count == tree->row_count || !node->min_bytes);
        MT_SOUND(why, node->sum_bytes <= (unsigned __int128)node->max_bytes * node->row_count);
        if (node->kind == MT_JOB_NODE_ROLE)
            MT_SOUND(why, node->end == i + 1);
        else if (!siblings_are_sound(tree, i, why))
            return false;
    }
    return true;
}
