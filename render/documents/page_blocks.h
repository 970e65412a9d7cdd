/* The rows of single blocks in the data of a page. */
#ifndef MT_RENDER_PAGE_BLOCKS_H
#define MT_RENDER_PAGE_BLOCKS_H

#include "page_text.h"

/* Collects the rows of the first `count` blocks of the history, in the order of their birth. Call
 * it before texts and nodes are written. */
void mt_page_add_blocks(struct mt_page_data *writer, uint32_t count);

/* Appends these rows, and what they need to be read. */
void mt_page_add_block_rows(const struct mt_page_data *writer, struct mt_buf *out);

#endif
