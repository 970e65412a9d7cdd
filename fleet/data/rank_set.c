#include "rank_set.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"
#include "record_fields.h"

static uint64_t key_of(uint32_t parent, uint32_t frame)
{
    return (uint64_t)parent << 32 | frame;
}

enum mt_status mt_rank_set_path(struct mt_rank_set *set, uint32_t parent, const char *frame,
                                size_t length, uint32_t *path)
{
    uint32_t id;

    mt_strings_put(&set->frames, frame, length, &id);
    MT_ASSERT(parent == MT_NO_PATH || parent < set->path_count);
    MT_ASSERT(!memchr(frame, 0, length));
    *path = mt_map_get(&set->path_index, key_of(parent, id));
    if (*path != MT_MAP_NONE)
        return MT_OK;
    if (set->path_count == MT_NO_PATH - 1)
        return MT_ERR_UNSUPPORTED;
    if (set->path_count == set->path_capacity)
        mt_grow_to(&set->paths, &set->path_capacity, (size_t)set->path_count + 1,
                   sizeof *set->paths);
    mt_map_put(&set->path_index, key_of(parent, id), set->path_count);
    set->paths[set->path_count] = (struct mt_call_path){parent, id};
    *path = set->path_count++;
    set->is_sorted = false;
    return MT_OK;
}

const char *mt_rank_set_frame(const struct mt_rank_set *set, uint32_t path)
{
    MT_ASSERT(path < set->path_count);
    return set->frames.texts[set->paths[path].frame];
}

/* Moves the texts and paths of an object that was copied as bytes to this set. `map` has the set's
 * path for each of the object's; NULL: they belong to the set already. */
static enum mt_status own_fields(struct mt_rank_set *set, void *object,
                                 const struct mt_record_field *fields, uint32_t count,
                                 const uint32_t *map)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_record_field *field = &fields[i];

        if (field->kind == MT_FIELD_TEXT) {
            const char *text = mt_field_text(object, field);
            uint32_t id;

            mt_strings_put(&set->texts, text, strlen(text), &id);
            mt_field_set_text(object, field, set->texts.texts[id]);
        } else if (field->kind == MT_FIELD_PATH && map) {
            uint32_t path = (uint32_t)mt_field_get(object, field);

            if (path != MT_NO_PATH && !mt_field_set(object, field, map[path]))
                return MT_ERR_UNSUPPORTED;
        }
    }
    return MT_OK;
}

/* The arrays of the record, in the arena of the set. */
static void copy_lists(struct mt_rank_set *set, struct mt_rank_record *record)
{
    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        uint32_t count = mt_list_count(record, list);
        unsigned char *array = NULL;

        if (count) {
            array = mt_arena_array(&set->arena, count, list->element_bytes);
            memcpy(array, mt_list_array(record, list), count * list->element_bytes);
        }
        mt_list_set(record, list, array, count);
    }
}

static enum mt_status own_list(struct mt_rank_set *set, const struct mt_rank_record *record,
                               const struct mt_record_list *list, const uint32_t *map)
{
    uint32_t count = mt_list_count(record, list);
    unsigned char *array = mt_list_array(record, list);

    for (uint32_t i = 0; i < count; i++) {
        enum mt_status status =
            own_fields(set, array + i * list->element_bytes, list->fields, list->field_count, map);

        if (status != MT_OK)
            return status;
    }
    return MT_OK;
}

/* Adds a record whose arrays the set owns, and may change. */
static enum mt_status add_owned(struct mt_rank_set *set, const struct mt_rank_record *record,
                                const uint32_t *map)
{
    struct mt_rank_record copy = *record;
    enum mt_status status = own_fields(set, &copy, mt_record_fields, mt_record_field_count, map);

    for (uint32_t i = 0; i < mt_record_list_count && status == MT_OK; i++)
        status = own_list(set, &copy, &mt_record_lists[i], map);
    if (status != MT_OK)
        return status;
    if (set->record_count == UINT32_MAX)
        return MT_ERR_UNSUPPORTED;
    if (set->record_count == set->record_capacity)
        mt_grow_to(&set->records, &set->record_capacity, (size_t)set->record_count + 1,
                   sizeof *set->records);
    set->records[set->record_count++] = copy;
    set->is_sorted = false;
    return MT_OK;
}

static enum mt_status add_copy(struct mt_rank_set *set, const struct mt_rank_record *record,
                               const uint32_t *map)
{
    struct mt_rank_record copy = *record;

    copy_lists(set, &copy);
    return add_owned(set, &copy, map);
}

enum mt_status mt_rank_set_add(struct mt_rank_set *set, const struct mt_rank_record *record)
{
    return add_copy(set, record, NULL);
}

/* Fills `map` with the path of `set` for each path of `other`. */
static enum mt_status map_paths(struct mt_rank_set *set, const struct mt_rank_set *other,
                                uint32_t *map)
{
    for (uint32_t i = 0; i < other->path_count; i++) {
        const struct mt_call_path *path = &other->paths[i];
        uint32_t parent = path->parent == MT_NO_PATH ? MT_NO_PATH : map[path->parent];
        enum mt_status status = mt_rank_set_path(set, parent, other->frames.texts[path->frame],
                                                 other->frames.lengths[path->frame], &map[i]);

        if (status != MT_OK)
            return status;
    }
    return MT_OK;
}

static enum mt_status add_records(struct mt_rank_set *set, const struct mt_rank_set *other,
                                  enum mt_status (*add)(struct mt_rank_set *,
                                                        const struct mt_rank_record *,
                                                        const uint32_t *map))
{
    uint32_t *map = mt_memory_new(((size_t)other->path_count + 1) * sizeof *map);
    enum mt_status status = map_paths(set, other, map);

    for (uint32_t i = 0; i < other->record_count && status == MT_OK; i++)
        status = add(set, &other->records[i], map);
    free(map);
    return status;
}

enum mt_status mt_rank_set_unite(struct mt_rank_set *set, const struct mt_rank_set *other)
{
    MT_ASSERT(set != other);
    return add_records(set, other, add_copy);
}

enum mt_status mt_rank_set_take(struct mt_rank_set *set, struct mt_rank_set *other)
{
    enum mt_status status = MT_OK;

    MT_ASSERT(set != other);
    if (!set->record_count && !set->path_count) {
        mt_rank_set_release(set);
        *set = *other;
        memset(other, 0, sizeof *other);
        return MT_OK;
    }
    mt_arena_join(&set->arena, &other->arena);
    status = add_records(set, other, add_owned);
    mt_rank_set_release(other);
    return status;
}

void mt_rank_set_release(struct mt_rank_set *set)
{
    mt_arena_release(&set->arena);
    mt_strings_release(&set->frames);
    mt_strings_release(&set->texts);
    mt_map_release(&set->path_index);
    free(set->paths);
    free(set->records);
    memset(set, 0, sizeof *set);
}
