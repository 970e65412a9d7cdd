/* The call tree of all ranks of a job: made from the leaves of all rows, and queries on it. */
#include <stdlib.h>

#include "check.h"
#include "job_report.h"
#include "job_tree.h"
#include "job_values.h"
#include "process_memory.h"

/* Makes one tree from the leaves of all rows.
 *
 * First the shape: paths in use are numbered after their callers (paths of a set follow their
 * callers), and roles are numbered after all paths. Sums are then computed in one pass from the
 * last number to the first, and preorder positions in one pass over sorted siblings.
 *
 * Then the rows, one after the other: each leaf climbs to the first node that the row has already
 * reached, and bytes are added up through the reached nodes. A row costs the size of its own
 * tree. */

/* A node without a position yet. */
struct seed {
    struct mt_job_node node;  /* parent is a number of a seed */
    uint32_t number, size;    /* size: with all descendants */
    uint32_t place, next;     /* of the node in preorder, and of its next child */
    unsigned __int128 before; /* where the next child begins */
};

struct growing {
    const struct mt_job_report *report;
    struct mt_job_tree *tree;
    uint8_t *depths;    /* by path, 1 is outermost */
    uint32_t *keepers;  /* by path: itself, or its caller at the largest depth */
    uint32_t *frames;   /* by path: number of its seed, 0 = none */
    uint32_t *cells;    /* by keeper and role: number of its seed, later its place; 0 = none */
    struct seed *seeds; /* by number */
    struct seed *sorted;
    uint32_t seed_count;
    uint32_t no_path; /* number of its seed, 0 = none */
    /* While rows are added, by place: */
    uint64_t *bytes;
    uint32_t *stamps;    /* 1 + the row that reached it last */
    uint32_t *absents;   /* the first row without it; MT_NO_ROW */
    uint32_t *next_rows; /* the row after the last one that has it */
    uint32_t *reached;   /* places, callers before those that they call */
    uint32_t reached_count;
};

static uint32_t *cell_of(const struct growing *growing, uint32_t path, enum mt_role role)
{
    size_t row =
        path == MT_NO_PATH ? growing->report->set->path_count : (size_t)growing->keepers[path];

    return &growing->cells[row * MT_ROLE_COUNT + (size_t)role];
}

/* Number of leaves of a row; a record without leaves still has its bytes of each role. */
static uint32_t count_leaves(const struct mt_rank_record *record)
{
    return record->leaf_count ? record->leaf_count : MT_ROLE_COUNT;
}

static struct mt_record_leaf leaf_of(const struct mt_rank_record *record, uint32_t number)
{
    if (record->leaf_count)
        return mt_leaf_at(record, number);
    return (struct mt_record_leaf){
        .path = MT_NO_PATH, .role = (enum mt_role)number, .bytes = record->role_bytes[number]};
}

static void find_keepers(struct growing *growing)
{
    const struct mt_rank_set *set = growing->report->set;

    for (uint32_t i = 0; i < set->path_count; i++) {
        uint32_t parent = set->paths[i].parent;
        uint8_t depth = parent == MT_NO_PATH ? 0 : growing->depths[parent];
        bool is_too_deep = depth == MT_JOB_TREE_DEPTH;

        growing->depths[i] = (uint8_t)(depth + !is_too_deep);
        growing->keepers[i] = is_too_deep ? growing->keepers[parent] : i;
    }
}

static uint32_t add_seed(struct growing *growing, enum mt_job_node_kind kind, uint32_t path,
                         uint32_t parent)
{
    uint32_t number = growing->seed_count++;

    growing->seeds[number] = (struct seed){
        .node = {.kind = kind, .path = path, .parent = parent}, .number = number, .size = 1};
    return number;
}

/* Paths that hold memory, and their callers. */
static void mark_frames(struct growing *growing)
{
    const struct mt_job_report *report = growing->report;

    for (uint32_t row = 0; row < report->row_count; row++)
        for (uint32_t i = 0; i < report->rows[row].record->leaf_count; i++) {
            const struct mt_record_leaf leaf = mt_leaf_at(report->rows[row].record, i);

            if (leaf.path != MT_NO_PATH && leaf.bytes)
                growing->frames[growing->keepers[leaf.path]] = 1;
        }
    for (uint32_t i = report->set->path_count; i-- > 0;)
        if (growing->frames[i] && report->set->paths[i].parent != MT_NO_PATH)
            growing->frames[report->set->paths[i].parent] = 1;
}

static void add_frames(struct growing *growing)
{
    const struct mt_rank_set *set = growing->report->set;

    for (uint32_t i = 0; i < set->path_count; i++)
        if (growing->frames[i])
            growing->frames[i] = add_seed(
                growing, MT_JOB_NODE_FRAME, i,
                set->paths[i].parent == MT_NO_PATH ? 0 : growing->frames[set->paths[i].parent]);
}

static void add_role(struct growing *growing, const struct mt_record_leaf *leaf)
{
    uint32_t *cell = cell_of(growing, leaf->path, leaf->role);

    if (!*cell) {
        bool has_path = leaf->path != MT_NO_PATH;
        uint32_t keeper = has_path ? growing->keepers[leaf->path] : MT_NO_PATH;

        if (!has_path && !growing->no_path)
            growing->no_path = add_seed(growing, MT_JOB_NODE_NO_PATH, MT_NO_PATH, 0);
        *cell = add_seed(growing, MT_JOB_NODE_ROLE, keeper,
                         has_path ? growing->frames[keeper] : growing->no_path);
        growing->seeds[*cell].node.role = leaf->role;
    }
    growing->seeds[*cell].node.sum_bytes += leaf->bytes;
}

static void add_roles(struct growing *growing)
{
    const struct mt_job_report *report = growing->report;

    for (uint32_t row = 0; row < report->row_count; row++) {
        const struct mt_rank_record *record = report->rows[row].record;

        for (uint32_t i = 0; i < count_leaves(record); i++) {
            struct mt_record_leaf leaf = leaf_of(record, i);

            if (leaf.bytes)
                add_role(growing, &leaf);
        }
    }
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* By the parent, then siblings in order. */
static int compare_seeds(const void *a, const void *b)
{
    const struct seed *one = a, *other = b;
    const struct mt_job_node *x = &one->node, *y = &other->node;

    if (x->parent != y->parent)
        return compare_u32(x->parent, y->parent);
    if ((x->kind == MT_JOB_NODE_NO_PATH) != (y->kind == MT_JOB_NODE_NO_PATH))
        return x->kind == MT_JOB_NODE_NO_PATH ? 1 : -1;
    if (x->sum_bytes != y->sum_bytes)
        return x->sum_bytes > y->sum_bytes ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->path != y->path ? compare_u32(x->path, y->path)
                              : compare_u32((uint32_t)x->role, (uint32_t)y->role);
}

static void place_node(struct growing *growing, struct seed *seed, struct seed *parent)
{
    struct mt_job_node *node = &growing->tree->nodes[parent->next];

    *node = seed->node;
    node->parent = parent->place;
    node->depth = growing->tree->nodes[parent->place].depth + 1;
    node->before_bytes = seed->before = parent->before;
    node->end = parent->next + seed->size;
    seed->place = parent->next;
    seed->next = seed->place + 1;
    parent->next = node->end;
    parent->before += node->sum_bytes;
}

/* Sums from the innermost seeds up, then places from the root down. */
static void place_nodes(struct growing *growing)
{
    uint32_t count = growing->seed_count;

    for (uint32_t i = count; i-- > 1;) {
        struct seed *parent = &growing->seeds[growing->seeds[i].node.parent];

        parent->node.sum_bytes += growing->seeds[i].node.sum_bytes;
        parent->size += growing->seeds[i].size;
    }
    for (uint32_t i = 1; i < count; i++)
        growing->sorted[i - 1] = growing->seeds[i];
    if (count > 1)
        qsort(growing->sorted, count - 1, sizeof *growing->sorted, compare_seeds);
    growing->tree->nodes[0] = growing->seeds[0].node;
    growing->tree->nodes[0].end = growing->tree->count = count;
    growing->seeds[0].next = 1;
    for (uint32_t i = 0; i + 1 < count; i++)
        place_node(growing, &growing->seeds[growing->sorted[i].number],
                   &growing->seeds[growing->sorted[i].node.parent]);
}

static void reach(struct growing *growing, uint32_t place, uint32_t row)
{
    const struct mt_job_node *nodes = growing->tree->nodes;
    uint32_t length = 0, at = place;

    while (growing->stamps[at] != row + 1) {
        growing->stamps[at] = row + 1;
        growing->bytes[at] = 0;
        length++;
        if (at == 0)
            break;
        at = nodes[at].parent;
    }
    growing->reached_count += length;
    at = place;
    for (uint32_t i = 0; i < length; i++, at = nodes[at].parent)
        growing->reached[growing->reached_count - 1 - i] = at;
}

/* Rows ascend, so the first among equals stays. */
static void count_row(struct growing *growing, uint32_t place, uint32_t row)
{
    struct mt_job_node *node = &growing->tree->nodes[place];
    uint64_t bytes = growing->bytes[place];

    if (growing->next_rows[place] < row && growing->absents[place] == MT_NO_ROW)
        growing->absents[place] = growing->next_rows[place];
    growing->next_rows[place] = row + 1;
    if (!node->row_count || bytes < node->min_bytes) {
        node->min_bytes = bytes;
        node->min_row = row;
    }
    if (bytes > node->max_bytes) {
        node->max_bytes = bytes;
        node->max_row = row;
    }
    node->row_count++;
}

static void add_row(struct growing *growing, uint32_t row)
{
    const struct mt_rank_record *record = growing->report->rows[row].record;

    growing->reached_count = 0;
    for (uint32_t i = 0; i < count_leaves(record); i++) {
        struct mt_record_leaf leaf = leaf_of(record, i);
        uint32_t place = leaf.bytes ? *cell_of(growing, leaf.path, leaf.role) : 0;

        if (!place)
            continue;
        reach(growing, place, row);
        growing->bytes[place] += leaf.bytes;
    }
    for (uint32_t i = growing->reached_count; i-- > 0;) {
        uint32_t place = growing->reached[i];

        count_row(growing, place, row);
        if (place)
            growing->bytes[growing->tree->nodes[place].parent] += growing->bytes[place];
    }
}

/* A row without the node has its minimum. */
static void finish_node(struct growing *growing, uint32_t place)
{
    struct mt_job_node *node = &growing->tree->nodes[place];
    uint32_t rows = growing->report->row_count, absent = growing->absents[place];

    if (absent == MT_NO_ROW && growing->next_rows[place] < rows)
        absent = growing->next_rows[place];
    if (absent != MT_NO_ROW) {
        node->min_bytes = 0;
        node->min_row = absent;
    }
    node->mean_bytes = (uint64_t)(node->sum_bytes / rows);
}

static void add_rows(struct growing *growing)
{
    for (uint32_t i = 0; i < growing->report->set->path_count + 1; i++)
        for (uint32_t role = 0; role < MT_ROLE_COUNT; role++) {
            uint32_t *cell = &growing->cells[(size_t)i * MT_ROLE_COUNT + role];

            *cell = *cell ? growing->seeds[*cell].place : 0;
        }
    for (uint32_t i = 0; i < growing->tree->count; i++)
        growing->absents[i] = MT_NO_ROW;
    for (uint32_t row = 0; row < growing->report->row_count; row++)
        add_row(growing, row);
    for (uint32_t i = 0; i < growing->tree->count; i++)
        finish_node(growing, i);
}

/* The root, NO_PATH, each path once, and each path and role once. */
static uint64_t most_nodes(const struct mt_job_report *report)
{
    uint64_t paths = (uint64_t)report->set->path_count + 1, leaves = 0;

    for (uint32_t row = 0; row < report->row_count; row++)
        leaves += count_leaves(report->rows[row].record);
    return 1 + paths + mt_min_u64(leaves, paths * MT_ROLE_COUNT);
}

static void find_shape_room(struct growing *growing, size_t most)
{
    size_t paths = (size_t)growing->report->set->path_count + 1;

    growing->depths = mt_memory_zeroed(paths, sizeof *growing->depths);
    growing->keepers = mt_memory_zeroed(paths, sizeof *growing->keepers);
    growing->frames = mt_memory_zeroed(paths, sizeof *growing->frames);
    growing->cells = mt_memory_zeroed(paths, MT_ROLE_COUNT * sizeof *growing->cells);
    growing->seeds = mt_memory_zeroed(most, sizeof *growing->seeds);
}

static void find_row_room(struct growing *growing, struct mt_arena *arena)
{
    size_t count = growing->seed_count;

    growing->tree->nodes = mt_arena_array(arena, count, sizeof *growing->tree->nodes);
    growing->sorted = mt_memory_zeroed(count, sizeof *growing->sorted);
    growing->bytes = mt_memory_zeroed(count, sizeof *growing->bytes);
    growing->stamps = mt_memory_zeroed(count, sizeof *growing->stamps);
    growing->absents = mt_memory_zeroed(count, sizeof *growing->absents);
    growing->next_rows = mt_memory_zeroed(count, sizeof *growing->next_rows);
    growing->reached = mt_memory_zeroed(count, sizeof *growing->reached);
}

static void grow(struct growing *growing, struct mt_arena *arena)
{
    uint64_t most = most_nodes(growing->report);

    if (most >= UINT32_MAX)
        mt_memory_end();
    find_shape_room(growing, (size_t)most);
    find_keepers(growing);
    add_seed(growing, MT_JOB_NODE_ROOT, MT_NO_PATH, 0);
    mark_frames(growing);
    add_frames(growing);
    add_roles(growing);
    find_row_room(growing, arena);
    place_nodes(growing);
    add_rows(growing);
}

static void release(struct growing *growing)
{
    free(growing->depths);
    free(growing->keepers);
    free(growing->frames);
    free(growing->cells);
    free(growing->seeds);
    free(growing->sorted);
    free(growing->bytes);
    free(growing->stamps);
    free(growing->absents);
    free(growing->next_rows);
    free(growing->reached);
}

void mt_job_tree_make(const struct mt_job_report *report, struct mt_arena *arena,
                      struct mt_job_tree *tree)
{
    struct growing growing = {.report = report, .tree = tree};
    const char *why = "";

    *tree = (struct mt_job_tree){.row_count = report->row_count};
    if (!report->row_count)
        return;
    grow(&growing, arena);
    release(&growing);
    MT_ASSERT_SOUND(mt_job_tree_is_sound(tree, &why), why);
    (void)why;
}

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
