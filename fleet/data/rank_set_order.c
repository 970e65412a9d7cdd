/* The canonical form of a set: equal sets have the same order of paths and records. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "process_memory.h"
#include "rank_set.h"
#include "record_fields.h"

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
    uint32_t *depths; /* by old index */
    uint32_t *places; /* by old index; MT_NO_PATH = not used */
};

/* Calls `visit` for each path that the record names. */
static void each_path(struct mt_rank_record *record,
                      void (*visit)(struct placing *, void *object, const struct mt_record_field *),
                      struct placing *placing)
{
    for (uint32_t i = 0; i < mt_record_field_count; i++)
        if (mt_record_fields[i].kind == MT_FIELD_PATH)
            visit(placing, record, &mt_record_fields[i]);
    for (uint32_t i = 0; i < mt_record_list_count; i++) {
        const struct mt_record_list *list = &mt_record_lists[i];
        unsigned char *array = mt_list_array(record, list);
        uint32_t count = mt_list_count(record, list);

        for (uint32_t f = 0; f < list->field_count; f++)
            for (uint32_t k = 0; k < count && list->fields[f].kind == MT_FIELD_PATH; k++)
                visit(placing, array + k * list->element_bytes, &list->fields[f]);
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

static int by_depth(const void *a, const void *b)
{
    const struct placed_path *x = a, *y = b;

    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Within a level, where parents are places. */
static int by_place(const void *a, const void *b)
{
    const struct placed_path *x = a, *y = b;

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return strcmp(x->frame, y->frame);
}

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
static enum mt_status rebuild_paths(struct placing *placing)
{
    struct mt_rank_set *set = placing->set, fresh = {0};
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < placing->count && status == MT_OK; i++) {
        uint32_t path = MT_NO_PATH;

        status = mt_rank_set_path(&fresh, placing->paths[i].parent, placing->paths[i].frame,
                                  strlen(placing->paths[i].frame), &path);
        MT_ASSERT(status != MT_OK || path == i);
    }
    if (status != MT_OK) {
        mt_rank_set_release(&fresh);
        return status;
    }
    mt_strings_release(&set->frames);
    mt_map_release(&set->path_index);
    free(set->paths);
    set->frames = fresh.frames;
    set->path_index = fresh.path_index;
    set->paths = fresh.paths;
    set->path_count = fresh.path_count;
    set->path_capacity = fresh.path_capacity;
    return MT_OK;
}

static enum mt_status order_paths(struct placing *placing)
{
    struct mt_rank_set *set = placing->set;
    size_t room = (size_t)set->path_count + 1;
    enum mt_status status;

    placing->paths = mt_memory_new(room * sizeof *placing->paths);
    placing->depths = mt_memory_new(room * sizeof *placing->depths);
    placing->places = mt_memory_new(room * sizeof *placing->places);
    memset(placing->places, 0xff, room * sizeof *placing->places);
    for (uint32_t i = 0; i < set->record_count; i++)
        each_path(&set->records[i], mark_used, placing);
    collect_used(placing);
    give_places(placing);
    status = rebuild_paths(placing);
    for (uint32_t i = 0; i < set->record_count && status == MT_OK; i++)
        each_path(&set->records[i], move_path, placing);
    return status;
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
    const unsigned char *left = mt_list_array(a, list), *right = mt_list_array(b, list);

    for (uint32_t i = 0; i < x && i < y; i++) {
        int difference =
            compare_fields(left + i * list->element_bytes, right + i * list->element_bytes,
                           list->fields, list->field_count);

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

enum mt_status mt_rank_set_sort(struct mt_rank_set *set)
{
    struct placing placing = {.set = set};
    enum mt_status status = set->is_sorted ? MT_OK : order_paths(&placing);

    free(placing.paths);
    free(placing.depths);
    free(placing.places);
    if (status != MT_OK || set->is_sorted)
        return status;
    for (uint32_t i = 0; i < set->record_count; i++)
        if (set->records[i].leaf_count)
            qsort(set->records[i].leaves, set->records[i].leaf_count,
                  sizeof *set->records[i].leaves, mt_record_leaf_compare);
    if (set->record_count)
        qsort(set->records, set->record_count, sizeof *set->records, by_record);
    drop_repeats(set);
    set->is_sorted = true;
    return MT_OK;
}
