/* The rows of single blocks in the data of a page. */
#ifndef MT_RENDER_PAGE_BLOCKS_H
#define MT_RENDER_PAGE_BLOCKS_H

#include "page_text.h"

enum { MT_PAGE_BLOCK_BYTES = 6 }; /* a row has at least this many digits */

/* Collects the rows of the first `count` blocks of the history, in the order of their birth. Call
 * it before texts and nodes are written. Returns false early if they take more than `most_bytes`.
 */
bool mt_page_add_blocks(struct mt_page_data *writer, uint32_t count, size_t most_bytes);

/* Appends these rows, and what they need to be read. */
void mt_page_add_block_rows(const struct mt_page_data *writer, struct mt_buf *out);

#endif
