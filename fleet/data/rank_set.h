/* A set of records of ranks, and the tree of call paths that they name.
 *
 * A set is a mathematical set: an element is a record with all that it says. The union of sets is
 * therefore associative, commutative and idempotent, and any tree of unions gives the same set.
 * In canonical form (mt_rank_set_sort) equal sets have equal bytes when written
 * (summary_file.h): paths stand level by level, children by their parents and the bytes of their
 * frames, leaves by role and path, records in the order of mt_rank_record_compare.
 */
#ifndef MT_FLEET_RANK_SET_H
#define MT_FLEET_RANK_SET_H

#include "arena.h"
#include "map.h"
#include "rank_record.h"

/* A call path: the path of the caller and one frame more. */
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

/* The path of `parent` (MT_NO_PATH: none) and a frame; made if it is not there. The frame holds no
 * zero byte: frames are ordered as C strings. O(1). */
enum mt_status mt_rank_set_path(struct mt_rank_set *set, uint32_t parent, const char *frame,
                                size_t length, uint32_t *path) MT_MUST_USE;

/* Text of the last frame of a path. */
const char *mt_rank_set_frame(const struct mt_rank_set *set, uint32_t path);

/* A copy of the record, with all that it points to. Its paths are this set's. */
enum mt_status mt_rank_set_add(struct mt_rank_set *set,
                               const struct mt_rank_record *record) MT_MUST_USE;

/* Copies what `other` has into `set`. O(bytes of other). On failure `set` holds some of it, and
 * may only be released. */
enum mt_status mt_rank_set_unite(struct mt_rank_set *set,
                                 const struct mt_rank_set *other) MT_MUST_USE;

/* Brings the set into canonical form: orders, and drops paths that no record names and records
 * that are there twice. O(n log n). */
enum mt_status mt_rank_set_sort(struct mt_rank_set *set) MT_MUST_USE;

/* < 0, 0, > 0: by job, rank, device, restart, host, process, then all else. Both are of one set in
 * canonical form. */
int mt_rank_record_compare(const struct mt_rank_record *a, const struct mt_rank_record *b);

/* Sums close, indexes are in range, leaves of a record are distinct, orders hold. O(bytes). */
bool mt_rank_set_is_sound(const struct mt_rank_set *set, const char **why);

void mt_rank_set_release(struct mt_rank_set *set);

#endif
