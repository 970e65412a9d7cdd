/* The axes along which the ranks of a job are arranged, and the clusters of ranks that should be
 * equal. */
#include <string.h>

#include "job_axis.h"
#include "ascii.h"
#include "job_values.h"
#include "job_work.h"

/* Returns the kind of an axis, derived from its name. Ranks along an axis of replicas should be
 * equal; ranks along an axis of stages need not be. */
enum axis_kind { AXIS_UNNAMED, AXIS_REPLICAS, AXIS_STAGES };

bool mt_job_axis_add(struct mt_job_report *report, const char *name, uint32_t size, uint32_t stride)
{
    if (report->axis_count == MT_JOB_AXES)
        return false;
    report->axes[report->axis_count++] =
        (struct mt_job_axis){.name = name, .size = size, .stride = stride};
    return true;
}

/* Words of names of axes and process groups. */
static const struct {
    const char *word, *axis;
    enum axis_kind kind;
} words[] = {
    {"tp", "tp", AXIS_UNNAMED},         {"tensor", "tp", AXIS_UNNAMED},
    {"pp", "pp", AXIS_STAGES},          {"pipeline", "pp", AXIS_STAGES},
    {"pipe", "pp", AXIS_STAGES},        {"stage", "pp", AXIS_STAGES},
    {"cp", "cp", AXIS_UNNAMED},         {"context", "cp", AXIS_UNNAMED},
    {"ep", "ep", AXIS_UNNAMED},         {"expert", "ep", AXIS_UNNAMED},
    {"fsdp", "fsdp", AXIS_REPLICAS},    {"shard", "fsdp", AXIS_REPLICAS},
    {"dp", "dp", AXIS_REPLICAS},        {"ddp", "dp", AXIS_REPLICAS},
    {"data", "dp", AXIS_REPLICAS},      {"replica", "dp", AXIS_REPLICAS},
    {"replicate", "dp", AXIS_REPLICAS},
};

/* Index into `words` of the first word of the name that is there; -1 = none. */
static int find_word(const char *name)
{
    while (*name) {
        size_t length = 0;

        while (mt_is_letter(name[length]))
            length++;
        for (size_t i = 0; length && i < MT_ARRAY_LEN(words); i++)
            if (strlen(words[i].word) == length && !strncmp(words[i].word, name, length))
                return (int)i;
        name += length ? length : 1;
    }
    return -1;
}

static enum axis_kind job_axis_kind(const char *name)
{
    int word = find_word(name);

    return word < 0 ? AXIS_UNNAMED : words[word].kind;
}

const char *mt_job_axis_word(const char *name)
{
    int word = find_word(name);

    return word < 0 ? NULL : words[word].axis;
}

/* Clusters are rows that should be equal: they have the same parameters and the same position on
 * every axis that separates. An axis of data parallelism does not separate, an axis of pipeline
 * stages does. Any other axis separates if most lines of ranks along it differ by more than the
 * smallest difference of an outlier: a single deviating rank changes only one line. */

/* Classes of rows, refined key by key. */
struct refiner {
    const struct mt_job_report *report;
    struct mt_job_key *keys;
    uint32_t *classes, count;
};

static void begin(struct mt_job_work *work, struct refiner *refiner)
{
    uint32_t rows = work->report->row_count;

    refiner->report = work->report;
    refiner->keys = MT_JOB_ARRAY(work, rows, struct mt_job_key);
    refiner->classes = MT_JOB_ARRAY(work, rows, uint32_t);
    refiner->count = 1;
}

static void start(struct refiner *refiner)
{
    for (uint32_t i = 0; i < refiner->report->row_count; i++) {
        refiner->classes[i] = 0;
        refiner->keys[i].key = refiner->report->rows[i].parameter_hash;
    }
}

static void split(struct refiner *refiner)
{
    for (uint32_t i = 0; i < refiner->report->row_count; i++) {
        refiner->keys[i].row = i;
        refiner->keys[i].class = refiner->classes[i];
    }
    refiner->count =
        mt_job_classes_split(refiner->keys, refiner->report->row_count, refiner->classes);
}

static void split_by_axis(struct refiner *refiner, uint32_t axis)
{
    for (uint32_t i = 0; i < refiner->report->row_count; i++)
        refiner->keys[i].key = refiner->report->rows[i].coordinates[axis];
    split(refiner);
}

/* refiner->keys has the rows sorted by class. Returns how many, starting at `first`, are of one
 * class. */
static uint32_t class_length(const struct refiner *refiner, uint32_t first)
{
    uint32_t count = refiner->report->row_count, end = first;

    while (end < count &&
           refiner->classes[refiner->keys[end].row] == refiner->classes[refiner->keys[first].row])
        end++;
    return end - first;
}

/* The hash of all rows of a class whose hash is known; 0: no hash is known, or they differ. */
static uint64_t hash_of_class(const struct refiner *refiner, uint32_t first, uint32_t length)
{
    uint64_t hash = 0;

    for (uint32_t i = first; i < first + length; i++) {
        uint64_t other = refiner->report->rows[refiner->keys[i].row].parameter_hash;

        if (hash && other && other != hash)
            return 0;
        hash = other ? other : hash;
    }
    return hash;
}

/* A row whose parameters are not known gets those of its stage, so that a rank that ran out of
 * memory is compared with the ranks that did not. If it has no rank, or the stage does not have one
 * hash, it keeps its own. */
static void guess_parameters(struct mt_job_report *report, struct refiner *refiner)
{
    memset(refiner->classes, 0, report->row_count * sizeof *refiner->classes);
    for (uint32_t i = 0; i < report->row_count; i++)
        refiner->keys[i].key = 0;
    split(refiner);
    for (uint32_t a = 0; a < report->axis_count; a++)
        if (job_axis_kind(report->axes[a].name) == AXIS_STAGES)
            split_by_axis(refiner, a);
    for (uint32_t i = 0, length; i < report->row_count; i += length) {
        length = class_length(refiner, i);
        uint64_t hash = hash_of_class(refiner, i, length);
        for (uint32_t k = i; k < i + length; k++) {
            struct mt_job_row *row = &report->rows[refiner->keys[k].row];

            if (!mt_job_is_whole(row->record))
                row->parameter_hash =
                    hash && row->record->identity.rank >= 0 ? hash : row->record->parameter_hash;
        }
    }
}

/* The spread of the reserved peaks of a class. Leaves them in work->values, sorted. */
static struct mt_job_spread spread_of_class(struct mt_job_work *work, const struct refiner *refiner,
                                            uint32_t first, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        uint32_t row = refiner->keys[first + i].row;

        work->values[i] = (struct mt_job_value){
            mt_job_metric_of(work->report->rows[row].record, MT_JOB_RESERVED), row};
    }
    return mt_job_spread_of(work->values, length);
}

/* Whether most of the lines along the axis differ. With fewer than three lines a single rank could
 * decide, so half of a line must be away from its median. */
static void judge(struct mt_job_work *work, struct refiner *refiner, uint32_t axis)
{
    struct mt_job_report *report = work->report;
    struct mt_job_value *lines = MT_JOB_ARRAY(work, report->row_count, struct mt_job_value);
    uint32_t count = 0;
    bool is_far = false;

    start(refiner);
    split(refiner);
    for (uint32_t a = 0; a < report->axis_count; a++)
        if (a != axis)
            split_by_axis(refiner, a);
    for (uint32_t i = 0, length; i < report->row_count; i += length) {
        length = class_length(refiner, i);
        if (length < 2)
            continue;
        struct mt_job_spread spread = spread_of_class(work, refiner, i, length);
        lines[count] = (struct mt_job_value){spread.max - spread.min, count};
        count++;
        is_far |= mt_job_distance(work->values, length, spread.median) > work->outlier_bytes;
    }
    if (count >= 3)
        is_far = mt_job_spread_of(lines, count).median > work->outlier_bytes;
    report->axes[axis].separates = is_far;
}

static void find_separating(struct mt_job_work *work, struct refiner *refiner)
{
    struct mt_job_report *report = work->report;

    for (uint32_t a = 0; a < report->axis_count; a++) {
        enum axis_kind kind = job_axis_kind(report->axes[a].name);

        report->axes[a].separates = kind == AXIS_STAGES;
        if (kind == AXIS_UNNAMED)
            judge(work, refiner, a);
    }
}

static void fill(struct mt_job_work *work, struct refiner *refiner)
{
    struct mt_job_report *report = work->report;

    report->clusters = MT_JOB_ARRAY(work, refiner->count, struct mt_job_cluster);
    for (uint32_t i = 0, length; i < report->row_count; i += length) {
        uint32_t first = refiner->keys[i].row;

        length = class_length(refiner, i);
        for (uint32_t k = 0; k < length; k++)
            report->rows[refiner->keys[i + k].row].cluster = report->cluster_count;
        report->clusters[report->cluster_count++] =
            (struct mt_job_cluster){first, length, spread_of_class(work, refiner, i, length)};
    }
}

void mt_job_find_clusters(struct mt_job_work *work)
{
    struct refiner refiner;

    begin(work, &refiner);
    guess_parameters(work->report, &refiner);
    find_separating(work, &refiner);
    start(&refiner);
    split(&refiner);
    for (uint32_t a = 0; a < work->report->axis_count; a++)
        if (work->report->axes[a].separates)
            split_by_axis(&refiner, a);
    fill(work, &refiner);
}
