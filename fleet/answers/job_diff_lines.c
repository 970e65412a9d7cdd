/* The sites of two jobs in one tree of paths. A path is the same in both if its frames are. Paths
 * that only one job has, of one role and with the same functions and files, are paired in the order
 * of their line numbers, if both jobs have the same number of them: an edit moved them. */
#include <stdlib.h>
#include <string.h>

#include "job_diff_work.h"
#include "process_memory.h"

/* A line of only one job, to be paired. */
struct single {
    const struct mt_rank_set *paths;
    uint32_t line, path, loose; /* loose: its path without line numbers */
    enum mt_role role;
    bool is_of_b;
};

/* Length of "step train.py:47" without ":47". */
static size_t loose_length(const char *frame)
{
    size_t length = strlen(frame), end = length;

    while (end && frame[end - 1] >= '0' && frame[end - 1] <= '9')
        end--;
    return end && end < length && frame[end - 1] == ':' ? end - 1 : length;
}

static uint64_t number_of_line(const char *frame)
{
    size_t end = loose_length(frame);

    return frame[end] ? strtoull(frame + end + 1, NULL, 10) : 0;
}

/* Paths must be compared from the outermost frame, so the first difference is where they part.
 * Equalizes the depths, then walks up both together; the last difference counts. */
static int compare_by(const struct mt_rank_set *paths, uint32_t x, uint32_t y,
                      int (*compare)(const char *, const char *))
{
    uint32_t deep_x = 0, deep_y = 0;
    int order = 0;

    for (uint32_t p = x; p != MT_NO_PATH; p = paths->paths[p].parent)
        deep_x++;
    for (uint32_t p = y; p != MT_NO_PATH; p = paths->paths[p].parent)
        deep_y++;
    if (deep_x != deep_y)
        return deep_x < deep_y ? -1 : 1;
    for (; x != y; x = paths->paths[x].parent, y = paths->paths[y].parent) {
        int here = compare(mt_rank_set_frame(paths, x), mt_rank_set_frame(paths, y));

        order = here ? here : order;
    }
    return order;
}

int mt_job_diff_compare_paths(const struct mt_rank_set *paths, uint32_t x, uint32_t y)
{
    return compare_by(paths, x, y, strcmp);
}

static int compare_numbers(const char *x, const char *y)
{
    uint64_t one = number_of_line(x), other = number_of_line(y);

    return (one > other) - (one < other);
}

/* By the parts that must be equal, then by side, then by line numbers. */
static int compare_singles(const void *a, const void *b)
{
    const struct single *x = a, *y = b;

    if (x->loose != y->loose)
        return x->loose < y->loose ? -1 : 1;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->is_of_b != y->is_of_b)
        return x->is_of_b ? 1 : -1;
    int order = compare_by(x->paths, x->path, y->path, compare_numbers);
    return order ? order : mt_job_diff_compare_paths(x->paths, x->path, y->path);
}

static void add_tree(struct mt_rank_set *paths, const struct mt_rank_set *set, uint32_t **map)
{
    *map = mt_memory_new(((size_t)set->path_count + 1) * sizeof **map);
    for (uint32_t i = 0; i < set->path_count; i++) {
        uint32_t parent = set->paths[i].parent;
        const char *frame = mt_rank_set_frame(set, i);

        (*map)[i] = mt_rank_set_path(paths, parent == MT_NO_PATH ? MT_NO_PATH : (*map)[parent],
                                     frame, strlen(frame));
    }
}

/* For each path of `paths`, its path without line numbers. */
static void loosen(const struct mt_rank_set *paths, uint32_t *loose)
{
    struct mt_rank_set tree = {0};

    for (uint32_t i = 0; i < paths->path_count; i++) {
        uint32_t parent = paths->paths[i].parent;
        const char *frame = mt_rank_set_frame(paths, i);

        loose[i] = mt_rank_set_path(&tree, parent == MT_NO_PATH ? MT_NO_PATH : loose[parent], frame,
                                    loose_length(frame));
    }
    mt_rank_set_release(&tree);
}

static size_t cell_of(const struct mt_job_diff *diff, uint32_t path, enum mt_role role)
{
    return (size_t)(path == MT_NO_PATH ? diff->paths.path_count : path) * MT_ROLE_COUNT +
           (size_t)role;
}

static uint32_t path_of(const struct mt_job_line_index *index, bool is_of_b, uint32_t path)
{
    return path == MT_NO_PATH ? MT_NO_PATH : (is_of_b ? index->b_paths : index->a_paths)[path];
}

uint32_t mt_job_line_of(const struct mt_job_diff *diff, const struct mt_job_line_index *index,
                        bool is_of_b, const struct mt_record_leaf *leaf)
{
    return index->lines[cell_of(diff, path_of(index, is_of_b, leaf->site), leaf->role)] - 1;
}

static void add_leaf(struct mt_job_diff *diff, struct mt_job_line_index *index, bool is_of_b,
                     const struct mt_record_leaf *leaf)
{
    uint32_t path = path_of(index, is_of_b, leaf->site);
    uint32_t *number = &index->lines[cell_of(diff, path, leaf->role)];

    if (!*number)
        *number = ++diff->line_count;
    struct mt_job_diff_line *line = &diff->lines[*number - 1];
    line->a_path = line->b_path = path;
    line->role = leaf->role;
    *(is_of_b ? &line->is_in_b : &line->is_in_a) = true;
}

static void add_rows(struct mt_job_diff *diff, struct mt_job_line_index *index, bool is_of_b)
{
    for (uint32_t i = 0; i < diff->class_count; i++) {
        const struct mt_job_class *class = &diff->classes[i];
        uint32_t count = class->is_compared ? mt_job_class_rows(class, is_of_b) : 0;

        for (uint32_t r = 0; r < count; r++) {
            const struct mt_rank_record *record = mt_job_class_record(diff, class, is_of_b, r);

            for (uint32_t k = 0; k < mt_job_leaf_count(record); k++) {
                struct mt_record_leaf leaf = mt_job_leaf(record, k);

                if (leaf.bytes)
                    add_leaf(diff, index, is_of_b, &leaf);
            }
        }
    }
}

/* Lines of B with a partner are merged with it. */
static void pair(struct mt_job_diff *diff, struct mt_job_line_index *index, struct single *singles,
                 uint32_t count)
{
    qsort(singles, count, sizeof *singles, compare_singles);
    for (uint32_t i = 0, end; i < count; i = end) {
        uint32_t of_a = 0;

        for (end = i; end < count && singles[end].loose == singles[i].loose &&
                      singles[end].role == singles[i].role;
             end++)
            of_a += !singles[end].is_of_b;
        if (of_a * 2 != end - i)
            continue;
        for (uint32_t k = i; k < i + of_a; k++) {
            const struct single *other = &singles[k + of_a];

            diff->lines[singles[k].line].b_path = other->path;
            diff->lines[singles[k].line].is_in_b = true;
            diff->lines[other->line].is_in_b = false;
            index->lines[cell_of(diff, other->path, other->role)] = singles[k].line + 1;
        }
    }
}

static void pair_moved(struct mt_job_diff *diff, struct mt_job_line_index *index)
{
    uint32_t *loose = mt_memory_new(((size_t)diff->paths.path_count + 1) * sizeof *loose),
             count = 0;
    struct single *singles = mt_memory_new(((size_t)diff->line_count + 1) * sizeof *singles);

    loosen(&diff->paths, loose);
    for (uint32_t i = 0; i < diff->line_count; i++) {
        const struct mt_job_diff_line *line = &diff->lines[i];

        if (line->is_in_a == line->is_in_b || line->a_path == MT_NO_PATH)
            continue;
        singles[count++] = (struct single){&diff->paths,        i,          line->a_path,
                                           loose[line->a_path], line->role, line->is_in_b};
    }
    if (count)
        pair(diff, index, singles, count);
    free(loose);
    free(singles);
}

/* Upper bound of the number of lines. */
static uint64_t most_lines(const struct mt_job_diff *diff)
{
    uint64_t leaves = 0, cells = ((uint64_t)diff->paths.path_count + 1) * MT_ROLE_COUNT;

    for (uint32_t i = 0; i < diff->a->row_count; i++)
        leaves += mt_job_leaf_count(diff->a->rows[i].record);
    for (uint32_t i = 0; i < diff->b->row_count; i++)
        leaves += mt_job_leaf_count(diff->b->rows[i].record);
    return mt_min_u64(leaves, cells);
}

void mt_job_diff_find_lines(struct mt_job_diff *diff, struct mt_job_line_index *index)
{
    add_tree(&diff->paths, diff->a->set, &index->a_paths);
    add_tree(&diff->paths, diff->b->set, &index->b_paths);
    uint64_t most = most_lines(diff);
    if (most >= UINT32_MAX)
        mt_memory_end();
    index->lines =
        mt_memory_zeroed((size_t)diff->paths.path_count + 1, MT_ROLE_COUNT * sizeof *index->lines);
    diff->lines = mt_arena_array(&diff->arena, (size_t)most + 1, sizeof *diff->lines);
    add_rows(diff, index, false);
    add_rows(diff, index, true);
    pair_moved(diff, index);
}

void mt_job_line_index_release(struct mt_job_line_index *index)
{
    free(index->a_paths);
    free(index->b_paths);
    free(index->lines);
    memset(index, 0, sizeof *index);
}
