/* The data of a page about one device while it is written: page_data.c has the history,
 * page_blocks.c the rows of single blocks. report_page.h describes the document. */
#ifndef MT_RENDER_PAGE_DATA_H
#define MT_RENDER_PAGE_DATA_H

#include "buf.h"
#include "draw.h"
#include "history.h"
#include "map.h"
#include "report.h"
#include "report_rows.h"

/* A document that is being written. A call stack on the page is a node of a tree. A frame has a
 * name and a place. */
struct mt_page_data {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_history *history;
    struct mt_drawing drawing; /* owns texts */
    struct mt_named_frames named;
    struct mt_strings strings;
    struct mt_map nodes;       /* parent and frame -> node */
    struct mt_map stack_nodes; /* stack -> node */
    struct mt_buf node_text, frame_text, group_text, kind_text, block_text;
    struct mt_map frames; /* strings and origin -> frame */
    uint32_t node_count, frame_count;
    uint64_t unit, addr_unit, time_unit;
};

#define MT_PAGE_NO_NODE UINT32_MAX

/* Returns the number of a text, or of the node of a stack, which is added if it is missing.
 * MT_PAGE_NO_NODE: no stack. */
uint32_t mt_page_string(struct mt_page_data *writer, const char *text);
uint32_t mt_page_node(struct mt_page_data *writer, uint32_t stack);

/* Appends a number to a list. */
void mt_page_add_number(struct mt_buf *out, int64_t value);

/* Appends a member of the document: a list of what was collected. */
void mt_page_add_part(struct mt_buf *out, const char *name, const struct mt_buf *part);

/* Collects the rows of the first `count` blocks of the history, in the order of their birth. Call
 * it before texts and nodes are written. */
void mt_page_add_blocks(struct mt_page_data *writer, uint32_t count);

/* Appends these rows, and what they need to be read. */
void mt_page_add_block_rows(const struct mt_page_data *writer, struct mt_buf *out);

#endif
