#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "rank_set.h"
#include "record_fields.h"

static bool paths_are_sound(const struct mt_rank_set *set, const char **why)
{
    MT_SOUND(why, set->path_count <= set->path_capacity);
    for (uint32_t i = 0; i < set->path_count; i++) {
        MT_SOUND(why, set->paths[i].parent == MT_NO_PATH || set->paths[i].parent < i);
        MT_SOUND(why, set->paths[i].frame < set->frames.count);
    }
    return true;
}

static bool fields_are_sound(const struct mt_rank_set *set, const void *object,
                             const struct mt_record_field *fields, uint32_t count, const char **why)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_record_field *field = &fields[i];

        if (field->kind == MT_FIELD_TEXT)
            MT_SOUND(why, mt_field_text(object, field));
        if (field->kind == MT_FIELD_ENUM)
            MT_SOUND(why, mt_field_get(object, field) < field->limit);
        if (field->kind == MT_FIELD_PATH) {
            uint64_t path = mt_field_get(object, field);

            MT_SOUND(why, path == MT_NO_PATH || path < set->path_count);
        }
    }
    return true;
}

static bool lists_are_sound(const struct mt_rank_set *set, const struct mt_rank_record *record,
                            const char **why)
{
    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        const unsigned char *array = mt_list_array(record, list);
        uint32_t count = mt_list_count(record, list);

        MT_SOUND(why, count <= list->most && (array || !count));
        for (uint32_t k = 0; k < count; k++)
            if (!fields_are_sound(set, array + k * list->element_bytes, list->fields,
                                  list->field_count, why))
                return false;
    }
    MT_SOUND(why, !record->column_count || record->column_count == MT_RECORD_COLUMNS);
    for (uint32_t i = 1; i < record->level_count; i++)
        MT_SOUND(why, record->levels[i - 1].t_ns <= record->levels[i].t_ns);
    for (uint32_t i = 0; i < record->level_count; i++)
        MT_SOUND(why, record->levels[i].reserved_bytes <= record->reserved_peak.bytes);
    for (uint32_t i = 0; i < record->communicator_count; i++)
        MT_SOUND(why, record->communicators[i].rank < record->communicators[i].ranks);
    for (uint32_t i = 1; i < record->step_count; i++)
        MT_SOUND(why, record->steps[i - 1].last < record->steps[i].first);
    for (uint32_t i = 0; i < record->step_count; i++)
        MT_SOUND(why, record->steps[i].first <= record->steps[i].last);
    return true;
}

/* Roles sum to the allocated peak, and leaves to their roles. */
static bool sums_close(const struct mt_rank_record *record, const char **why)
{
    uint64_t of_roles[MT_ROLE_COUNT] = {0}, total = 0;

    for (uint32_t i = 0; i < record->leaf_count; i++) {
        const struct mt_record_leaf *leaf = &record->leaves[i];

        MT_SOUND(why, leaf->bytes <= record->allocated_peak.bytes - total);
        of_roles[leaf->role] += leaf->bytes;
        total += leaf->bytes;
    }
    MT_SOUND(why, !record->leaf_count || total == record->allocated_peak.bytes);
    total = 0;
    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        MT_SOUND(why, record->role_bytes[role] <= record->allocated_peak.bytes - total);
        total += record->role_bytes[role];
        MT_SOUND(why, !record->leaf_count || of_roles[role] == record->role_bytes[role]);
    }
    MT_SOUND(why, total == record->allocated_peak.bytes);
    return true;
}

static bool leaves_ascend(const struct mt_record_leaf *leaves, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (mt_record_leaf_compare(&leaves[i - 1], &leaves[i]) >= 0)
            return false;
    return true;
}

/* A file need not be in canonical form, so its leaves may have any order. Two leaves of one role
 * and path would have no order at all. There are at most MT_RECORD_LEAVES. */
static bool leaves_are_distinct(const struct mt_rank_record *record, const char **why)
{
    struct mt_record_leaf sorted[MT_RECORD_LEAVES];

    if (leaves_ascend(record->leaves, record->leaf_count))
        return true;
    memcpy(sorted, record->leaves, record->leaf_count * sizeof *sorted);
    qsort(sorted, record->leaf_count, sizeof *sorted, mt_record_leaf_compare);
    MT_SOUND(why, leaves_ascend(sorted, record->leaf_count));
    return true;
}

static bool records_are_in_order(const struct mt_rank_set *set, const char **why)
{
    for (uint32_t i = 0; i < set->record_count; i++)
        MT_SOUND(why, leaves_ascend(set->records[i].leaves, set->records[i].leaf_count));
    for (uint32_t i = 1; i < set->record_count; i++)
        MT_SOUND(why, mt_rank_record_compare(&set->records[i - 1], &set->records[i]) < 0);
    return true;
}

bool mt_rank_set_is_sound(const struct mt_rank_set *set, const char **why)
{
    if (!paths_are_sound(set, why))
        return false;
    for (uint32_t i = 0; i < set->record_count; i++) {
        const struct mt_rank_record *record = &set->records[i];

        if (!fields_are_sound(set, record, mt_record_fields, mt_record_field_count, why) ||
            !lists_are_sound(set, record, why) || !leaves_are_distinct(record, why) ||
            !sums_close(record, why))
            return false;
    }
    return !set->is_sorted || records_are_in_order(set, why);
}
