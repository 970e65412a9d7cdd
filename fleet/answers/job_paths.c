/* The bytes of each site at the allocated peaks, over all rows. A row without a site counts with 0
 * bytes. */
#include <stdlib.h>

#include "job_work.h"
#include "process_memory.h"

/* By site and role; the last site is MT_NO_PATH. */
static size_t cell_of(const struct mt_job_work *work, const struct mt_record_leaf *leaf)
{
    size_t site = leaf->site == MT_NO_PATH ? work->set->path_count : leaf->site;

    return site * MT_ROLE_COUNT + (size_t)leaf->role;
}

/* The first row without a site has the minimum, 0 bytes. To find it in one pass over the rows, each
 * site records the row after the last one that had it. */
struct seen {
    uint32_t next_row;   /* the row after the last one that has it */
    uint32_t absent_row; /* the first that lacks it; MT_NO_ROW */
    uint64_t row_bytes;  /* of the row that is added: call paths of one site are one */
};

static void see(struct seen *seen, uint32_t row)
{
    if (seen->next_row < row && seen->absent_row == MT_NO_ROW)
        seen->absent_row = seen->next_row;
    seen->next_row = row + 1;
}

/* Rows ascend, so the first among equals stays. */
static void add_row(struct mt_job_path *path, struct seen *seen, uint32_t row)
{
    uint64_t bytes = seen->row_bytes;

    if (!bytes)
        return; /* another leaf of the row has added it */
    see(seen, row);
    if (!path->row_count || bytes < path->min_bytes) {
        path->min_bytes = bytes;
        path->min_row = row;
    }
    if (!path->row_count || bytes > path->max_bytes) {
        path->max_bytes = bytes;
        path->max_row = row;
    }
    path->sum_bytes += bytes;
    path->row_count++;
    seen->row_bytes = 0;
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

static uint32_t index_of(struct mt_job_work *work, struct cells *cells,
                         const struct mt_record_leaf *leaf)
{
    uint32_t *index = &cells->index[cell_of(work, leaf)];

    if (!*index) {
        struct mt_job_path *path = &work->report->paths[work->report->path_count];

        path->path = leaf->site;
        path->role = leaf->role;
        cells->seen[work->report->path_count] = (struct seen){0, MT_NO_ROW, 0};
        *index = ++work->report->path_count;
    }
    return *index - 1;
}

static void add_rows(struct mt_job_work *work, struct cells *cells)
{
    struct mt_job_report *report = work->report;

    for (uint32_t r = 0; r < report->row_count; r++) {
        const struct mt_rank_record *record = report->rows[r].record;

        for (uint32_t i = 0; i < record->leaf_count; i++)
            cells->seen[index_of(work, cells, &record->leaves[i])].row_bytes +=
                record->leaves[i].bytes;
        for (uint32_t i = 0; i < record->leaf_count; i++) {
            uint32_t index = index_of(work, cells, &record->leaves[i]);

            add_row(&report->paths[index], &cells->seen[index], r);
        }
    }
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

    if (most >= UINT32_MAX)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "too many call paths");
    report->paths = MT_JOB_ARRAY(work, most, struct mt_job_path);
    cells.index =
        mt_memory_zeroed((size_t)work->set->path_count + 1, MT_ROLE_COUNT * sizeof *cells.index);
    cells.seen = mt_memory_zeroed((size_t)most + 1, sizeof *cells.seen);
    add_rows(work, &cells);
    for (uint32_t i = 0; i < report->path_count; i++)
        finish(report, &cells.seen[i], &report->paths[i]);
    if (report->path_count)
        qsort(report->paths, report->path_count, sizeof *report->paths, compare_paths);
    free(cells.index);
    free(cells.seen);
    return MT_OK;
}
