/* A program's own descriptions of blocks: PyTorch's user_metadata, set before an allocation (2.10
 * and later), and `annotate` entries, recorded while the block is alive (2.14 and later). */
#ifndef MT_COLLECTOR_TORCH_TAGS_H
#define MT_COLLECTOR_TORCH_TAGS_H

#include "torch_facts.h"

struct mt_torch;

/* Returns the string id of an entry's tag; 0 = none. */
static inline uint32_t mt_torch_tag(const struct mt_torch_records *r, size_t entry)
{
    return entry < r->tag_count ? r->tags[entry] : 0;
}

/* Stores a nonempty text as the tag of an entry. */
enum mt_status mt_torch_read_tag(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *value, size_t entry) MT_MUST_USE;

/* Copies the tag of entry `from` to the newest entry, which is a copy of it. */
enum mt_status mt_torch_copy_tag(struct mt_torch_records *r, size_t from) MT_MUST_USE;

/* Attaches the texts of a device's `annotate` entries to the allocations of the blocks that they
 * name. Several texts of a block are joined by "; ", the newest last. Texts for initial blocks are
 * added to `initial` (address -> string id), which the caller releases. O(entries of the device);
 * does nothing if there are no annotations. */
enum mt_status mt_torch_apply_annotations(struct mt_torch *torch, uint32_t device,
                                          struct mt_map *initial) MT_MUST_USE;

#endif
