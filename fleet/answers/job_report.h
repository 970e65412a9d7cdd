/* The report about a job of many ranks: plain data, made from a set of records (rank_set.h). Text,
 * JSON, pictures and gates read nothing else.
 *
 * A row is one device of the process that counts as the rank. That process is from the last
 * restart. If several processes have the same rank, the row uses the one with the largest reserved
 * peak among the process that ended last and the processes that overlap it in time. Rows ascend by
 * rank, then by device. Rows whose rank is not known come first, and each of their processes
 * counts. Ties go to the first row. All decisions use integers, so the same set gives the same
 * report on every machine. A median of an even number of values is the lower of the middle two. */
#ifndef MT_FLEET_JOB_REPORT_H
#define MT_FLEET_JOB_REPORT_H

#include "arena.h"
#include "rank_set.h"
#include "util.h"

#define MT_NO_ROW                    UINT32_MAX
#define MT_JOB_AXES                  8
#define MT_JOB_STEPS                 512           /* buckets of steps */
#define MT_JOB_COLUMNS               512           /* time columns of a shared device */
#define MT_JOB_DEFAULT_OUTLIER_PPM   10000         /* millionths of the median of the replicas */
#define MT_JOB_DEFAULT_OUTLIER_BYTES (32 * MT_MIB) /* the minimum of that threshold */

/* A file that could not be read. */
struct mt_job_file {
    const char *path, *reason;
};

struct mt_job_options {
    const char *job;        /* as recorded, "slurm:1234"; NULL: the only job of the set */
    const char *mesh;       /* "pp:8,dp:32,tp:8", the fastest axis last; NULL: infer it */
    uint32_t outlier_ppm;   /* 0: MT_JOB_DEFAULT_OUTLIER_PPM */
    uint64_t outlier_bytes; /* 0: MT_JOB_DEFAULT_OUTLIER_BYTES */
    const struct mt_job_file *unreadable; /* copied to the report, by path */
    uint32_t unreadable_count;
};

/* A job of a set; "" = the records that name no job. */
struct mt_job_name {
    const char *name;
    uint32_t record_count;
};

/* Ranks from first to last, inclusive. */
struct mt_job_range {
    int32_t first, last;
};

/* The distribution of a number over rows. */
struct mt_job_spread {
    uint32_t count; /* 0: the rest is 0, and rows are MT_NO_ROW */
    uint64_t min, median, max, mean;
    uint32_t min_row, median_row, max_row;
};

enum mt_job_metric {
    MT_JOB_ALLOCATED, /* peaks */
    MT_JOB_RESERVED,
    MT_JOB_OUTSIDE, /* outside the framework's allocator */
    MT_JOB_NEEDED,
    MT_JOB_GROWTH /* bytes per step */
};
enum { MT_JOB_METRIC_COUNT = MT_JOB_GROWTH + 1 };

/* "allocated peak", "reserved peak", "memory outside the allocator", ... */
const char *mt_job_metric_name(enum mt_job_metric metric);
uint64_t mt_job_metric_of(const struct mt_rank_record *record, enum mt_job_metric metric);

struct mt_job_row {
    const struct mt_rank_record *record; /* of the set */
    uint32_t coordinates[MT_JOB_AXES];   /* MT_NO_ROW: unknown */
    uint32_t cluster;                    /* index; rows of a cluster should be equal */
    uint64_t parameter_hash;             /* of the record, or of its stage; 0 = not known */
};

/* A process without a row, because the row of its rank is that of another process. */
struct mt_job_duplicate {
    const struct mt_rank_record *record;
    uint32_t row; /* the row of that rank */
};

/* One start of the job's processes. */
struct mt_job_epoch {
    int32_t restart; /* 0: the first start, or not known */
    uint32_t record_count, death_count;
    uint64_t begin_t_ns, end_t_ns;
};

/* The rank that ran out of memory first. */
struct mt_job_death {
    uint32_t row;
    uint64_t t_ns, wanted_bytes, free_bytes;
    uint64_t after_ns; /* since the first rank began */
    uint32_t path;     /* site of the request; MT_NO_PATH: not known */
    uint32_t count;    /* ranks that ran out, including this one */
    /* The row of another death that may have been the first; MT_NO_ROW: none. Such a death was
     * recorded less than a second later, and not on the same host (clocks of hosts differ), or its
     * time of day is unknown. */
    uint32_t contested_row;
    bool contest_has_clock;        /* the time of day of both deaths is known */
    struct mt_job_range *followed; /* ranks that ended later by a signal, a time-out or a failure */
    uint32_t followed_ranges, followed_count;
    /* Recorded ranks whose end was not recorded. The cause is not known; for example, torchrun ends
     * ranks with SIGTERM. */
    struct mt_job_range *vanished;
    uint32_t vanished_ranges, vanished_count;
    /* Compares the reserved peaks of the other rows with the limit of this row's allocator. If the
     * allocator had no limit, compares their needed memory with the size of this row's device. */
    uint64_t limit_bytes; /* 0: not known */
    bool limit_is_device;
    uint64_t median_bytes;
    uint32_t fitting_count,
        other_count; /* number of other rows that would fit in limit_bytes, and of all other rows */
};

enum mt_axes_source {
    MT_AXES_NONE,          /* the arrangement of ranks is not known */
    MT_AXES_OPTION,        /* the user */
    MT_AXES_RECORDED,      /* MEMTRACE_MESH, memtrace_set_mesh */
    MT_AXES_GROUPS,        /* the framework's process groups */
    MT_AXES_COMMUNICATORS, /* NCCL: ranks with a communicator in common */
    MT_AXES_FOUND          /* inferred: memory repeats over the numbers of ranks */
};
const char *mt_axes_source_name(enum mt_axes_source source);

/* Rows with the same coordinate on an axis. */
struct mt_job_group {
    uint32_t coordinate;
    struct mt_job_spread reserved, allocated;
    uint64_t role_bytes[MT_ROLE_COUNT]; /* means, at the allocated peaks */
};

struct mt_job_axis {
    const char *name;
    uint32_t size, stride;       /* stride 0: not known */
    bool separates;              /* ranks along it may differ; otherwise they are replicas */
    struct mt_job_group *groups; /* by coordinate, without empty ones */
    uint32_t group_count;
    uint32_t explained_ppm; /* share of the variance of the reserved peaks that the axis explains */
    /* The group with the largest mean, compared with the mean of the means. */
    uint32_t heavy; /* index */
    uint64_t mean_bytes;
    uint32_t imbalance_ppm;  /* 50,000: the heavy group exceeds the mean by 5% */
    enum mt_role heavy_role; /* role in which the group exceeds the mean by the most bytes */
    uint64_t heavy_role_bytes;
};

/* Rows that should be equal. */
struct mt_job_cluster {
    uint32_t first_row, count;
    struct mt_job_spread reserved;
};

enum mt_outlier_cause {
    MT_OUTLIER_SITE,    /* a site holds more or less */
    MT_OUTLIER_GROWTH,  /* growth over the steps is at least half of the difference */
    MT_OUTLIER_LIBRARY, /* memory outside the allocator */
    MT_OUTLIER_UNUSED   /* reserved but not allocated */
};
const char *mt_outlier_cause_name(enum mt_outlier_cause cause);

/* A row that differs from its replicas by more than the replicas differ from each other. */
struct mt_job_outlier {
    uint32_t row, typical_row; /* typical: a replica with the median */
    uint32_t replicas;         /* including this row */
    enum mt_job_metric metric;
    bool is_less;
    uint64_t bytes, median_bytes; /* difference from the median, and the median */
    enum mt_outlier_cause cause;
    uint32_t path; /* site of the largest difference from the typical row; MT_NO_PATH: not known */
    enum mt_role role;
    uint64_t path_bytes;
    const char *library;            /* of LIBRARY; "" = not known */
    uint64_t growth_bytes_per_step; /* growth of this row minus that of the typical row */
};

/* A site over all rows, at their allocated peaks. A row without the site counts as 0 bytes. */
struct mt_job_path {
    uint32_t path; /* of the site; MT_NO_PATH: too small to be kept */
    enum mt_role role;
    unsigned __int128 sum_bytes;
    uint32_t row_count; /* rows that have it */
    uint64_t min_bytes, mean_bytes, max_bytes;
    uint32_t min_row, max_row;
};

/* Steps from first to last, matched over rows by their numbers. */
struct mt_job_step {
    int64_t first, last;
    uint32_t row_count;
    uint64_t reserved_max_bytes, reserved_min_bytes, allocated_max_bytes;
    uint32_t reserved_max_row, allocated_max_row;
};

/* A process on a device that it shares. */
struct mt_job_tenant {
    const struct mt_rank_record *record;
    uint64_t peak_t_ns;    /* of its reserved peak */
    uint64_t held_bytes;   /* at the device's peak */
    uint64_t others_bytes; /* held by the other tenants, at peak_t_ns */
    /* When the request of `refused` failed: reserved, and a lower bound of what of it was not
     * allocated. */
    uint64_t refusal_bytes, refusal_unused_bytes;
};

/* A device that several processes used at the same time. Each period in which it is used without a
 * gap is one entry. Sums count what the allocators of its processes had reserved. They are exact if
 * each process lists its levels (struct mt_record_level). Otherwise records have the largest level
 * of each column of time, and sums over processes are upper bounds. */
struct mt_job_device {
    const char *uuid, *pci, *host; /* uuid or pci may be "" */
    struct mt_job_tenant *tenants;
    uint32_t tenant_count;
    bool is_exact;
    /* Sums are exact: the tenant that ran out of memory first, while others used the device. Else
     * NULL. */
    const struct mt_job_tenant *refused;
    /* If sums are exact: the bytes of each tenant at the largest sum of each column. */
    uint64_t *tenant_columns;
    uint64_t begin_t_ns, end_t_ns;
    uint64_t *columns; /* MT_JOB_COLUMNS sums of reserved bytes */
    uint64_t peak_bytes, peak_begin_t_ns, peak_end_t_ns;
    uint64_t total_bytes; /* of the device; 0 = not known */
};

struct mt_job_report {
    struct mt_arena arena;
    const struct mt_rank_set *set; /* borrowed, with all records */
    const char *job;               /* "" = not known */

    struct mt_job_row *rows;
    uint32_t row_count;
    uint32_t seen_count; /* number of distinct ranks among the rows */
    /* Number of rows with unknown rank, which come first, and number of their processes. */
    uint32_t unranked_row_count, unranked_count;
    /* Number of ranks of the job, according to the traces or the user's mesh; at least the largest
     * rank seen + 1. */
    uint32_t world;
    bool world_is_known, worlds_differ;
    struct mt_job_range *missing;
    uint32_t missing_ranges, missing_count;
    struct mt_job_duplicate *duplicates;
    uint32_t duplicate_count;
    struct mt_job_epoch *epochs; /* the report is about the last */
    uint32_t epoch_count;
    struct mt_job_file *unreadable;
    uint32_t unreadable_count;
    uint32_t outcome_counts[MT_OUTCOME_COUNT]; /* of rows */
    uint32_t planned_count, incomplete_count, host_count;
    uint64_t lost_events;

    struct mt_job_spread reserved, allocated, needed;
    bool
        needed_is_exact; /* false: lower bounds, because a rank or an allocator's need is unknown */
    bool limit_is_known; /* every row has a known limit */
    uint64_t limit_bytes;   /* smallest allocator limit with which all rows can run */
    uint32_t imbalance_ppm; /* how far the largest reserved peak exceeds the mean */

    enum mt_axes_source axes_source;
    struct mt_job_axis *axes;
    uint32_t axis_count;
    bool axes_overlap; /* rows are spread unevenly over two axes, so their explained_ppm must not be
                          added */
    struct mt_job_cluster *clusters;
    uint32_t cluster_count;

    const struct mt_job_death *death; /* NULL: no rank ran out of memory */
    struct mt_job_outlier *outliers;  /* by bytes, largest first */
    uint32_t outlier_count;
    struct mt_job_path *paths; /* by sum, largest first */
    uint32_t path_count;
    struct mt_job_spread growth; /* over the rows whose growth was judged */
    uint32_t growing_count;
    struct mt_job_step *steps;
    uint32_t step_count;
    uint64_t step_width;           /* steps in a bucket */
    struct mt_job_device *devices; /* shared by several processes */
    uint32_t device_count;
};

/* Lists the jobs of a set in canonical form, by name. The set owns the names. O(records). */
void mt_job_names(const struct mt_rank_set *set, struct mt_arena *arena, struct mt_job_name **names,
                  uint32_t *count);

/* Returns true if a time of a record is Unix time. If not, the trace has no time of day, and the
 * time can be compared only with times of the same trace. */
bool mt_job_has_clock(uint64_t t_ns);

void mt_job_report_free(struct mt_job_report *report);

/* Returns the reserved bytes of a tenant in a column. If sums are exact, they are those at the
 * instant of the column's largest sum. The bytes of all tenants sum to `columns`. O(columns of a
 * record). */
uint64_t mt_job_tenant_bytes(const struct mt_job_device *device, uint32_t tenant, uint32_t column);

/* Returns "rank 3", or "rank 3, device 1" if the rank has several devices. If the rank is not
 * known, returns "train-77.trace" or "train-77.trace, device 1". The text is in `arena` or in the
 * set. */
const char *mt_job_row_name(struct mt_arena *arena, const struct mt_job_report *report,
                            uint32_t row);

/* Returns the innermost frame of a path, such as "step train.py:47"; "" for MT_NO_PATH. */
const char *mt_job_site(const struct mt_job_report *report, uint32_t path);

/* Like mt_job_site, with the caller: "forward linear.py:134 < step train.py:47". The text is in
 * `arena` or in the set. */
const char *mt_job_site_text(struct mt_arena *arena, const struct mt_job_report *report,
                             uint32_t path);

#endif
