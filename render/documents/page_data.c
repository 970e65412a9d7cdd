#include "report_page.h"

#include <stdlib.h>
#include <string.h>

#include "address_model.h"
#include "block_key.h"
#include "blocks_model.h"
#include "escape.h"
#include "history.h"
#include "site.h"
#include "timeline_layout.h"
#include "util.h"
#include "work_kinds.h"

enum {
    NAME_COLUMNS = 160,
    TRIES = 12,
    TRIES_WITH_BLOCKS = 3, /* then dropping the rows is better than a coarser history */
    BLOCKS_BYTES = 120000  /* with less room, the page has no rows of blocks */
};

/* State of the writer. A call stack on the page is a node of a tree. A frame has a name and a
 * place. */
struct writer {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_history *history;
    struct mt_timeline_layout layout;
    struct mt_drawing drawing; /* for the layout of the timeline; owns texts */
    struct mt_named_frames named;
    struct mt_strings strings, keys; /* keys: keys of blocks that have a row */
    struct mt_map nodes;             /* parent and frame -> node */
    struct mt_buf node_text, frame_text, group_text, block_text;
    struct mt_map frames; /* strings and origin -> frame */
    uint32_t node_count, frame_count;
    uint64_t unit;
};

static uint32_t string_of(struct writer *writer, const char *text)
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

static void add_list(struct mt_buf *out, int64_t value)
{
    add_comma(out);
    mt_buf_add_i64(out, value);
}

#define NO_NODE UINT32_MAX

static uint32_t frame_of(struct writer *writer, const char *name, const char *place,
                         enum mt_origin origin)
{
    uint32_t id = string_of(writer, name);
    uint32_t at = place && *place ? string_of(writer, place) : UINT32_MAX;
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

static uint32_t node_of(struct writer *writer, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint32_t found = mt_map_get(&writer->nodes, key);

    if (found != MT_MAP_NONE)
        return found;
    mt_map_put(&writer->nodes, key, writer->node_count);
    add_list(&writer->node_text, parent == NO_NODE ? -1 : (int64_t)parent);
    add_list(&writer->node_text, frame);
    return writer->node_count++;
}

/* Returns the node for blocks without a stack. The node has the reason why there is no stack, and a
 * node below it has the site of the group. */
static uint32_t node_without_stack(struct writer *writer, const struct mt_history_group *group)
{
    const char *why = group->is_initial    ? "allocated before recording started"
                      : group->is_backward ? "autograd engine"
                                           : "no stack recorded";
    uint32_t node;

    if (group->detail == MT_HISTORY_BY_ROLE)
        return NO_NODE;
    if (strncmp(group->site, why, strlen(why)) == 0) /* the site is only the reason */
        return node_of(writer, NO_NODE, frame_of(writer, group->site, NULL, MT_ORIGIN_ENGINE));
    node = node_of(writer, NO_NODE, frame_of(writer, why, NULL, MT_ORIGIN_ENGINE));
    return node_of(writer, node, frame_of(writer, group->site, NULL, MT_ORIGIN_ENGINE));
}

static uint32_t node_of_stack(struct writer *writer, uint32_t stack)
{
    const struct mt_symbols *symbols = writer->report->symbols;
    struct mt_arena *arena = &writer->drawing.arena;
    uint32_t frames[MT_NAMED_FRAMES_DEPTH], count = 0, node = NO_NODE;

    mt_named_frames_get(&writer->named, stack, frames, &count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = mt_frame_function(arena, symbols, frames[i]);
        const char *place = mt_frame_position(arena, symbols, frames[i]);

        node = node_of(writer, node,
                       frame_of(writer, name, place, mt_frame_origin(symbols, frames[i])));
    }
    return node;
}

static uint32_t node_of_group(struct writer *writer, const struct mt_history_group *group)
{
    if (group->stack == MT_NO_ID && group->detail <= MT_HISTORY_BY_STACK)
        return node_without_stack(writer, group);
    return node_of_stack(writer, group->stack);
}

/* Returns the phase and the step in which a block was allocated. */
static const char *birth_of(struct writer *writer, const struct mt_block_shape *block)
{
    const struct mt_report *report = writer->report;
    bool known = block->life.phase >= 0 && (uint32_t)block->life.phase < report->phase_count;

    if (block->life.initial)
        return "before the recorded history";
    return mt_chart_frame_where(&writer->drawing, report, block->life.phase,
                                known ? report->phases[block->life.phase].step : MT_NO_STEP);
}

/* Adds the row of a block. Times are nanoseconds since the first event, as on the axis. */
static void add_block(struct writer *writer, const struct mt_block_shape *block)
{
    struct mt_buf *out = &writer->block_text;
    bool ended = block->end.event != UINT64_MAX;
    uint64_t zero = writer->report->first_t_ns;
    uint32_t node = node_of_stack(writer, block->life.stack);

    mt_buf_printf(out, "%s[\"%s\"", out->length ? "," : "",
                  writer->keys.texts[writer->keys.count - 1]);
    add_list(out, (int64_t)block->life.block_bytes);
    add_list(out, (int64_t)block->life.requested_bytes);
    add_list(out, block->life.initial ? -1 : (int64_t)(block->life.birth_t_ns - zero));
    add_list(out, ended ? (int64_t)block->end.event : -1);
    add_list(out, ended ? (int64_t)(block->end.t_ns - zero) : -1);
    add_list(out, (int64_t)block->life.role);
    add_list(out, string_of(writer, birth_of(writer, block)));
    add_list(out, string_of(writer, block->site ? block->site : ""));
    add_list(out, block->operation ? (int64_t)string_of(writer, block->operation) : -1);
    add_list(out, node == NO_NODE ? -1 : (int64_t)node);
    mt_buf_add_char(out, ']');
}

/* Adds the rows of blocks. A block that is in several charts has one row. */
static void add_blocks(struct writer *writer, const struct mt_block_shape *blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *key = mt_block_key(&writer->drawing.arena, &blocks[i]);
        uint32_t before = writer->keys.count, id;

        mt_strings_put(&writer->keys, key, strlen(key), &id);
        if (writer->keys.count > before)
            add_block(writer, &blocks[i]);
    }
}

/* Adds everything that has a key in a chart. */
static void add_all_blocks(struct writer *writer)
{
    const struct mt_device_report *device = writer->device;
    const struct mt_block_set *set;

    if (device->blocks) {
        set = writer->history->by_event ? &device->blocks->event : &device->blocks->time;
        add_blocks(writer, set->blocks, set->block_count);
        add_blocks(writer, device->blocks->around.blocks, device->blocks->around.block_count);
    }
    if (device->address)
        add_blocks(writer, device->address->blocks, device->address->block_count);
}

static uint64_t unit_of(const struct mt_history *history)
{
    uint64_t unit = 0;

    for (uint32_t i = 0; i < history->change_count; i++)
        unit = mt_greatest_divisor(mt_magnitude(history->changes[i].bytes), unit);
    for (uint32_t i = 0; i < history->group_count; i++)
        unit = mt_greatest_divisor(history->groups[i].block_bytes, unit);
    return unit ? unit : 1;
}

static void add_groups(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->history->group_count; i++) {
        const struct mt_history_group *group = &writer->history->groups[i];
        uint32_t node = node_of_group(writer, group);

        add_list(&writer->group_text, node == NO_NODE ? -1 : (int64_t)node);
        add_list(&writer->group_text, string_of(writer, group->site));
        add_list(&writer->group_text, group->phase ? (int64_t)string_of(writer, group->phase) : -1);
        add_list(&writer->group_text, group->role);
        add_list(&writer->group_text, (int64_t)(group->block_bytes / writer->unit));
        add_list(&writer->group_text, group->detail);
    }
}

static void add_changes(const struct writer *writer, struct mt_buf *out)
{
    const struct mt_history *history = writer->history;

    mt_buf_add_text(out, ",\"changes\":[");
    for (uint32_t i = 0; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];

        mt_buf_add_text(out, i ? ",[" : "[");
        for (uint32_t j = 0; j < column->change_count; j++) {
            const struct mt_history_change *change = &history->changes[column->first_change + j];

            add_list(out, change->group);
            add_list(out, change->bytes / (int64_t)writer->unit);
            add_list(out, change->blocks);
        }
        mt_buf_add_char(out, ']');
    }
    mt_buf_add_char(out, ']');
}

static void add_decimal(struct mt_buf *out, double value)
{
    add_comma(out);
    mt_buf_add_decimal(out, value, 1);
}

static void add_plot(struct writer *writer, struct mt_buf *out)
{
    const struct mt_history *history = writer->history;
    const struct mt_time_axis *axis = &writer->layout.axis;
    const struct mt_box *plot = &writer->layout.plot;

    mt_buf_add_text(out, ",\"plot\":[");
    add_decimal(out, plot->x);
    add_decimal(out, plot->y);
    add_decimal(out, plot->width);
    add_decimal(out, plot->height);
    mt_buf_add_text(out, "],\"xs\":[");
    for (uint32_t i = 0; i < history->column_count; i++)
        add_decimal(out, mt_time_axis_x(axis, history->columns[i].begin_t_ns,
                                        history->columns[i].begin_event));
    add_decimal(out, axis->left + axis->width);
    mt_buf_add_char(out, ']');
}

static void add_columns(struct writer *writer, struct mt_buf *out)
{
    const struct mt_history *history = writer->history;
    const struct mt_report *report = writer->report;

    mt_buf_add_text(out, ",\"t\":[");
    for (uint32_t i = 0; i < history->column_count; i++)
        add_list(out, (int64_t)(history->columns[i].t_ns - report->first_t_ns));
    mt_buf_add_text(out, "],\"event\":[");
    for (uint32_t i = 0; i < history->column_count; i++)
        add_list(out, (int64_t)history->columns[i].event);
    mt_buf_add_text(out, "],\"reserved\":[");
    for (uint32_t i = 0; i < history->column_count; i++)
        add_list(out, (int64_t)history->columns[i].bytes.reserved);
    mt_buf_add_text(out, "],\"where\":[");
    for (uint32_t i = 0; i < history->column_count; i++) {
        int32_t phase = history->columns[i].phase;
        int64_t step = phase >= 0 ? report->phases[phase].step : MT_NO_STEP;

        add_list(out,
                 string_of(writer, mt_chart_frame_where(&writer->drawing, report, phase, step)));
    }
    mt_buf_add_char(out, ']');
}

static void add_strings(const struct writer *writer, struct mt_buf *out)
{
    mt_buf_add_text(out, ",\"strings\":[");
    for (uint32_t i = 0; i < writer->strings.count; i++) {
        if (i)
            mt_buf_add_char(out, ',');
        mt_escape_add_script_string(out, writer->strings.texts[i], NAME_COLUMNS);
    }
    mt_buf_add_char(out, ']');
}

static void add_part(struct mt_buf *out, const char *name, const struct mt_buf *part)
{
    mt_buf_printf(out, ",\"%s\":[", name);
    mt_buf_add(out, part->data ? part->data : "", part->length);
    mt_buf_add_char(out, ']');
}

static void release(struct writer *writer)
{
    mt_drawing_release(&writer->drawing);
    mt_strings_release(&writer->strings);
    mt_strings_release(&writer->keys);
    mt_map_release(&writer->nodes);
    mt_map_release(&writer->frames);
    mt_buf_release(&writer->node_text);
    mt_buf_release(&writer->frame_text);
    mt_buf_release(&writer->group_text);
    mt_buf_release(&writer->block_text);
}

static void write_history(struct mt_buf *out, const struct mt_report *report,
                          const struct mt_device_report *device, const struct mt_history *history,
                          bool with_blocks)
{
    const struct mt_chart_options options = {.event_axis = history->by_event};
    struct writer writer = {.report = report, .device = device, .history = history};

    memset(&writer.drawing, 0, sizeof writer.drawing);
    writer.unit = unit_of(history);
    if (!mt_timeline_lay_out(report, device, &options, &writer.drawing, &writer.layout)) {
        release(&writer);
        return;
    }
    mt_named_frames_init(&writer.named, &writer.drawing.arena, report->symbols);
    mt_buf_printf(out, "{\"device\":%u,\"unit\":%llu,\"small\":%llu", (unsigned)device->device,
                  (unsigned long long)writer.unit, (unsigned long long)history->small_bytes);
    add_plot(&writer, out);
    add_columns(&writer, out);
    add_groups(&writer);
    if (with_blocks)
        add_all_blocks(&writer);
    add_part(out, "nodes", &writer.node_text);
    add_part(out, "frames", &writer.frame_text);
    add_part(out, "groups", &writer.group_text);
    add_part(out, "blocks", &writer.block_text);
    add_changes(&writer, out);
    add_strings(&writer, out);
    mt_buf_add_char(out, '}');
    release(&writer);
}

/* Makes a copy of the history that can be reduced without a change to the report. */
static void copy_history(struct mt_arena *arena, const struct mt_history *history,
                         struct mt_history *copy)
{
    *copy = *history;
    copy->columns = mt_arena_array(arena, (size_t)history->column_count + 1, sizeof *copy->columns);
    copy->groups = mt_arena_array(arena, (size_t)history->group_count + 1, sizeof *copy->groups);
    copy->changes = mt_arena_array(arena, (size_t)history->change_count + 1, sizeof *copy->changes);
    memcpy(copy->columns, history->columns, history->column_count * sizeof *copy->columns);
    if (history->group_count)
        memcpy(copy->groups, history->groups, history->group_count * sizeof *copy->groups);
    if (history->change_count)
        memcpy(copy->changes, history->changes, history->change_count * sizeof *copy->changes);
}

/* Writes the history in the finest form that fits in `most_bytes`. Returns false if none of a
 * bounded number of tries fits. */
static bool fit_history(struct mt_buf *text, const struct mt_report *report,
                        const struct mt_device_report *device, bool with_blocks, size_t most_bytes)
{
    const int tries = with_blocks ? TRIES_WITH_BLOCKS : TRIES;
    struct mt_arena arena = {0};
    struct mt_history history;
    bool fits = false;

    copy_history(&arena, device->history, &history);
    for (int i = 0; i < tries && !fits; i++) {
        if (i)
            mt_history_reduce(&history, history.group_count / 2, history.change_count / 4 * 3);
        mt_buf_reset(text);
        write_history(text, report, device, &history, with_blocks);
        fits = text->length <= most_bytes;
    }
    mt_arena_release(&arena);
    return fits;
}

void mt_page_add_data(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device, size_t most_bytes, bool *has_blocks)
{
    struct mt_buf text = {0};
    bool fits;

    *has_blocks = most_bytes >= BLOCKS_BYTES;
    fits = fit_history(&text, report, device, *has_blocks, most_bytes);
    if (*has_blocks && !fits) {
        *has_blocks = false;
        fits = fit_history(&text, report, device, false, most_bytes);
    }
    if (fits && text.length)
        mt_buf_add(out, text.data, text.length);
    mt_buf_release(&text);
}
