/* The memory difference between two runs of a job: plain data, integers only.
 *
 * Rows of both jobs (job_report.h) are grouped into classes that should be equal. A class with rows
 * of both jobs is compared. Rows of other classes count as present in only one job. The change of a
 * class is the mean of B's rows minus the mean of A's rows, both rounded down. If rows match by
 * rank, a class has at most one row of each job, and changes are exact. The mean over several
 * classes is unweighted and rounded towards 0, so a missing rank does not shift it. Sums over rows
 * are exact: roles, sites and the groups of an axis each add up to the allocated peaks, and
 * libraries add up to the memory outside the allocator. Swapping A and B reverses every sign. */
#ifndef MT_FLEET_JOB_DIFF_H
#define MT_FLEET_JOB_DIFF_H

#include "job_report.h"

#define MT_NO_CLASS UINT32_MAX
#define MT_NO_LINE  UINT32_MAX

/* A record with more bytes than this is refused: changes fit into 64 bits. */
#define MT_JOB_DIFF_MAX_BYTES (UINT64_C(1) << 62)

enum mt_job_match {
    MT_MATCH_RANKS,      /* the same rank number and device number */
    MT_MATCH_GROUPS,     /* the same place on the axes along which ranks differ */
    MT_MATCH_PARAMETERS, /* parameters of the same sizes */
    MT_MATCH_NONE        /* nothing matches: all rows are one class */
};
const char *mt_job_match_name(enum mt_job_match match); /* "ranks", "groups", ... */

/* The change of one number, over the classes in which every row has this number. */
struct mt_job_change {
    unsigned __int128 a_sum_bytes, b_sum_bytes; /* over rows */
    uint32_t a_rows, b_rows;                    /* number of rows in the sums */
    uint32_t class_count;                       /* 0: nothing is known, and the rest is 0 */
    int64_t min_bytes, mean_bytes, max_bytes;   /* of the changes of classes */
    uint32_t min_class, max_class; /* the first of several equal ones; MT_NO_CLASS: a class without
                                      this number, which counts as 0 */
};

/* The same number of one class. */
struct mt_job_class_change {
    bool is_known;
    uint64_t a_bytes, b_bytes; /* means */
};

struct mt_job_class {
    uint32_t *a_rows, *b_rows; /* ascending */
    uint32_t a_count, b_count;
    bool is_compared;                  /* it has rows of both */
    uint32_t coordinates[MT_JOB_AXES]; /* on the axes of the diff; MT_NO_ROW */
    struct mt_job_class_change metrics[MT_JOB_METRIC_COUNT]; /* known if the class is compared */
    uint32_t line; /* the line with the largest change; MT_NO_LINE: no line changes */
    int64_t line_bytes;
};

/* The bytes of one site and one role. A site is a frame with the frame of its caller. */
struct mt_job_diff_line {
    uint32_t a_path, b_path; /* paths of the diff; they differ if the site's line number does.
                                MT_NO_PATH: blocks without a site, or too small to be kept */
    bool is_in_a, is_in_b;   /* some compared row of that job has the line */
    enum mt_role role;
    struct mt_job_change change;
};

struct mt_job_diff_library {
    const char *name; /* "" = not known; of the sets */
    struct mt_job_change change;
};

/* Classes with the same coordinate on an axis. */
struct mt_job_diff_group {
    uint32_t coordinate; /* MT_NO_ROW: not known */
    struct mt_job_change reserved, allocated;
    uint32_t line; /* the line with the largest mean change; MT_NO_LINE: no line changes */
    int64_t line_bytes;
};

struct mt_job_diff_axis {
    const char *name; /* of a report */
    uint32_t size;
    bool separates;                   /* in at least one job, ranks along the axis may differ */
    struct mt_job_diff_group *groups; /* by coordinate; the unknown one last */
    uint32_t group_count;
};

struct mt_job_diff {
    struct mt_arena arena;
    const struct mt_job_report *a, *b; /* borrowed */
    struct mt_rank_set paths;          /* the sites of both; no records */
    enum mt_job_match match;
    struct mt_job_class *classes; /* by rank and device, by coordinates or by parameters */
    uint32_t class_count, compared_count;
    uint32_t a_compared_rows, b_compared_rows;
    struct mt_job_change metrics[MT_JOB_METRIC_COUNT];
    struct mt_job_change roles[MT_ROLE_COUNT];
    struct mt_job_diff_axis *axes; /* the axes on which every compared class has one position */
    uint32_t axis_count;
    struct mt_job_diff_line *lines; /* by the size of the mean change, the largest first */
    uint32_t line_count;
    struct mt_job_diff_library *libraries; /* in the same order */
    uint32_t library_count;
    uint32_t *order; /* classes that are compared, by the size of the change of reserved peaks */
};

void mt_job_diff_free(struct mt_job_diff *diff);

/* Returns b_bytes - a_bytes of the metric, or 0 if they are not known. */
int64_t mt_job_class_change(const struct mt_job_class *class, enum mt_job_metric metric);

/* Returns true if any number of a compared class differs between A and B. */
bool mt_job_diff_has_changes(const struct mt_job_diff *diff);

/* Returns a name such as "rank 3", "pp 0, tp 1", "parameters as of rank 3 of A" or "all ranks". */
const char *mt_job_class_name(struct mt_arena *arena, const struct mt_job_diff *diff,
                              uint32_t class_index);

/* Like mt_job_site_text, for a path of the diff. */
const char *mt_job_diff_site(struct mt_arena *arena, const struct mt_job_diff *diff, uint32_t path);

#endif
