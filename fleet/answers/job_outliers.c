/* Ranks that differ from their replicas.
 *
 * A row is an outlier if its distance from the median of its cluster is larger than the smallest
 * relevant difference and larger than six times the median distance. The second rule excludes
 * replicas that naturally vary. With two replicas, the one that has more is an outlier, because it
 * is unknown which of them is usual.
 *
 * A row that ended early or whose trace is incomplete may have less than the others: that alone
 * does not make it an outlier. A row that leaves memory behind in each step is judged by the sum
 * over its steps, whatever made its peak. */
#include <stdlib.h>
#include <string.h>

#include "job_values.h"
#include "job_work.h"
#include "sorted.h"

/* The first death: when one rank runs out of memory, the others wait for it until they time out. */

/* Clocks of two hosts may differ by this much. */
#define CLOCK_DOUBT_NS UINT64_C(1000000000)

static bool has_clock(const struct mt_rank_record *record)
{
    return mt_job_has_clock(record->death_t_ns);
}

static bool is_earlier(const struct mt_rank_record *record, const struct mt_rank_record *other)
{
    if (has_clock(record) != has_clock(other))
        return has_clock(record);
    return record->death_t_ns < other->death_t_ns;
}

/* The earliest death, in the first row among equals. */
static uint32_t first_death(const struct mt_job_report *report)
{
    uint32_t first = MT_NO_ROW;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (record->has_death &&
            (first == MT_NO_ROW || is_earlier(record, report->rows[first].record)))
            first = i;
    }
    return first;
}

static bool is_of_one_trace(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return *a->trace_sha256 && !strcmp(a->trace_sha256, b->trace_sha256);
}

static bool is_of_one_host(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    return *a->identity.host && !strcmp(a->identity.host, b->identity.host);
}

/* Whether a death that is not the earliest by its number may have been the first. */
static bool may_be_first(const struct mt_rank_record *record, const struct mt_rank_record *first)
{
    if (is_of_one_trace(record, first))
        return false;
    if (!has_clock(record))
        return true;
    return !is_of_one_host(record, first) &&
           record->death_t_ns - first->death_t_ns < CLOCK_DOUBT_NS;
}

/* Counts a rank once, even if several of its devices ran out. Rows ascend by rank. */
static void find_others(const struct mt_job_report *report, struct mt_job_death *death)
{
    const struct mt_rank_record *first = report->rows[death->row].record, *nearest = NULL;
    int32_t before = -1;

    death->contested_row = MT_NO_ROW;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (!record->has_death)
            continue;
        death->count += record->identity.rank < 0 || record->identity.rank != before;
        before = record->identity.rank;
        if (i == death->row || !may_be_first(record, first) ||
            (nearest && !is_earlier(record, nearest)))
            continue;
        nearest = record;
        death->contested_row = i;
    }
    death->contest_has_clock = nearest && has_clock(nearest);
}

/* From the first begin of a rank. Without a clock, times of different traces do not compare. */
static uint64_t run_time_ns(const struct mt_job_report *report, const struct mt_rank_record *first)
{
    uint64_t begin_t_ns = first->begin_t_ns;

    for (uint32_t i = 0; i < report->row_count && has_clock(first); i++) {
        uint64_t other_t_ns = report->rows[i].record->begin_t_ns;

        if (mt_job_has_clock(other_t_ns))
            begin_t_ns = mt_min_u64(begin_t_ns, other_t_ns);
    }
    return mt_sub_or_0_u64(first->death_t_ns, begin_t_ns);
}

/* Whether the process failed later, for another reason than memory. */
static bool followed(const struct mt_rank_record *record, uint64_t death_t_ns)
{
    const struct mt_record_identity *identity = &record->identity;
    uint64_t ended_t_ns = identity->ended_t_ns ? identity->ended_t_ns : record->end_t_ns;

    return !record->has_death && identity->rank >= 0 && ended_t_ns >= death_t_ns &&
           (record->outcome == MT_OUTCOME_FAILED || record->outcome == MT_OUTCOME_KILLED);
}

/* Recorded, and gone without an exit that the recorder saw. */
static bool vanished(const struct mt_rank_record *record, uint64_t death_t_ns)
{
    (void)death_t_ns;
    return !record->has_death && record->identity.rank >= 0 && *record->identity.boot_id &&
           record->identity.ended == MT_ENDED_UNKNOWN && record->outcome == MT_OUTCOME_UNKNOWN;
}

/* Ranks for which `is_one` is true, each once, except those that ran out of memory on any device.
 * Rows ascend by rank. */
static void find_ranks(struct mt_job_work *work, const struct mt_job_death *death,
                       bool (*is_one)(const struct mt_rank_record *, uint64_t),
                       struct mt_job_range **ranges, uint32_t *range_count, uint32_t *count)
{
    const struct mt_job_report *report = work->report;

    *ranges = MT_JOB_ARRAY(work, report->row_count, struct mt_job_range);
    if (!has_clock(report->rows[death->row].record))
        return; /* nothing is known to be later */
    for (uint32_t i = 0, end; i < report->row_count; i = end) {
        int32_t rank = report->rows[i].record->identity.rank;
        bool died = false, found = false;

        for (end = i; end < report->row_count; end++) {
            const struct mt_rank_record *record = report->rows[end].record;

            if (record->identity.rank != rank)
                break;
            died |= record->has_death;
            found |= is_one(record, death->t_ns);
        }
        if (died || !found)
            continue;
        ++*count;
        mt_job_range_add(*ranges, range_count, rank);
    }
}

/* Whether the others would have fitted where this one ran out of memory. Their peaks are from their
 * own runs, which this death may have cut short. */
static void find_fitting(struct mt_job_work *work, struct mt_job_death *death)
{
    const struct mt_job_report *report = work->report;
    const struct mt_rank_record *first = report->rows[death->row].record;
    uint32_t count = 0;

    death->limit_is_device = !first->identity.memory_limit_bytes;
    death->limit_bytes =
        death->limit_is_device ? first->device_bytes : first->identity.memory_limit_bytes;
    for (uint32_t i = 0; i < report->row_count; i++) {
        uint64_t bytes = mt_job_metric_of(report->rows[i].record,
                                          death->limit_is_device ? MT_JOB_NEEDED : MT_JOB_RESERVED);

        if (i == death->row)
            continue;
        work->values[count++] = (struct mt_job_value){bytes, i};
        death->fitting_count += bytes <= death->limit_bytes;
    }
    death->other_count = count;
    death->median_bytes = mt_job_spread_of(work->values, count).median;
}

void mt_job_find_death(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t row = first_death(report);

    if (row == MT_NO_ROW)
        return;
    struct mt_job_death *death = MT_JOB_ARRAY(work, 1, struct mt_job_death);
    const struct mt_rank_record *record = report->rows[row].record;
    *death = (struct mt_job_death){.row = row,
                                   .t_ns = record->death_t_ns,
                                   .after_ns = run_time_ns(report, record),
                                   .wanted_bytes = record->death_wanted_bytes,
                                   .free_bytes = record->death_free_bytes,
                                   .path = record->death_site};
    report->death = death;
    find_others(report, death);
    find_fitting(work, death);
    find_ranks(work, death, followed, &death->followed, &death->followed_ranges,
               &death->followed_count);
    find_ranks(work, death, vanished, &death->vanished, &death->vanished_ranges,
               &death->vanished_count);
}

/* Memory that a device must have for each rank as it ran. */

static struct mt_job_spread spread_of(struct mt_job_work *work, enum mt_job_metric metric)
{
    const struct mt_job_report *report = work->report;

    for (uint32_t i = 0; i < report->row_count; i++)
        work->values[i] =
            (struct mt_job_value){mt_job_metric_of(report->rows[i].record, metric), i};
    return mt_job_spread_of(work->values, report->row_count);
}

/* The smallest limit that serves every rank is the largest of their limits. */
static void find_limit(struct mt_job_report *report)
{
    report->limit_is_known = report->row_count > 0;
    report->needed_is_exact =
        report->row_count > 0 && !report->missing_count && !report->unreadable_count;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        report->needed_is_exact &= record->needed_is_known && record->is_complete;
        report->limit_is_known &= record->allocator_need_is_known;
        if (record->allocator_need_is_known)
            report->limit_bytes = mt_max_u64(report->limit_bytes, record->allocator_need_bytes);
    }
}

/* Returns the smallest relevant difference between replicas, for values around `median`. */
static uint64_t job_least_difference(const struct mt_job_options *options, uint64_t median)
{
    uint32_t ppm = options->outlier_ppm ? options->outlier_ppm : MT_JOB_DEFAULT_OUTLIER_PPM;
    uint64_t bytes = options->outlier_bytes ? options->outlier_bytes : MT_JOB_DEFAULT_OUTLIER_BYTES;
    unsigned __int128 share = (unsigned __int128)median * ppm / 1000000;

    return share > bytes ? (uint64_t)(share < UINT64_MAX ? share : UINT64_MAX) : bytes;
}

void mt_job_find_needs(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;

    report->reserved = spread_of(work, MT_JOB_RESERVED);
    report->allocated = spread_of(work, MT_JOB_ALLOCATED);
    report->needed = spread_of(work, MT_JOB_NEEDED);
    find_limit(report);
    if (report->reserved.mean)
        report->imbalance_ppm =
            mt_job_ppm(report->reserved.max - report->reserved.mean, report->reserved.mean);
    work->outlier_bytes = job_least_difference(work->options, report->reserved.median);
}

enum { DISTANCES = 6, FEWEST_REPLICAS = 2 };

static const enum mt_job_metric metrics[] = {MT_JOB_ALLOCATED, MT_JOB_RESERVED, MT_JOB_OUTSIDE,
                                             MT_JOB_GROWTH};

/* Rows of a cluster, with the median and tolerance of each metric. */
struct replicas {
    const uint32_t *rows;
    uint32_t count;
    uint64_t median[MT_ARRAY_LEN(metrics)], tolerance[MT_ARRAY_LEN(metrics)];
    uint32_t median_row[MT_ARRAY_LEN(metrics)];
    uint32_t known[MT_ARRAY_LEN(metrics)]; /* rows with a known value of the metric */
};

/* Whether the record has the value. Without driver calls, samples may provide it. */
static bool knows(const struct mt_rank_record *record, enum mt_job_metric metric)
{
    if (metric == MT_JOB_OUTSIDE)
        return record->has_driver || record->outside_bytes;
    return metric != MT_JOB_GROWTH || record->growth_is_judged;
}

/* The value of a row: for growth, the total that its steps left behind. */
static uint64_t amount_of(const struct mt_rank_record *record, enum mt_job_metric metric)
{
    uint64_t value = mt_job_metric_of(record, metric), steps = 0;

    if (metric != MT_JOB_GROWTH)
        return value;
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step step = mt_step_at(record, i);

        steps = mt_add_most_u64(steps, (uint64_t)step.last - (uint64_t)step.first + 1);
    }
    return mt_mul_most_u64(value, steps);
}

static void judge_replicas(struct mt_job_work *work, struct replicas *replicas)
{
    for (size_t m = 0; m < MT_ARRAY_LEN(metrics); m++) {
        uint32_t known = 0;

        for (uint32_t i = 0; i < replicas->count; i++) {
            const struct mt_rank_record *record = work->report->rows[replicas->rows[i]].record;

            if (knows(record, metrics[m]))
                work->values[known++] =
                    (struct mt_job_value){amount_of(record, metrics[m]), replicas->rows[i]};
        }
        replicas->known[m] = known;
        if (known < FEWEST_REPLICAS)
            continue;
        struct mt_job_spread spread = mt_job_spread_of(work->values, known);
        /* The distance of two replicas shows nothing about what is usual. */
        uint64_t distance = known > 2 ? mt_job_distance(work->values, known, spread.median) : 0;
        replicas->median[m] = spread.median;
        replicas->median_row[m] = spread.median_row;
        replicas->tolerance[m] = mt_max_u64(job_least_difference(work->options, spread.median),
                                            mt_mul_most_u64(distance, DISTANCES));
    }
}

/* Whether the record may lack memory that a complete run of the rank would have had. */
static bool may_lack_memory(const struct mt_rank_record *record)
{
    return !record->is_complete ||
           (record->outcome != MT_OUTCOME_FINISHED && record->outcome != MT_OUTCOME_UNKNOWN);
}

/* The metric in which the row is farthest from its replicas; false if it is near in all. */
static bool is_outlier(const struct mt_job_report *report, const struct replicas *replicas,
                       uint32_t row, struct mt_job_outlier *outlier)
{
    const struct mt_rank_record *record = report->rows[row].record;

    *outlier = (struct mt_job_outlier){.row = row, .path = MT_NO_PATH, .library = ""};
    for (size_t m = 0; m < MT_ARRAY_LEN(metrics); m++) {
        uint64_t value = amount_of(record, metrics[m]), median = replicas->median[m];
        uint64_t bytes = value > median ? value - median : median - value;

        if (replicas->known[m] < FEWEST_REPLICAS || !knows(record, metrics[m]))
            continue;
        if (bytes <= replicas->tolerance[m] || bytes <= outlier->bytes ||
            (value < median && may_lack_memory(record)))
            continue;
        outlier->metric = metrics[m];
        outlier->replicas = replicas->known[m];
        outlier->is_less = value < median;
        outlier->bytes = bytes;
        outlier->median_bytes = median;
        outlier->typical_row = replicas->median_row[m];
    }
    return outlier->bytes > 0;
}

/* Bytes of two records by site; roles of a site are added up. All zero between uses. */
struct difference {
    uint64_t *more, *less; /* bytes of the one record, and of the other */
    uint32_t path_count;
};

static uint64_t *cell(struct difference *difference, uint64_t *bytes, uint32_t path)
{
    return &bytes[path == MT_NO_PATH ? difference->path_count : path];
}

static void add_leaves(struct difference *difference, uint64_t *bytes,
                       const struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < record->leaf_count; i++) {
        const struct mt_record_leaf leaf = mt_leaf_at(record, i);

        *cell(difference, bytes, leaf.site) += leaf.bytes;
    }
}

static void clear_leaves(struct difference *difference, const struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < record->leaf_count; i++)
        *cell(difference, difference->more, mt_leaf_at(record, i).site) =
            *cell(difference, difference->less, mt_leaf_at(record, i).site) = 0;
}

/* Finds the site in which `more` exceeds `less` by most. */
static void find_path(struct difference *difference, const struct mt_rank_record *more,
                      const struct mt_rank_record *less, struct mt_job_outlier *outlier)
{
    add_leaves(difference, difference->more, more);
    add_leaves(difference, difference->less, less);
    for (uint32_t i = 0; i < more->leaf_count; i++) {
        const struct mt_record_leaf leaf = mt_leaf_at(more, i);
        uint64_t bytes = mt_sub_or_0_u64(*cell(difference, difference->more, leaf.site),
                                         *cell(difference, difference->less, leaf.site));

        if (bytes <= outlier->path_bytes)
            continue;
        outlier->path = leaf.site;
        outlier->role = leaf.role;
        outlier->path_bytes = bytes;
    }
    clear_leaves(difference, more);
    clear_leaves(difference, less);
}

static uint64_t bytes_of_library(const struct mt_rank_record *record, const char *library)
{
    for (uint32_t i = 0; i < record->owner_count; i++)
        if (!strcmp(record->owners[i].library, library))
            return record->owners[i].bytes;
    return 0;
}

static void find_library(const struct mt_rank_record *more, const struct mt_rank_record *less,
                         struct mt_job_outlier *outlier)
{
    outlier->cause = MT_OUTLIER_LIBRARY;
    for (uint32_t i = 0; i < more->owner_count; i++) {
        uint64_t bytes =
            mt_sub_or_0_u64(more->owners[i].bytes, bytes_of_library(less, more->owners[i].library));

        if (bytes <= outlier->path_bytes)
            continue;
        outlier->path_bytes = bytes;
        outlier->library = more->owners[i].library;
    }
}

/* The excess of memory left behind per step over the typical row; 0 if it was not judged on
 * both. */
static uint64_t more_growth(const struct mt_rank_record *own, const struct mt_rank_record *typical)
{
    return own->growth_is_judged && typical->growth_is_judged
               ? mt_sub_or_0_u64(own->growth_bytes_per_step, typical->growth_bytes_per_step)
               : 0;
}

/* Whether growth over all steps makes up at least half of the difference. */
static bool is_growth(const struct mt_rank_record *own, const struct mt_job_outlier *outlier)
{
    uint64_t steps = 0;

    if (own->step_count)
        steps = (uint64_t)mt_step_at(own, own->step_count - 1).last -
                (uint64_t)mt_step_at(own, 0).first;
    return !outlier->is_less && outlier->growth_bytes_per_step &&
           mt_mul_most_u64(outlier->growth_bytes_per_step, mt_add_most_u64(steps, 1)) >=
               outlier->bytes / 2;
}

/* Finds the cause of the difference, in comparison with a replica that has the median. */
static void explain(const struct mt_job_report *report, struct difference *difference,
                    struct mt_job_outlier *outlier)
{
    const struct mt_rank_record *own = report->rows[outlier->row].record;
    const struct mt_rank_record *typical = report->rows[outlier->typical_row].record;
    const struct mt_rank_record *more = outlier->is_less ? typical : own;
    const struct mt_rank_record *less = outlier->is_less ? own : typical;
    uint64_t allocated = mt_sub_or_0_u64(more->allocated_peak.bytes, less->allocated_peak.bytes);

    outlier->growth_bytes_per_step = more_growth(own, typical);
    if (outlier->metric == MT_JOB_OUTSIDE) {
        find_library(more, less, outlier);
    } else if (outlier->metric == MT_JOB_GROWTH) {
        outlier->cause = MT_OUTLIER_GROWTH;
        outlier->path = more->growth_site;
        outlier->path_bytes = outlier->bytes;
    } else if (allocated < outlier->bytes / 2) {
        outlier->cause = MT_OUTLIER_UNUSED;
    } else {
        outlier->cause = is_growth(own, outlier) ? MT_OUTLIER_GROWTH : MT_OUTLIER_SITE;
        find_path(difference, more, less, outlier);
    }
}

/* Rows by cluster. */
static uint32_t *sort_by_cluster(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t *rows = MT_JOB_ARRAY(work, report->row_count, uint32_t);

    for (uint32_t i = 0; i < report->row_count; i++)
        work->values[i] = (struct mt_job_value){report->rows[i].cluster, i};
    mt_job_values_sort(work->values, report->row_count);
    for (uint32_t i = 0; i < report->row_count; i++)
        rows[i] = work->values[i].row;
    return rows;
}

MT_DEFINE_ORDER(compare_outliers, struct mt_job_outlier, MT_DESCENDING(bytes) || MT_ASCENDING(row))

void mt_job_find_outliers(struct mt_job_work *work)
{
    struct mt_job_report *report = work->report;
    uint32_t *rows = sort_by_cluster(work);
    struct difference difference = {MT_JOB_ARRAY(work, work->set->path_count, uint64_t),
                                    MT_JOB_ARRAY(work, work->set->path_count, uint64_t),
                                    work->set->path_count};

    report->outliers = MT_JOB_ARRAY(work, report->row_count, struct mt_job_outlier);
    for (uint32_t c = 0, first = 0; c < report->cluster_count;
         first += report->clusters[c++].count) {
        struct replicas replicas = {.rows = rows + first, .count = report->clusters[c].count};

        if (replicas.count < FEWEST_REPLICAS)
            continue;
        judge_replicas(work, &replicas);
        for (uint32_t i = 0; i < replicas.count; i++) {
            struct mt_job_outlier *outlier = &report->outliers[report->outlier_count];

            if (!is_outlier(report, &replicas, replicas.rows[i], outlier))
                continue;
            explain(report, &difference, outlier);
            report->outlier_count++;
        }
    }
    if (report->outlier_count)
        qsort(report->outliers, report->outlier_count, sizeof *report->outliers, compare_outliers);
}
