/* The texts and the tree of call stacks of a page. */
#include "page_text.h"

#include <string.h>

#include "site.h"

uint32_t mt_page_string(struct mt_page_data *writer, const char *text)
{
    uint32_t id = 0;

    mt_strings_put(&writer->strings, text, strlen(text), &id);
    return id;
}

/* Adds a comma between two items of a list. */
static void add_comma(struct mt_buf *out)
{
    if (out->length && out->data[out->length - 1] != '[')
        mt_buf_add_char(out, ',');
}

void mt_page_add_number(struct mt_buf *out, int64_t value)
{
    add_comma(out);
    mt_buf_add_i64(out, value);
}

static uint32_t frame_of(struct mt_page_data *writer, const char *name, const char *place,
                         enum mt_origin origin)
{
    uint32_t id = mt_page_string(writer, name);
    uint32_t at = place && *place ? mt_page_string(writer, place) : UINT32_MAX;
    uint64_t key = ((uint64_t)id << 32 | at) * 8 + (uint64_t)origin;
    uint32_t found = mt_map_get(&writer->frames, key);

    if (found != MT_MAP_NONE)
        return found;
    mt_map_put(&writer->frames, key, writer->frame_count);
    mt_buf_printf(&writer->frame_text, "%s[%u,", writer->frame_count ? "," : "", id);
    mt_buf_add_i64(&writer->frame_text, at == UINT32_MAX ? -1 : (int64_t)at);
    mt_buf_printf(&writer->frame_text, ",%d]", (int)origin);
    return writer->frame_count++;
}

static uint32_t node_of(struct mt_page_data *writer, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint32_t found = mt_map_get(&writer->nodes, key);

    if (found != MT_MAP_NONE)
        return found;
    mt_map_put(&writer->nodes, key, writer->node_count);
    mt_page_add_number(&writer->node_text, parent == MT_PAGE_NO_NODE ? -1 : (int64_t)parent);
    mt_page_add_number(&writer->node_text, frame);
    return writer->node_count++;
}

/* Returns the node for blocks without a stack. The node has the reason why there is no stack, and a
 * node below it has the site of the group. */
static uint32_t node_without_stack(struct mt_page_data *writer,
                                   const struct mt_history_group *group)
{
    const char *why = group->is_initial    ? "allocated before recording started"
                      : group->is_backward ? "autograd engine"
                                           : "no stack recorded";

    if (group->detail == MT_HISTORY_BY_ROLE)
        return MT_PAGE_NO_NODE;
    if (strncmp(group->site, why, strlen(why)) == 0) /* the site is only the reason */
        return node_of(writer, MT_PAGE_NO_NODE,
                       frame_of(writer, group->site, NULL, MT_ORIGIN_ENGINE));
    uint32_t node = node_of(writer, MT_PAGE_NO_NODE, frame_of(writer, why, NULL, MT_ORIGIN_ENGINE));
    return node_of(writer, node, frame_of(writer, group->site, NULL, MT_ORIGIN_ENGINE));
}

/* Returns the frame on the page of a frame of the trace. */
static uint32_t page_frame(struct mt_page_data *writer, uint32_t frame)
{
    const struct mt_symbols *symbols = writer->report->symbols;
    struct mt_arena *arena = &writer->drawing.arena;
    uint32_t id = mt_map_get(&writer->known_frames, frame);

    if (id == MT_MAP_NONE) {
        id = frame_of(writer, mt_frame_function(arena, symbols, frame),
                      mt_frame_position(arena, symbols, frame), mt_frame_origin(symbols, frame));
        mt_map_put(&writer->known_frames, frame, id);
    }
    return id;
}

uint32_t mt_page_node(struct mt_page_data *writer, uint32_t stack)
{
    uint32_t frames[MT_NAMED_FRAMES_DEPTH], count = 0, node = MT_PAGE_NO_NODE;
    uint32_t known = mt_map_get(&writer->stack_nodes, stack);

    if (stack == MT_NO_ID || known != MT_MAP_NONE)
        return stack == MT_NO_ID ? MT_PAGE_NO_NODE : known;
    mt_named_frames_get(&writer->named, stack, frames, &count);
    for (uint32_t i = 0; i < count; i++)
        node = node_of(writer, node, page_frame(writer, frames[i]));
    if (node != MT_PAGE_NO_NODE)
        mt_map_put(&writer->stack_nodes, stack, node);
    return node;
}

uint32_t mt_page_group_node(struct mt_page_data *writer, const struct mt_history_group *group)
{
    if (group->stack == MT_NO_ID && group->detail <= MT_HISTORY_BY_STACK)
        return node_without_stack(writer, group);
    return mt_page_node(writer, group->stack);
}

void mt_page_add_part(struct mt_buf *out, const char *name, const struct mt_buf *part)
{
    mt_buf_printf(out, ",\"%s\":[", name);
    mt_buf_add(out, part->data ? part->data : "", part->length);
    mt_buf_add_char(out, ']');
}
