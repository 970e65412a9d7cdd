/* A set of records of ranks with the tree of their call paths: union, canonical order, and the
 * check of the whole. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "check.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "rank_record.h"
#include "rank_set.h"
#include "sorted.h"
#include "util.h"

/* The canonical form of a set: equal sets have the same order of paths and records. */

/* A path to be sorted: by level, within a level by parent, and among children of one parent by the
 * bytes of the frame. */
struct placed_path {
    uint32_t depth, parent; /* parent: an old index, then its place */
    const char *frame;
    uint32_t old;
};

struct placing {
    struct mt_rank_set *set;
    struct placed_path *paths; /* that a record names, and their callers */
    uint32_t count;
    uint32_t *depths;    /* by old index */
    uint32_t *places;    /* by old index; MT_NO_PATH = not used */
    unsigned char *room; /* MT_LIST_BYTES */
};

typedef void path_visit(struct placing *, void *object, const struct mt_record_field *);

/* Calls `visit` for each path that the record names. `is_moved`: it changes them, so the lists with
 * paths are stored again, leaves in their new order. */
static void visit_paths(struct mt_rank_record *record, bool is_moved, path_visit *visit,
                        struct placing *placing)
{
    unsigned char *array = placing->room;

    for (uint32_t i = 0; i < mt_record_field_count; i++)
        if (mt_record_fields[i].kind == MT_FIELD_PATH)
            visit(placing, record, &mt_record_fields[i]);
    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        uint32_t count = mt_list_count(record, list);

        if (!list->has_links)
            continue;
        mt_list_read(record, list, array);
        for (uint32_t f = 0; f < list->field_count; f++)
            for (uint32_t k = 0; k < count && list->fields[f].kind == MT_FIELD_PATH; k++)
                visit(placing, array + k * list->element_bytes, &list->fields[f]);
        if (list->array_offset == offsetof(struct mt_rank_record, leaves) && is_moved && count)
            qsort(array, count, list->element_bytes, mt_record_leaf_compare);
        if (is_moved)
            mt_list_write(record, list, array, false, &placing->set->arena);
    }
}

static void mark_used(struct placing *placing, void *object, const struct mt_record_field *field)
{
    uint32_t path = (uint32_t)mt_field_get(object, field);

    /* The callers of a marked path are already marked. */
    for (; path != MT_NO_PATH && placing->places[path] == MT_NO_PATH;
         path = placing->set->paths[path].parent)
        placing->places[path] = 0;
}

static void move_path(struct placing *placing, void *object, const struct mt_record_field *field)
{
    uint32_t path = (uint32_t)mt_field_get(object, field);
    bool fits = path == MT_NO_PATH || mt_field_set(object, field, placing->places[path]);

    MT_ASSERT(fits);
    (void)fits;
}

static void collect_used(struct placing *placing)
{
    const struct mt_rank_set *set = placing->set;

    for (uint32_t i = 0; i < set->path_count; i++) {
        uint32_t parent = set->paths[i].parent;

        placing->depths[i] = parent == MT_NO_PATH ? 0 : placing->depths[parent] + 1;
        if (placing->places[i] == MT_NO_PATH)
            continue;
        placing->paths[placing->count++] =
            (struct placed_path){placing->depths[i], parent, mt_rank_set_frame(set, i), i};
    }
}

MT_DEFINE_ORDER(by_depth, struct placed_path, MT_ASCENDING(depth))

/* Within a level, where parents are places. */
MT_DEFINE_ORDER(by_place, struct placed_path, MT_ASCENDING(parent) || MT_BY_TEXT(frame))

static void give_places(struct placing *placing)
{
    uint32_t begin = 0, end;

    qsort(placing->paths, placing->count, sizeof *placing->paths, by_depth);
    for (; begin < placing->count; begin = end) {
        for (end = begin;
             end < placing->count && placing->paths[end].depth == placing->paths[begin].depth;
             end++) {
            uint32_t *parent = &placing->paths[end].parent;

            if (*parent != MT_NO_PATH)
                *parent = placing->places[*parent];
        }
        qsort(placing->paths + begin, end - begin, sizeof *placing->paths, by_place);
        for (uint32_t i = begin; i < end; i++)
            placing->places[placing->paths[i].old] = i;
    }
}

/* Replaces the paths and frames by those in the new order. */
static void rebuild_paths(struct placing *placing)
{
    struct mt_rank_set *set = placing->set, fresh = {0};

    for (uint32_t i = 0; i < placing->count; i++) {
        uint32_t path = mt_rank_set_path(&fresh, placing->paths[i].parent, placing->paths[i].frame,
                                         strlen(placing->paths[i].frame));

        MT_ASSERT(path == i);
    }
    mt_strings_release(&set->frames);
    mt_map_release(&set->path_index);
    free(set->paths);
    set->frames = fresh.frames;
    set->path_index = fresh.path_index;
    set->paths = fresh.paths;
    set->path_count = fresh.path_count;
    set->path_capacity = fresh.path_capacity;
}

static void order_paths(struct placing *placing)
{
    struct mt_rank_set *set = placing->set;
    size_t room = (size_t)set->path_count + 1;

    placing->paths = mt_memory_new(room * sizeof *placing->paths);
    placing->depths = mt_memory_new(room * sizeof *placing->depths);
    placing->places = mt_memory_new(room * sizeof *placing->places);
    placing->room = mt_memory_new(MT_LIST_BYTES);
    memset(placing->places, 0xff, room * sizeof *placing->places);
    for (uint32_t i = 0; i < set->record_count; i++)
        visit_paths(&set->records[i], false, mark_used, placing);
    collect_used(placing);
    give_places(placing);
    rebuild_paths(placing);
    for (uint32_t i = 0; i < set->record_count; i++)
        visit_paths(&set->records[i], true, move_path, placing);
}

static int compare_fields(const void *a, const void *b, const struct mt_record_field *fields,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_record_field *field = &fields[i];
        int difference;

        if (field->kind == MT_FIELD_TEXT) {
            difference = strcmp(mt_field_text(a, field), mt_field_text(b, field));
        } else if (field->kind == MT_FIELD_I64 || field->kind == MT_FIELD_I32) {
            int64_t x = (int64_t)mt_field_get(a, field), y = (int64_t)mt_field_get(b, field);

            difference = (x > y) - (x < y);
        } else {
            uint64_t x = mt_field_get(a, field), y = mt_field_get(b, field);

            difference = (x > y) - (x < y);
        }
        if (difference)
            return difference;
    }
    return 0;
}

static int compare_lists(const struct mt_rank_record *a, const struct mt_rank_record *b,
                         const struct mt_record_list *list)
{
    uint32_t x = mt_list_count(a, list), y = mt_list_count(b, list);
    uint64_t left[MT_ELEMENT_BYTES / sizeof(uint64_t)], right[MT_ARRAY_LEN(left)];

    for (uint32_t i = 0; i < x && i < y; i++) {
        mt_list_get(a, list, i, left);
        mt_list_get(b, list, i, right);
        int difference = compare_fields(left, right, list->fields, list->field_count);
        if (difference)
            return difference;
    }
    return (x > y) - (x < y);
}

int mt_rank_record_compare(const struct mt_rank_record *a, const struct mt_rank_record *b)
{
    int difference = compare_fields(a, b, mt_record_fields, mt_record_field_count);

    for (uint32_t i = 0; i < mt_record_list_count && !difference; i++)
        difference = compare_lists(a, b, &mt_record_lists[i]);
    return difference;
}

static int by_record(const void *a, const void *b)
{
    return mt_rank_record_compare(a, b);
}

static void drop_repeats(struct mt_rank_set *set)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < set->record_count; i++)
        if (!kept || mt_rank_record_compare(&set->records[kept - 1], &set->records[i]) != 0)
            set->records[kept++] = set->records[i];
    set->record_count = kept;
}

void mt_rank_set_sort(struct mt_rank_set *set)
{
    struct placing placing = {.set = set};

    if (set->is_sorted)
        return;
    order_paths(&placing);
    free(placing.paths);
    free(placing.depths);
    free(placing.places);
    free(placing.room);
    if (set->record_count)
        qsort(set->records, set->record_count, sizeof *set->records, by_record);
    drop_repeats(set);
    set->is_sorted = true;
}

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
    for (uint32_t i = 1; i < set->record_count; i++)
        MT_SOUND(why, mt_rank_record_compare(&set->records[i - 1], &set->records[i]) < 0);
    return true;
}

static bool record_is_sound(const struct mt_rank_set *set, const struct mt_rank_record *record,
                            const char **why)
{
    MT_SOUND(why, !set->is_sorted || leaves_ascend(record->leaves, record->leaf_count));
    return fields_are_sound(set, record, mt_record_fields, mt_record_field_count, why) &&
           lists_are_sound(set, record, why) && leaves_are_distinct(record, why) &&
           sums_close(record, why);
}

bool mt_rank_set_is_sound(const struct mt_rank_set *set, const char **why)
{
    struct mt_record_room *room = mt_memory_new(sizeof *room);
    bool is_sound = paths_are_sound(set, why);

    for (uint32_t i = 0; i < set->record_count && is_sound; i++) {
        const struct mt_rank_record record = mt_rank_record_open(&set->records[i], room);

        is_sound = record_is_sound(set, &record, why);
    }
    free(room);
    if (!is_sound)
        return false;
    return !set->is_sorted || records_are_in_order(set, why);
}

static uint64_t key_of(uint32_t parent, uint32_t frame)
{
    return (uint64_t)parent << 32 | frame;
}

uint32_t mt_rank_set_path(struct mt_rank_set *set, uint32_t parent, const char *frame,
                          size_t length)
{
    uint32_t id;

    mt_strings_put(&set->frames, frame, length, &id);
    MT_ASSERT(parent == MT_NO_PATH || parent < set->path_count);
    MT_ASSERT(!memchr(frame, 0, length));
    uint32_t path = mt_map_get(&set->path_index, key_of(parent, id));
    if (path != MT_MAP_NONE)
        return path;
    if (set->path_count == MT_NO_PATH - 1)
        mt_memory_end();
    if (set->path_count == set->path_capacity)
        mt_grow_to(&set->paths, &set->path_capacity, (size_t)set->path_count + 1,
                   sizeof *set->paths);
    mt_map_put(&set->path_index, key_of(parent, id), set->path_count);
    set->paths[set->path_count] = (struct mt_call_path){parent, id};
    set->is_sorted = false;
    return set->path_count++;
}

const char *mt_rank_set_frame(const struct mt_rank_set *set, uint32_t path)
{
    MT_ASSERT(path < set->path_count);
    return set->frames.texts[set->paths[path].frame];
}

/* Moves the texts and paths of an object that was copied as bytes to this set. `map` has the set's
 * path for each of the object's; NULL: they belong to the set already. */
static void own_fields(struct mt_rank_set *set, void *object, const struct mt_record_field *fields,
                       uint32_t count, const uint32_t *map)
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
            bool fits = path == MT_NO_PATH || mt_field_set(object, field, map[path]);

            MT_ASSERT(fits);
        }
    }
}

/* How records become those of a set. */
struct adding {
    const uint32_t *map; /* as in own_fields */
    bool is_moved;       /* the set owns the lists already, and may change them */
    bool packs;          /* long lists are packed */
    unsigned char *room; /* MT_LIST_BYTES */
};

static void own_list(struct mt_rank_set *set, struct mt_rank_record *record,
                     const struct mt_record_list *list, const struct adding *adding)
{
    bool is_packed = list->packed >= 0 && record->packed[list->packed];

    if (adding->is_moved && !list->has_links)
        return;
    mt_list_read(record, list, adding->room);
    for (uint32_t i = 0; i < mt_list_count(record, list) && list->has_links; i++)
        own_fields(set, adding->room + i * list->element_bytes, list->fields, list->field_count,
                   adding->map);
    if (!adding->is_moved)
        mt_list_forget(record, list);
    mt_list_write(record, list, adding->room, is_packed || adding->packs, &set->arena);
}

static void add(struct mt_rank_set *set, const struct mt_rank_record *record,
                const struct adding *adding)
{
    struct mt_rank_record copy = *record;

    own_fields(set, &copy, mt_record_fields, mt_record_field_count, adding->map);
    for (uint32_t i = 0; i < mt_record_list_count; i++)
        own_list(set, &copy, &mt_record_lists[i], adding);
    if (set->record_count == UINT32_MAX)
        mt_memory_end();
    if (set->record_count == set->record_capacity)
        mt_grow_to(&set->records, &set->record_capacity, (size_t)set->record_count + 1,
                   sizeof *set->records);
    set->records[set->record_count++] = copy;
    set->is_sorted = false;
}

static void add_one(struct mt_rank_set *set, const struct mt_rank_record *record, bool packs)
{
    const struct adding adding = {.packs = packs, .room = mt_memory_new(MT_LIST_BYTES)};

    add(set, record, &adding);
    free(adding.room);
}

void mt_rank_set_add(struct mt_rank_set *set, const struct mt_rank_record *record)
{
    add_one(set, record, false);
}

void mt_rank_set_add_packed(struct mt_rank_set *set, const struct mt_rank_record *record)
{
    add_one(set, record, true);
}

/* Fills `map` with the path of `set` for each path of `other`. */
static void map_paths(struct mt_rank_set *set, const struct mt_rank_set *other, uint32_t *map)
{
    for (uint32_t i = 0; i < other->path_count; i++) {
        const struct mt_call_path *path = &other->paths[i];
        uint32_t parent = path->parent == MT_NO_PATH ? MT_NO_PATH : map[path->parent];

        map[i] = mt_rank_set_path(set, parent, other->frames.texts[path->frame],
                                  other->frames.lengths[path->frame]);
    }
}

static void add_records(struct mt_rank_set *set, const struct mt_rank_set *other, bool is_moved)
{
    uint32_t *map = mt_memory_new(((size_t)other->path_count + 1) * sizeof *map);
    const struct adding adding = {map, is_moved, !is_moved, mt_memory_new(MT_LIST_BYTES)};

    map_paths(set, other, map);
    for (uint32_t i = 0; i < other->record_count; i++)
        add(set, &other->records[i], &adding);
    free(adding.room);
    free(map);
}

void mt_rank_set_unite(struct mt_rank_set *set, const struct mt_rank_set *other)
{
    MT_ASSERT(set != other);
    add_records(set, other, false);
}

void mt_rank_set_take(struct mt_rank_set *set, struct mt_rank_set *other)
{
    MT_ASSERT(set != other);
    if (!set->record_count && !set->path_count) {
        mt_rank_set_release(set);
        *set = *other;
        memset(other, 0, sizeof *other);
        return;
    }
    mt_arena_join(&set->arena, &other->arena);
    add_records(set, other, true);
    mt_rank_set_release(other);
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
