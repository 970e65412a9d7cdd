/* Sums and changes of many numbers, class by class. */
#include "job_diff_work.h"

void mt_job_tally_init(struct mt_job_tally *tally, struct mt_arena *arena, uint32_t count)
{
    size_t room = (size_t)count + 1;

    *tally = (struct mt_job_tally){.count = count};
    tally->changes = mt_arena_array(arena, room, sizeof *tally->changes);
    tally->a = mt_arena_array(arena, room, sizeof *tally->a);
    tally->b = mt_arena_array(arena, room, sizeof *tally->b);
    tally->sums = mt_arena_array(arena, room, sizeof *tally->sums);
    tally->now = mt_arena_array(arena, room, sizeof *tally->now);
    tally->touched = mt_arena_array(arena, room, sizeof *tally->touched);
    tally->is_touched = mt_arena_array(arena, room, sizeof *tally->is_touched);
}

static void forget_last(struct mt_job_tally *tally)
{
    for (uint32_t i = 0; i < tally->touched_count; i++) {
        uint32_t number = tally->touched[i];

        if (tally->is_touched[number])
            return; /* a class is open */
        tally->a[number] = tally->b[number] = 0;
    }
    tally->touched_count = 0;
}

void mt_job_tally_add(struct mt_job_tally *tally, uint32_t number, bool is_of_b, uint64_t bytes)
{
    forget_last(tally);
    if (!tally->is_touched[number]) {
        tally->is_touched[number] = true;
        tally->touched[tally->touched_count++] = number;
    }
    *(is_of_b ? &tally->b[number] : &tally->a[number]) += bytes;
}

static void add_change(struct mt_job_change *change, int64_t bytes, uint32_t class)
{
    if (!change->class_count || bytes < change->min_bytes) {
        change->min_bytes = bytes;
        change->min_class = class;
    }
    if (!change->class_count || bytes > change->max_bytes) {
        change->max_bytes = bytes;
        change->max_class = class;
    }
    change->class_count++;
}

void mt_job_tally_close(struct mt_job_tally *tally, const struct mt_job_diff *diff, uint32_t class)
{
    const struct mt_job_class *closed = &diff->classes[class];

    forget_last(tally); /* nothing may have been added since: then this class has nothing */
    for (uint32_t i = 0; i < tally->touched_count; i++) {
        uint32_t number = tally->touched[i];
        struct mt_job_change *change = tally->changes[number];
        int64_t bytes = (int64_t)(tally->b[number] / closed->b_count) -
                        (int64_t)(tally->a[number] / closed->a_count);

        add_change(change, bytes, class);
        change->a_sum_bytes += tally->a[number];
        change->b_sum_bytes += tally->b[number];
        change->a_rows += closed->a_count;
        change->b_rows += closed->b_count;
        tally->sums[number] += bytes;
        tally->now[number] = bytes;
        tally->is_touched[number] = false;
    }
}

void mt_job_tally_finish(struct mt_job_tally *tally)
{
    for (uint32_t i = 0; i < tally->count; i++) {
        struct mt_job_change *change = tally->changes[i];

        if (change->class_count)
            change->mean_bytes = (int64_t)(tally->sums[i] / (__int128)change->class_count);
    }
}

void mt_job_tally_finish_zeros(struct mt_job_tally *tally, uint32_t classes, uint32_t a_rows,
                               uint32_t b_rows)
{
    for (uint32_t i = 0; i < tally->count; i++) {
        struct mt_job_change *change = tally->changes[i];

        if (change->class_count < classes) {
            if (change->min_bytes > 0 || !change->class_count)
                change->min_class = MT_NO_CLASS;
            if (change->max_bytes < 0 || !change->class_count)
                change->max_class = MT_NO_CLASS;
            change->min_bytes = change->min_bytes < 0 ? change->min_bytes : 0;
            change->max_bytes = change->max_bytes > 0 ? change->max_bytes : 0;
        }
        change->class_count = classes;
        change->a_rows = a_rows;
        change->b_rows = b_rows;
    }
    mt_job_tally_finish(tally);
}
