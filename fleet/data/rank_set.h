/* A set of records of ranks, and the tree of their call paths.
 *
 * It is a set in the mathematical sense: an element is a record with all its fields. The union
 * is therefore associative, commutative and idempotent, and the order of unions does not change
 * the result. In canonical form (mt_rank_set_sort), equal sets have equal bytes when written
 * (summary_file.h). Paths are sorted by level, within a level by parent and the bytes of the
 * frame; leaves by role and path; records by mt_rank_record_compare. */
#ifndef MT_FLEET_RANK_SET_H
#define MT_FLEET_RANK_SET_H

#include "arena.h"
#include "map.h"
#include "rank_record.h"

/* A call path: the path of the caller and one more frame. */
struct mt_call_path {
    uint32_t parent; /* index of an earlier path; MT_NO_PATH: outermost */
    uint32_t frame;  /* in `frames` */
};

/* Zeroed memory is an empty set. */
struct mt_rank_set {
    struct mt_arena arena;    /* arrays of the records */
    struct mt_strings texts;  /* of the records */
    struct mt_strings frames; /* "train_step train.py:47"; without addresses */
    struct mt_call_path *paths;
    uint32_t path_count;
    size_t path_capacity;
    struct mt_map path_index; /* (parent, frame) -> path */
    struct mt_rank_record *records;
    uint32_t record_count;
    size_t record_capacity;
    bool is_sorted; /* in canonical form */
};

/* Finds or adds the path of `parent` (MT_NO_PATH: none) and a frame. The frame must not have a zero
 * byte, because frames are compared as C strings. O(1). */
uint32_t mt_rank_set_path(struct mt_rank_set *set, uint32_t parent, const char *frame,
                          size_t length);

/* Returns the text of the last frame of a path. */
const char *mt_rank_set_frame(const struct mt_rank_set *set, uint32_t path);

/* Adds a deep copy of the record, whose paths are indexes into this set. */
void mt_rank_set_add(struct mt_rank_set *set, const struct mt_rank_record *record);

/* The same, and packs the long lists of the copy. */
void mt_rank_set_add_packed(struct mt_rank_set *set, const struct mt_rank_record *record);

/* Adds the records of `other` to `set`, and packs their long lists. O(bytes of other). */
void mt_rank_set_unite(struct mt_rank_set *set, const struct mt_rank_set *other);

/* Moves the records of `other` to `set`, which saves the memory of a copy. Lists stay packed or
 * plain. `other` is empty afterwards. */
void mt_rank_set_take(struct mt_rank_set *set, struct mt_rank_set *other);

/* Brings the set into canonical form: sorts it, and drops repeated records and paths that no record
 * names. O(n log n). */
void mt_rank_set_sort(struct mt_rank_set *set);

/* Compares like strcmp: by job, rank, device, restart, host, process, then by all other fields.
 * Both records must belong to one set in canonical form. */
int mt_rank_record_compare(const struct mt_rank_record *a, const struct mt_rank_record *b);

/* Checks that sums agree, indexes are in range, leaves of a record are distinct, and lists are
 * sorted. O(bytes). */
bool mt_rank_set_is_sound(const struct mt_rank_set *set, const char **why);

void mt_rank_set_release(struct mt_rank_set *set);

#endif
