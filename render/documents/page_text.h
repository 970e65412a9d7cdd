/* The data of a page about one device while it is written: its texts, and the tree of its call
 * stacks. report_page.h describes the document. */
#ifndef MT_RENDER_PAGE_TEXT_H
#define MT_RENDER_PAGE_TEXT_H

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
    struct mt_buf change_text;  /* of the history; borrowed by each try to write it */
    size_t most_bytes;          /* of the document */
    size_t block_room;          /* of these, for the rows of blocks */
    struct mt_map frames;       /* strings and origin -> frame */
    struct mt_map known_frames; /* of the trace -> frame */
    uint32_t node_count, frame_count;
    uint64_t unit, addr_unit, time_unit;
};

#define MT_PAGE_NO_NODE UINT32_MAX

/* Returns the number of a text, or of the node of a stack, which is added if it is missing.
 * MT_PAGE_NO_NODE: no stack. */
uint32_t mt_page_string(struct mt_page_data *writer, const char *text);
uint32_t mt_page_node(struct mt_page_data *writer, uint32_t stack);

/* Returns the node of a group. One without a stack has the reason, and its site. */
uint32_t mt_page_group_node(struct mt_page_data *writer, const struct mt_history_group *group);

/* Appends a number to a list. */
void mt_page_add_number(struct mt_buf *out, int64_t value);

/* Appends a member of the document: a list of what was collected. */
void mt_page_add_part(struct mt_buf *out, const char *name, const struct mt_buf *part);

#endif
