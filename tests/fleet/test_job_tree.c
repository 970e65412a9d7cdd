/* The call tree of a job against a slow oracle: for each node and each row, all leaves are looked
 * at again. */
#include "cmocka_all.h"

#include <string.h>

#include "job_answers.h"
#include "job_tree.h"
#include "phase.h"
#include "record_maker.h"
#include "simulate_job.h"

struct made {
    struct mt_rank_set set;
    struct mt_job_report *report;
    struct mt_arena arena;
    struct mt_job_tree tree;
};

static void make_tree(struct made *made)
{
    static const struct mt_job_options usual = {0};
    const char *why = "";

    mt_rank_set_sort(&made->set);
    if (!mt_rank_set_is_sound(&made->set, &why))
        fail_msg("%s", why);
    assert_int_equal(mt_job_report_make(&made->set, &usual, &made->report, NULL), MT_OK);
    mt_job_tree_make(made->report, &made->arena, &made->tree);
    if (!mt_job_tree_is_sound(&made->tree, &why))
        fail_msg("%s", why);
}

static void release(struct made *made)
{
    mt_arena_release(&made->arena);
    mt_job_report_free(made->report);
    mt_rank_set_release(&made->set);
}

static struct mt_rank_record record_of(int32_t rank, struct mt_record_leaf *leaves)
{
    struct mt_rank_record record = simulated_record(rank, 1 + (uint64_t)rank);

    record.identity.job = "job";
    record.leaves = leaves;
    return record;
}

static void add_leaf(struct mt_rank_record *record, uint32_t path, enum mt_role role,
                     uint64_t bytes)
{
    for (uint32_t i = 0; i < record->leaf_count; i++)
        if (record->leaves[i].path == path && record->leaves[i].role == role)
            return;
    record->leaves[record->leaf_count++] = (struct mt_record_leaf){path, role, bytes, 1, path};
    record->role_bytes[role] += bytes;
    record->allocated_peak.bytes += bytes;
}

/* Does what a leaf holds belong to a path? */
static bool is_below(const struct mt_rank_set *set, uint32_t leaf, uint32_t path)
{
    while (leaf != path && leaf != MT_NO_PATH)
        leaf = set->paths[leaf].parent;
    return leaf == path;
}

static bool belongs(const struct made *made, const struct mt_job_node *node,
                    const struct mt_record_leaf *leaf)
{
    switch (node->kind) {
    case MT_JOB_NODE_ROOT: return true;
    case MT_JOB_NODE_FRAME:
        return leaf->path != MT_NO_PATH && is_below(&made->set, leaf->path, node->path);
    case MT_JOB_NODE_NO_PATH: return leaf->path == MT_NO_PATH;
    case MT_JOB_NODE_ROLE: break;
    }
    return leaf->path == node->path && leaf->role == node->role;
}

static struct mt_job_node slow_node(const struct made *made, const struct mt_job_node *like)
{
    struct mt_job_node node = {.min_bytes = UINT64_MAX};

    for (uint32_t r = 0; r < made->report->row_count; r++) {
        const struct mt_rank_record *record = made->report->rows[r].record;
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < record->leaf_count; i++)
            if (belongs(made, like, &record->leaves[i]))
                bytes += record->leaves[i].bytes;
        node.sum_bytes += bytes;
        node.row_count += bytes > 0;
        if (bytes < node.min_bytes) {
            node.min_bytes = bytes;
            node.min_row = r;
        }
        if (bytes > node.max_bytes) {
            node.max_bytes = bytes;
            node.max_row = r;
        }
    }
    node.mean_bytes = (uint64_t)(node.sum_bytes / made->report->row_count);
    return node;
}

static void check_node(const struct made *made, uint32_t i)
{
    const struct mt_job_node *node = &made->tree.nodes[i];
    struct mt_job_node slow = slow_node(made, node);

    assert_true(node->sum_bytes == slow.sum_bytes);
    assert_int_equal(node->row_count, slow.row_count);
    assert_int_equal(node->min_bytes, slow.min_bytes);
    assert_int_equal(node->min_row, slow.min_row);
    assert_int_equal(node->mean_bytes, slow.mean_bytes);
    assert_int_equal(node->max_bytes, slow.max_bytes);
    assert_int_equal(node->max_row, slow.max_row);
}

/* Every path that holds memory stands once below its caller. */
static void check_paths(const struct made *made)
{
    for (uint32_t p = 0; p < made->set.path_count; p++) {
        const struct mt_job_node like = {.kind = MT_JOB_NODE_FRAME, .path = p};
        uint32_t found = 0;

        for (uint32_t i = 0; i < made->tree.count; i++) {
            const struct mt_job_node *node = &made->tree.nodes[i];

            if (node->kind != MT_JOB_NODE_FRAME || node->path != p)
                continue;
            assert_int_equal(made->tree.nodes[node->parent].path, made->set.paths[p].parent);
            found++;
        }
        assert_int_equal(found, slow_node(made, &like).sum_bytes > 0);
    }
}

/* Largest first, and what has no path last. */
static void check_order(const struct mt_job_tree *tree)
{
    for (uint32_t i = 1; i < tree->count; i++) {
        uint32_t next = tree->nodes[i].end;

        if (next >= tree->nodes[tree->nodes[i].parent].end)
            continue;
        assert_int_not_equal(tree->nodes[i].kind, MT_JOB_NODE_NO_PATH);
        assert_true(tree->nodes[next].kind == MT_JOB_NODE_NO_PATH ||
                    tree->nodes[i].sum_bytes >= tree->nodes[next].sum_bytes);
    }
}

TEST(nodes_are_what_rows_hold)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct made made = {0};
        struct record_maker maker = {seed, &made.set};
        uint32_t rows = 1 + (uint32_t)maker_dice(&maker, 12);

        for (uint32_t r = 0; r < rows; r++) {
            struct mt_record_leaf leaves[24];
            struct mt_rank_record record = record_of((int32_t)r, leaves);
            uint64_t count = maker_dice(&maker, 24);

            for (uint64_t i = 0; i < count; i++)
                add_leaf(&record, maker_path(&maker),
                         (enum mt_role)maker_dice(&maker, MT_ROLE_COUNT),
                         maker_dice(&maker, 4) ? maker_dice(&maker, 6) << 20 : 0);
            mt_rank_set_add(&made.set, &record);
        }
        make_tree(&made);
        for (uint32_t i = 0; i < made.tree.count; i++)
            check_node(&made, i);
        check_paths(&made);
        check_order(&made.tree);
        release(&made);
    }
}

static const struct mt_job_node *find(const struct made *made, const char *frame)
{
    for (uint32_t i = 0; i < made->tree.count; i++)
        if (made->tree.nodes[i].kind == MT_JOB_NODE_FRAME &&
            !strcmp(mt_rank_set_frame(&made->set, made->tree.nodes[i].path), frame))
            return &made->tree.nodes[i];
    fail_msg("no %s", frame);
    return NULL;
}

TEST(planted_facts_are_in_the_tree)
{
    struct simulated_job job = simulated_job_new(4, 32, 8);
    struct made made = {0};
    const struct mt_job_node *log, *build;
    unsigned __int128 peaks = 0;

    job.logging_rank = 513;
    assert_true(simulated_job_add(&job, 0, 1, &made.set));
    make_tree(&made);
    log = find(&made, "log logs.py:5");
    assert_int_equal(log->row_count, 1);
    assert_int_equal(log->max_row, 513);
    assert_int_equal(log->max_bytes, SIMULATED_LOGS);
    assert_int_equal(log->min_bytes, 0);
    assert_int_equal(log->min_row, 0);
    assert_int_equal(mt_job_node_imbalance_ppm(&made.tree, log), 1023 * 1000000);
    /* 12 GiB on a quarter of the ranks, 10 GiB on the others: 1.5 GiB of 10.5 above the mean. */
    build = find(&made, "build model.py:20");
    assert_int_equal(build->mean_bytes, 10 * MT_GIB + MT_GIB / 2);
    assert_int_equal(mt_job_node_imbalance_ppm(&made.tree, build), 142857);
    for (uint32_t r = 0; r < made.report->row_count; r++)
        peaks += made.report->rows[r].record->allocated_peak.bytes;
    assert_true(made.tree.nodes[0].sum_bytes == peaks);
    release(&made);
}

/* The largest of a sum is not the sum of the largest: two ranks that hold the same amount in two
 * places are in balance. */
TEST(a_caller_may_be_in_balance_where_its_callees_are_not)
{
    struct made made = {0};

    for (int32_t rank = 0; rank < 2; rank++) {
        struct mt_record_leaf leaves[4];
        struct mt_rank_record record = record_of(rank, leaves);
        const char *inner = rank ? "odd a.py:3" : "even a.py:2";

        uint32_t path = mt_rank_set_path(&made.set, MT_NO_PATH, "main a.py:1", 11);
        path = mt_rank_set_path(&made.set, path, inner, strlen(inner));
        add_leaf(&record, path, MT_ROLE_OTHER, MT_GIB);
        mt_rank_set_add(&made.set, &record);
    }
    make_tree(&made);
    assert_int_equal(find(&made, "main a.py:1")->max_bytes, MT_GIB);
    assert_int_equal(find(&made, "main a.py:1")->min_bytes, MT_GIB);
    assert_int_equal(mt_job_node_imbalance_ppm(&made.tree, find(&made, "main a.py:1")), 0);
    assert_int_equal(mt_job_node_imbalance_ppm(&made.tree, find(&made, "odd a.py:3")), 1000000);
    release(&made);
}

/* As deep as a file can make it: what is deeper belongs to the caller. */
TEST(very_deep_paths_end_at_the_largest_depth)
{
    enum { DEEP = 5000 };
    struct mt_record_leaf leaves[4];
    struct mt_rank_record record = record_of(0, leaves);
    struct made made = {0};
    uint32_t path = MT_NO_PATH, deepest = 0;

    for (int i = 0; i < DEEP; i++) {
        path = mt_rank_set_path(&made.set, path, "f a.py:1", 8);
        if (i == MT_JOB_TREE_DEPTH + 7)
            add_leaf(&record, path, MT_ROLE_OTHER, 5);
    }
    add_leaf(&record, path, MT_ROLE_OTHER, 6);
    add_leaf(&record, path, MT_ROLE_INPUTS, 2);
    mt_rank_set_add(&made.set, &record);
    make_tree(&made);
    assert_int_equal(made.tree.count, 1 + MT_JOB_TREE_DEPTH + 2);
    for (uint32_t i = 0; i < made.tree.count; i++)
        deepest = deepest > made.tree.nodes[i].depth ? deepest : made.tree.nodes[i].depth;
    assert_int_equal(deepest, MT_JOB_TREE_DEPTH + 1);
    assert_true(made.tree.nodes[made.tree.count - 2].sum_bytes == 11);
    assert_true(made.tree.nodes[0].sum_bytes == 13);
    release(&made);
}

/* A record that names no leaves has its roles. */
TEST(a_record_without_leaves_counts_by_role)
{
    struct mt_rank_record record = record_of(0, NULL);
    struct made made = {0};

    record.role_bytes[MT_ROLE_OTHER] = record.allocated_peak.bytes = 7;
    mt_rank_set_add(&made.set, &record);
    make_tree(&made);
    assert_int_equal(made.tree.count, 3);
    assert_int_equal(made.tree.nodes[1].kind, MT_JOB_NODE_NO_PATH);
    assert_int_equal(made.tree.nodes[2].role, MT_ROLE_OTHER);
    assert_int_equal(made.tree.nodes[0].max_bytes, 7);
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
