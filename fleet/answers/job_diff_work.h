/* PRIVATE to fleet/answers: state that the files of the diff of two jobs share. */
#ifndef MT_FLEET_JOB_DIFF_WORK_H
#define MT_FLEET_JOB_DIFF_WORK_H

#include "job_diff.h"

/* Sums up the changes of many numbers, class by class. */
struct mt_job_tally {
    struct mt_job_change **changes;   /* the changes to fill, one for each number */
    unsigned __int128 *a, *b;         /* sums over the rows of the current class */
    __int128 *sums;                   /* sums of the changes of the classes that were closed */
    int64_t *now;                     /* changes of the class that was closed last */
    uint32_t *touched, touched_count; /* numbers that the current class has */
    bool *is_touched;
    uint32_t count;
};

/* Maps the leaves of rows to lines. */
struct mt_job_line_index {
    uint32_t *a_paths, *b_paths; /* path of the diff for each path of the jobs' sets */
    uint32_t *lines;             /* 1 + line by (path, role); 0 = none */
};

/* Fills diff->paths and diff->lines. The changes of the lines are filled later. */
void mt_job_diff_find_lines(struct mt_job_diff *diff, struct mt_job_line_index *index);
void mt_job_line_index_release(struct mt_job_line_index *index);
uint32_t mt_job_line_of(const struct mt_job_diff *diff, const struct mt_job_line_index *index,
                        bool is_of_b, const struct mt_record_leaf *leaf);

/* Compares call paths like strcmp. The order does not depend on which of the jobs is A. */
int mt_job_diff_compare_paths(const struct mt_rank_set *paths, uint32_t x, uint32_t y);

/* Fills the groups of the axes. */
void mt_job_diff_count_axes(struct mt_job_diff *diff, const struct mt_job_line_index *index);

/* Sorts lines, drops lines that were merged into another line, and updates the indexes of lines in
 * classes and groups. Sorts libraries, drops those without bytes, and fills `order`. */
void mt_job_diff_order(struct mt_job_diff *diff);

/* Fills the changes of classes, metrics, roles, lines and libraries. */
void mt_job_diff_count(struct mt_job_diff *diff, const struct mt_job_line_index *index);

static inline uint32_t mt_job_class_rows(const struct mt_job_class *class, bool is_of_b)
{
    return is_of_b ? class->b_count : class->a_count;
}

static inline const struct mt_rank_record *mt_job_class_record(const struct mt_job_diff *diff,
                                                               const struct mt_job_class *class,
                                                               bool is_of_b, uint32_t i)
{
    return is_of_b ? diff->b->rows[class->b_rows[i]].record
                   : diff->a->rows[class->a_rows[i]].record;
}

/* Returns the number of leaves of a record. A record without leaves counts as one leaf without a
 * path for each role, so leaves always sum to the allocated peak. */
static inline uint32_t mt_job_leaf_count(const struct mt_rank_record *record)
{
    return record->leaf_count ? record->leaf_count : MT_ROLE_COUNT;
}

static inline struct mt_record_leaf mt_job_leaf(const struct mt_rank_record *record, uint32_t i)
{
    if (record->leaf_count)
        return mt_leaf_at(record, i);
    return (struct mt_record_leaf){.path = MT_NO_PATH,
                                   .role = (enum mt_role)i,
                                   .bytes = record->role_bytes[i],
                                   .site = MT_NO_PATH};
}

static inline uint64_t mt_job_size_of(int64_t change)
{
    return change < 0 ? (uint64_t)-change : (uint64_t)change;
}

#endif
