/* The program's own texts about a block (its tag), as axes of groups: each member of a JSON object
 * among these texts is one. */
#ifndef MT_ANALYZER_TAG_MEMBERS_H
#define MT_ANALYZER_TAG_MEMBERS_H

#include "settings_text.h"
#include "symbols.h"

/* Finds the next text of a tag that is a JSON object, and moves *text behind it. Returns false if
 * there is none. Release *object only if it is found. O(length of the text). */
bool mt_tag_next_object(const char **text, struct mt_settings *object);

/* Returns the group of a block with this tag (string id; MT_NO_ID = none) by a member, such as
 * "layer" or "at.head" (NULL: by the whole tag): the last value of the member among the objects, or
 * "no tag.layer". A value that is not a string is JSON. The text is in the arena or in `symbols`.
 */
const char *mt_tag_group(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t tag,
                         const char *member);

#endif
