/* The call tree of all ranks of a job at their allocated peaks.
 *
 * A node is a call path. Its bytes on a row are the sum over its subtree on that row. The minimum
 * and the maximum of a node are taken over these sums; they are not sums of the children's minima
 * and maxima. The children of a node add up to it, and the root is the sum of the allocated peaks
 * of all rows. A leaf has the bytes of one role. Its parent is the call path that holds them, or
 * the node NO_PATH, which represents memory without a stack and paths that were too small to
 * keep. */
#ifndef MT_FLEET_JOB_TREE_H
#define MT_FLEET_JOB_TREE_H

#include "job_report.h"

/* A deeper call path counts for its caller at this depth, which bounds the work for each row. */
#define MT_JOB_TREE_DEPTH 128

enum mt_job_node_kind {
    MT_JOB_NODE_ROOT,
    MT_JOB_NODE_FRAME,
    MT_JOB_NODE_NO_PATH,
    MT_JOB_NODE_ROLE /* has no children */
};

struct mt_job_node {
    enum mt_job_node_kind kind;
    uint32_t path;        /* FRAME: its call path; ROLE: that of its parent; otherwise MT_NO_PATH */
    enum mt_role role;    /* ROLE only */
    uint32_t parent, end; /* index; one past the last descendant */
    uint32_t depth;       /* 0: the root */
    unsigned __int128 sum_bytes;    /* over rows */
    unsigned __int128 before_bytes; /* position of the node within the root's bytes: the sum of all
                                       nodes to its left */
    uint32_t row_count;             /* rows on which the node has bytes */
    /* A row without the node counts as 0 bytes. Ties go to the first row. */
    uint64_t min_bytes, mean_bytes, max_bytes;
    uint32_t min_row, max_row;
};

/* Nodes in preorder, the root first. Siblings are sorted by their sums, largest first, NO_PATH
 * last. */
struct mt_job_tree {
    struct mt_job_node *nodes; /* of the arena */
    uint32_t count;            /* 0: there are no rows */
    uint32_t row_count;
};

/* O(p log p + leaves * depth) for p call paths in use. Memory grows with p, not with the number of
 * rows. */
void mt_job_tree_make(const struct mt_job_report *report, struct mt_arena *arena,
                      struct mt_job_tree *tree);

/* Returns by how much the largest row exceeds the mean, in millionths of the mean: 50,000 is 5%. */
uint32_t mt_job_node_imbalance_ppm(const struct mt_job_tree *tree, const struct mt_job_node *node);

/* Checks order, sums and bounds. O(nodes). */
bool mt_job_tree_is_sound(const struct mt_job_tree *tree, const char **why);

#endif
