/* Random records of ranks for tests. The table gives every field a different value, so that a field
 * that is not copied or compared is detected. */
#ifndef TESTS_RECORD_MAKER_H
#define TESTS_RECORD_MAKER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "rank_record.h"
#include "rank_set.h"
#include "util.h"

struct record_maker {
    uint64_t state;
    struct mt_rank_set *set; /* whose paths and memory the records use */
};

static inline uint64_t maker_dice(struct record_maker *maker, uint64_t below)
{
    return (dice_linear(&maker->state) >> 20) % below;
}

/* One of few texts, so that sets share them. */
static inline const char *maker_text(struct record_maker *maker)
{
    static const char *const texts[] = {"",     "node1",         "node2",    "slurm:7",
                                        "NCCL", "run.trace.zst", "GPU-8f2c", "naïve \xff bytes",
                                        "a b"};

    return texts[maker_dice(maker, MT_ARRAY_LEN(texts))];
}

static inline uint32_t maker_path(struct record_maker *maker)
{
    static const char *const frames[] = {"main a.py:1",     "train a.py:20", "forward m.py:7",
                                         "forward m.py:70", "zeros t.py:3",  ""};
    uint32_t path = MT_NO_PATH;

    for (uint64_t depth = maker_dice(maker, 6); depth > 0; depth--) {
        const char *frame = frames[maker_dice(maker, MT_ARRAY_LEN(frames))];

        path = mt_rank_set_path(maker->set, path, frame, strlen(frame));
    }
    return path;
}

static inline void maker_fill(struct record_maker *maker, void *object,
                              const struct mt_record_field *fields, uint32_t count)
{
    static const uint64_t limits[] = {[MT_FIELD_U64] = UINT64_C(1) << 40,
                                      [MT_FIELD_I64] = 1000,
                                      [MT_FIELD_U32] = 1u << 31,
                                      [MT_FIELD_I32] = 1000,
                                      [MT_FIELD_U16] = 16,
                                      [MT_FIELD_BOOL] = 2};

    for (uint32_t i = 0; i < count; i++) {
        const struct mt_record_field *field = &fields[i];

        if (field->kind == MT_FIELD_TEXT) {
            mt_field_set_text(object, field, maker_text(maker));
            continue;
        }
        uint64_t value = field->kind == MT_FIELD_PATH   ? maker_path(maker)
                         : field->kind == MT_FIELD_ENUM ? maker_dice(maker, field->limit)
                                                        : maker_dice(maker, limits[field->kind]);
        if (field->kind == MT_FIELD_I32 || field->kind == MT_FIELD_I64)
            value -= 500;
        if (!mt_field_set(object, field, value))
            abort();
    }
}

/* Requirements of mt_rank_set_is_sound besides ranges. */
static inline void maker_fix(struct record_maker *maker, struct mt_rank_record *record)
{
    int64_t number = -(int64_t)maker_dice(maker, 9);
    uint32_t kept = 0;
    uint64_t total = 0;

    for (uint32_t i = 0; i < record->step_count; i++) {
        record->steps[i].first = number;
        number += (int64_t)maker_dice(maker, 3);
        record->steps[i].last = number++;
    }
    for (uint32_t i = 0; i < record->level_count; i++) {
        record->levels[i].t_ns = i ? record->levels[i - 1].t_ns + maker_dice(maker, 3) : 0;
        record->levels[i].reserved_bytes %= record->reserved_peak.bytes + 1;
    }
    for (uint32_t i = 0; i < record->communicator_count; i++)
        record->communicators[i].rank %= ++record->communicators[i].ranks;
    memset(record->role_bytes, 0, sizeof record->role_bytes);
    for (uint32_t i = 0; i < record->leaf_count; i++) {
        bool is_twice = false;

        for (uint32_t k = 0; k < kept && !is_twice; k++)
            is_twice = record->leaves[k].role == record->leaves[i].role &&
                       record->leaves[k].path == record->leaves[i].path;
        if (is_twice)
            continue;
        record->leaves[kept++] = record->leaves[i];
        record->role_bytes[record->leaves[i].role] += record->leaves[i].bytes;
        total += record->leaves[i].bytes;
    }
    record->leaf_count = kept;
    record->allocated_peak.bytes = total;
}

/* A record whose paths belong to maker->set. The set does not contain the record. */
static inline struct mt_rank_record make_record(struct record_maker *maker)
{
    struct mt_rank_record record = {0};

    maker_fill(maker, &record, mt_record_fields, mt_record_field_count);
    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        uint32_t count = (uint32_t)maker_dice(maker, 6);

        if (list->array_offset == offsetof(struct mt_rank_record, columns))
            count = count & 1 ? MT_RECORD_COLUMNS : 0;
        unsigned char *array = mt_arena_array(&maker->set->arena, count + 1, list->element_bytes);
        if (!array)
            abort();
        for (uint32_t k = 0; k < count; k++)
            maker_fill(maker, array + k * list->element_bytes, list->fields, list->field_count);
        mt_list_set(&record, list, array, count);
    }
    maker_fix(maker, &record);
    return record;
}

/* Both in canonical form. */
static inline bool sets_are_equal(const struct mt_rank_set *a, const struct mt_rank_set *b)
{
    if (a->path_count != b->path_count || a->record_count != b->record_count)
        return false;
    for (uint32_t i = 0; i < a->path_count; i++)
        if (a->paths[i].parent != b->paths[i].parent ||
            strcmp(mt_rank_set_frame(a, i), mt_rank_set_frame(b, i)) != 0)
            return false;
    for (uint32_t i = 0; i < a->record_count; i++)
        if (mt_rank_record_compare(&a->records[i], &b->records[i]) != 0)
            return false;
    return true;
}

#endif
