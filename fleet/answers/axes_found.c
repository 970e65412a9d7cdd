/* Axes inferred from the memory of ranks. Ranks with the same parameters form a class, and classes
 * repeat over the rank numbers. The largest `block` of equal neighbors that divides the job, and
 * the smallest `period` of blocks, give
 *     rank = (outer * period + stage) * block + inner
 * in which ranks differ along `stage` only. Ranks without a class match any class. */
#include "job_axis.h"
#include "job_values.h"

#define WILD UINT32_MAX

struct classes {
    uint32_t *of_rank; /* WILD: missing, or nothing is known */
    uint32_t world, count;
};

/* A rank with several devices has several rows; the first one represents it. */
static bool is_first_of_rank(const struct mt_job_report *report, uint32_t row)
{
    return !row ||
           report->rows[row - 1].record->identity.rank != report->rows[row].record->identity.rank;
}

static void read_classes(struct mt_job_work *work, bool with_steps, struct classes *classes)
{
    const struct mt_job_report *report = work->report;
    struct mt_job_key *keys = MT_JOB_ARRAY(work, report->row_count, struct mt_job_key);
    uint32_t *of_row = MT_JOB_ARRAY(work, report->row_count, uint32_t), count = 0;

    classes->of_rank = MT_JOB_ARRAY(work, classes->world, uint32_t);
    for (uint32_t i = 0; i < classes->world; i++)
        classes->of_rank[i] = WILD;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;
        uint64_t key = !with_steps               ? report->rows[i].parameter_hash
                       : mt_job_is_whole(record) ? record->step_hash
                                                 : 0;

        if (key && record->identity.rank >= 0 && is_first_of_rank(report, i))
            keys[count++] = (struct mt_job_key){0, i, key};
    }
    classes->count = mt_job_classes_split(keys, count, of_row);
    for (uint32_t i = 0; i < count; i++)
        classes->of_rank[report->rows[keys[i].row].record->identity.rank] = of_row[keys[i].row];
}

/* *class is the class of all ranks of the block; WILD if none is known. Returns false if they
 * differ. */
static bool class_of_block(const struct classes *classes, uint32_t first, uint32_t block,
                           uint32_t *class)
{
    *class = WILD;
    for (uint32_t i = first; i < first + block; i++) {
        if (classes->of_rank[i] == WILD)
            continue;
        if (*class != WILD && *class != classes->of_rank[i])
            return false;
        *class = classes->of_rank[i];
    }
    return true;
}

static bool has_blocks(const struct classes *classes, uint32_t block)
{
    uint32_t class;

    for (uint32_t i = 0; i < classes->world; i += block)
        if (!class_of_block(classes, i, block, &class))
            return false;
    return true;
}

static bool has_period(const struct classes *classes, uint32_t block, uint32_t period)
{
    for (uint32_t stage = 0; stage < period; stage++) {
        uint32_t known = WILD;

        for (uint32_t i = stage * block; i < classes->world; i += period * block) {
            uint32_t class;

            class_of_block(classes, i, block, &class);
            if (class == WILD)
                continue;
            if (known != WILD && known != class)
                return false;
            known = class;
        }
    }
    return true;
}

/* O(world) for each divisor of world, and there are few. */
static uint32_t largest_block(const struct classes *classes)
{
    for (uint32_t count = 1; count < classes->world; count++)
        if (classes->world % count == 0 && has_blocks(classes, classes->world / count))
            return classes->world / count;
    return 1;
}

static uint32_t smallest_period(const struct classes *classes, uint32_t block)
{
    uint32_t blocks = classes->world / block;

    for (uint32_t period = 1; period < blocks; period++)
        if (blocks % period == 0 && has_period(classes, block, period))
            return period;
    return blocks;
}

static void add_axes(struct mt_job_report *report, uint32_t block, uint32_t period)
{
    uint32_t outer = report->world / block / period;

    if (outer > 1)
        mt_job_axis_add(report, block > 1 ? "replica_outer" : "replica", outer, block * period);
    mt_job_axis_add(report, "stage", period, block);
    if (block > 1)
        mt_job_axis_add(report, outer > 1 ? "replica_inner" : "replica", block, 1);
}

/* Parameters that do not repeat are still stages of a pipeline if most ranks have their own. Steps
 * differ for many reasons, such as the lengths of sequences, so they must repeat. */
static void find(struct mt_job_work *work, bool with_steps, bool *is_known)
{
    struct mt_job_report *report = work->report;
    struct classes classes = {.world = report->world};
    uint32_t block, period;
    bool repeats, has_stages;

    read_classes(work, with_steps, &classes);
    *is_known = classes.count > 0;
    if (classes.count < 2)
        return;
    block = largest_block(&classes);
    period = smallest_period(&classes, block);
    repeats = period * block < report->world;
    has_stages = block > 1 || classes.count * 2 > report->world + 1;
    if (repeats || (has_stages && !with_steps))
        add_axes(report, block, period);
}

/* Steps count only if no parameters are known: ranks with the same parameters are replicas even if
 * their steps differ. */
enum mt_status mt_job_axes_found(struct mt_job_work *work, struct mt_error *error)
{
    bool is_known;

    (void)error;
    if (work->report->world > MT_JOB_MAX_ROWS || work->report->world < 2)
        return MT_OK;
    find(work, false, &is_known);
    if (!is_known)
        find(work, true, &is_known);
    return MT_OK;
}
