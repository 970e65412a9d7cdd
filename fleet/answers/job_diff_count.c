/* The changes between two jobs: of each class, then over all of them. */
#include <string.h>

#include "job_diff_work.h"

struct counter {
    struct mt_job_diff *diff;
    const struct mt_job_line_index *index;
    struct mt_job_tally metrics, roles, lines, libraries;
    struct mt_strings names; /* of libraries; their ids are places in diff->libraries */
};

static bool is_known(const struct mt_rank_record *record, enum mt_job_metric metric)
{
    switch (metric) {
    case MT_JOB_OUTSIDE: return record->has_driver;
    case MT_JOB_NEEDED: return record->needed_is_known;
    case MT_JOB_GROWTH: return record->growth_is_judged;
    case MT_JOB_ALLOCATED:
    case MT_JOB_RESERVED: break;
    }
    return true;
}

static bool class_knows(const struct mt_job_diff *diff, const struct mt_job_class *class,
                        enum mt_job_metric metric)
{
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            if (!is_known(mt_job_class_record(diff, class, side, i), metric))
                return false;
    return true;
}

static void count_metrics(struct counter *counter, uint32_t number)
{
    struct mt_job_class *class = &counter->diff->classes[number];

    for (int m = 0; m < MT_JOB_METRIC_COUNT; m++) {
        enum mt_job_metric metric = (enum mt_job_metric)m;
        struct mt_job_class_change *change = &class->metrics[m];

        change->is_known = class_knows(counter->diff, class, metric);
        if (!change->is_known)
            continue;
        for (int side = 0; side < 2; side++)
            for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
                mt_job_tally_add(
                    &counter->metrics, (uint32_t)m, side,
                    mt_job_metric_of(mt_job_class_record(counter->diff, class, side, i), metric));
        change->a_bytes = (uint64_t)(counter->metrics.a[m] / class->a_count);
        change->b_bytes = (uint64_t)(counter->metrics.b[m] / class->b_count);
    }
    mt_job_tally_close(&counter->metrics, counter->diff, number);
}

static void count_roles(struct counter *counter, uint32_t number)
{
    const struct mt_job_class *class = &counter->diff->classes[number];

    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
                mt_job_tally_add(
                    &counter->roles, role, side,
                    mt_job_class_record(counter->diff, class, side, i)->role_bytes[role]);
    mt_job_tally_close(&counter->roles, counter->diff, number);
}

void mt_job_tally_lines(struct mt_job_tally *tally, const struct mt_job_diff *diff,
                        const struct mt_job_line_index *index, uint32_t class)
{
    const struct mt_job_class *counted = &diff->classes[class];

    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(counted, side); i++) {
            const struct mt_rank_record *record = mt_job_class_record(diff, counted, side, i);

            for (uint32_t k = 0; k < mt_job_leaf_count(record); k++) {
                struct mt_record_leaf leaf = mt_job_leaf(record, k);

                if (leaf.bytes)
                    mt_job_tally_add(tally, mt_job_line_of(diff, index, side, &leaf), side,
                                     leaf.bytes);
            }
        }
    mt_job_tally_close(tally, diff, class);
}

static void count_lines(struct counter *counter, uint32_t number)
{
    struct mt_job_class *class = &counter->diff->classes[number];
    const struct mt_job_tally *lines = &counter->lines;

    mt_job_tally_lines(&counter->lines, counter->diff, counter->index, number);
    for (uint32_t i = 0; i < lines->touched_count; i++)
        mt_job_choose_line(counter->diff, lines->touched[i], lines->now[lines->touched[i]],
                           &class->line, &class->line_bytes);
}

static uint32_t library_of(const struct counter *counter, const char *name)
{
    return mt_strings_find(&counter->names, name, strlen(name));
}

/* Memory without an owner belongs to an unknown library. */
static void add_owners(struct counter *counter, const struct mt_rank_record *record, bool is_of_b)
{
    uint64_t left = record->outside_bytes;

    for (uint32_t k = 0; k < record->owner_count; k++) {
        uint64_t bytes = mt_min_u64(record->owners[k].bytes, left);

        left -= bytes;
        mt_job_tally_add(&counter->libraries, library_of(counter, record->owners[k].library),
                         is_of_b, bytes);
    }
    if (left)
        mt_job_tally_add(&counter->libraries, library_of(counter, ""), is_of_b, left);
}

static void count_libraries(struct counter *counter, uint32_t number)
{
    const struct mt_job_class *class = &counter->diff->classes[number];

    if (!class->metrics[MT_JOB_OUTSIDE].is_known)
        return;
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < mt_job_class_rows(class, side); i++)
            add_owners(counter, mt_job_class_record(counter->diff, class, side, i), side);
    mt_job_tally_close(&counter->libraries, counter->diff, number);
}

static void find_libraries(struct counter *counter)
{
    const struct mt_job_report *reports[] = {counter->diff->a, counter->diff->b};
    uint32_t id;

    mt_strings_put(&counter->names, "", 0, &id);
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < reports[side]->row_count; i++) {
            const struct mt_rank_record *record = reports[side]->rows[i].record;

            for (uint32_t k = 0; k < record->owner_count; k++)
                mt_strings_put(&counter->names, record->owners[k].library,
                               strlen(record->owners[k].library), &id);
        }
}

static void init_libraries(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;

    find_libraries(counter);
    mt_job_tally_init(&counter->libraries, &diff->arena, counter->names.count);
    diff->libraries = mt_arena_array(&diff->arena, counter->names.count, sizeof *diff->libraries);
    diff->library_count = counter->names.count;
    for (uint32_t i = 0; i < diff->library_count; i++) {
        diff->libraries[i].name =
            mt_arena_text(&diff->arena, counter->names.texts[i], counter->names.lengths[i]);
        counter->libraries.changes[i] = &diff->libraries[i].change;
    }
}

static void init(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;

    mt_job_tally_init(&counter->metrics, &diff->arena, MT_JOB_METRIC_COUNT);
    mt_job_tally_init(&counter->roles, &diff->arena, MT_ROLE_COUNT);
    mt_job_tally_init(&counter->lines, &diff->arena, diff->line_count);
    for (int i = 0; i < MT_JOB_METRIC_COUNT; i++)
        counter->metrics.changes[i] = &diff->metrics[i];
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        counter->roles.changes[i] = &diff->roles[i];
    for (uint32_t i = 0; i < diff->line_count; i++)
        counter->lines.changes[i] = &diff->lines[i].change;
    init_libraries(counter);
}

static void count_classes(struct counter *counter)
{
    struct mt_job_diff *diff = counter->diff;
    const struct mt_job_change *outside = &diff->metrics[MT_JOB_OUTSIDE];

    for (uint32_t i = 0; i < diff->class_count; i++) {
        if (!diff->classes[i].is_compared)
            continue;
        count_metrics(counter, i);
        count_roles(counter, i);
        count_lines(counter, i);
        count_libraries(counter, i);
    }
    mt_job_tally_finish(&counter->metrics);
    mt_job_tally_finish(&counter->roles);
    mt_job_tally_finish_zeros(&counter->lines, diff->compared_count, diff->a_compared_rows,
                              diff->b_compared_rows);
    mt_job_tally_finish_zeros(&counter->libraries, outside->class_count, outside->a_rows,
                              outside->b_rows);
}

void mt_job_diff_count(struct mt_job_diff *diff, const struct mt_job_line_index *index)
{
    struct counter counter = {.diff = diff, .index = index};

    init(&counter);
    count_classes(&counter);
    mt_strings_release(&counter.names);
}
