/* What each call path holds at the allocated peaks, over all rows. A row without a path counts with
 * 0 bytes. */
#include <stdlib.h>

#include "job_work.h"

/* Bytes by path and role; the last path is MT_NO_PATH. */
static size_t cell_of(const struct mt_job_work *work, const struct mt_record_leaf *leaf)
{
    size_t path = leaf->path == MT_NO_PATH ? work->set->path_count : leaf->path;

    return path * MT_ROLE_COUNT + (size_t)leaf->role;
}

/* Rows ascend, so the first of several equal rows stays. */
static void add_leaf(struct mt_job_path *path, const struct mt_record_leaf *leaf, uint32_t row)
{
    if (!path->row_count || leaf->bytes < path->min_bytes) {
        path->min_bytes = leaf->bytes;
        path->min_row = row;
    }
    if (!path->row_count || leaf->bytes > path->max_bytes) {
        path->max_bytes = leaf->bytes;
        path->max_row = row;
    }
    path->path = leaf->path;
    path->role = leaf->role;
    path->sum_bytes += leaf->bytes;
    path->row_count++;
}

/* The first row without a path has the minimum, 0 bytes. To find it in one walk over the rows, each
 * path remembers the row after the last one that had it. */
struct seen {
    uint32_t next_row;   /* the row after the last one that has it */
    uint32_t absent_row; /* the first that lacks it; MT_NO_ROW */
};

static void see(struct seen *seen, uint32_t row)
{
    if (seen->next_row < row && seen->absent_row == MT_NO_ROW)
        seen->absent_row = seen->next_row;
    seen->next_row = row + 1;
}

static int compare_paths(const void *a, const void *b)
{
    const struct mt_job_path *one = a, *other = b;

    if (one->sum_bytes != other->sum_bytes)
        return one->sum_bytes > other->sum_bytes ? -1 : 1;
    if (one->path != other->path)
        return one->path < other->path ? -1 : 1;
    return one->role < other->role ? -1 : one->role > other->role;
}

static void finish(const struct mt_job_report *report, const struct seen *seen,
                   struct mt_job_path *path)
{
    uint32_t absent = seen->absent_row;

    if (absent == MT_NO_ROW && seen->next_row < report->row_count)
        absent = seen->next_row;
    if (absent != MT_NO_ROW && path->min_bytes) {
        path->min_bytes = 0;
        path->min_row = absent;
    }
    path->mean_bytes = (uint64_t)(path->sum_bytes / report->row_count);
}

/* The cells that are in use, by number of the cell. */
struct cells {
    uint32_t *index; /* of a cell: 1 + its path in the report, 0 = none yet */
    struct seen *seen;
};

static enum mt_status add_rows(struct mt_job_work *work, struct cells *cells)
{
    struct mt_job_report *report = work->report;

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_rank_record *record = report->rows[r].record;

        for (uint32_t i = 0; i < record->leaf_count; i++) {
            uint32_t *index = &cells->index[cell_of(work, &record->leaves[i])];

            if (!*index) {
                *index = ++report->path_count;
                cells->seen[*index - 1] = (struct seen){0, MT_NO_ROW};
            }
            see(&cells->seen[*index - 1], r);
            add_leaf(&report->paths[*index - 1], &record->leaves[i], r);
        }
    }
    return MT_OK;
}

/* An upper bound of the number of cells in use. */
static uint64_t most_paths(const struct mt_job_work *work)
{
    uint64_t leaves = 0, cells = ((uint64_t)work->set->path_count + 1) * MT_ROLE_COUNT;

    for (uint32_t r = 0; r < work->report->row_count; r++)
        leaves += work->report->rows[r].record->leaf_count;
    return mt_min_u64(leaves, cells);
}

enum mt_status mt_job_find_paths(struct mt_job_work *work, struct mt_error *error)
{
    struct mt_job_report *report = work->report;
    uint64_t most = most_paths(work);
    struct cells cells;
    enum mt_status status = MT_ERR_MEMORY;

    (void)error;
    report->paths = MT_JOB_ARRAY(work, most, struct mt_job_path);
    cells.index = calloc((size_t)work->set->path_count + 1, MT_ROLE_COUNT * sizeof *cells.index);
    cells.seen = calloc((size_t)most + 1, sizeof *cells.seen);
    if (report->paths && cells.index && cells.seen && most < UINT32_MAX)
        status = add_rows(work, &cells);
    for (uint32_t i = 0; i < report->path_count && status == MT_OK; i++)
        finish(report, &cells.seen[i], &report->paths[i]);
    if (report->path_count)
        qsort(report->paths, report->path_count, sizeof *report->paths, compare_paths);
    free(cells.index);
    free(cells.seen);
    return status;
}
