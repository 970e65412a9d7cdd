/* What a program said that its blocks are: PyTorch's user_metadata, set before an allocation
 * (2.10 and later), and `annotate` entries, made while the block lives (2.14 and later). */
#ifndef MT_COLLECTOR_TORCH_TAGS_H
#define MT_COLLECTOR_TORCH_TAGS_H

#include "torch_facts.h"

struct mt_torch;

/* String id of the tag of an entry; 0 = none. */
static inline uint32_t mt_torch_tag(const struct mt_torch_records *r, size_t entry)
{
    return entry < r->tag_count ? r->tags[entry] : 0;
}

/* Keeps a text that is not empty as the tag of an entry. */
enum mt_status mt_torch_read_tag(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *value, size_t entry) MT_MUST_USE;

/* The newest entry is a copy of `from`: it gets its tag. */
enum mt_status mt_torch_copy_tag(struct mt_torch_records *r, size_t from) MT_MUST_USE;

/* Hands the texts of a device's `annotate` entries on to the allocations of the blocks that they
 * name. A block that has more than one text gets them joined by "; ", the newest last. Texts for
 * blocks that were there at the start go to `initial`: address -> string id; the caller releases
 * it. O(entries of the device), and nothing if none of them is an annotation. */
enum mt_status mt_torch_apply_annotations(struct mt_torch *torch, uint32_t device,
                                          struct mt_map *initial) MT_MUST_USE;

#endif
