#include "page_blocks.h"
#include "page_text.h"
#include "report_page.h"

#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "history.h"
#include "process_memory.h"
#include "report_rows.h"
#include "time_axis.h"
#include "timeline_layout.h"
#include "util.h"
#include "work_kinds.h"

enum {
    NAME_COLUMNS = 160,
    TRIES = 12,
    TRIES_WITH_BLOCKS = 3, /* then dropping the rows is better than a coarser history */
    BLOCKS_BYTES = 120000, /* with less room, the page has no rows of blocks */
    MIN_BLOCKS = 2000,     /* with fewer rows, a coarser history is better */
    NS_PER_US = 1000,
    NS_PER_S = 1000000000,
    MAX_STEPS = 1000,
    MAX_PHASES = 1500,
    MAX_OOMS = 100
};

static uint64_t unit_of(const struct mt_history *history)
{
    uint64_t unit = 0;

    for (uint32_t i = 0; i < history->change_count; i++)
        unit = mt_greatest_divisor(mt_magnitude(history->changes[i].bytes), unit);
    for (uint32_t i = 0; i < history->group_count; i++)
        unit = mt_greatest_divisor(history->groups[i].block_bytes, unit);
    return unit ? unit : 1;
}

static void add_groups(struct mt_page_data *writer)
{
    for (uint32_t i = 0; i < writer->history->group_count; i++) {
        const struct mt_history_group *group = &writer->history->groups[i];
        uint32_t node = mt_page_group_node(writer, group);

        mt_page_add_number(&writer->group_text, node == MT_PAGE_NO_NODE ? -1 : (int64_t)node);
        mt_page_add_number(&writer->group_text, mt_page_string(writer, group->site));
        mt_page_add_number(&writer->group_text,
                           group->phase ? (int64_t)mt_page_string(writer, group->phase) : -1);
        mt_page_add_number(&writer->group_text, group->role);
        mt_page_add_number(&writer->group_text, (int64_t)(group->block_bytes / writer->unit));
        mt_page_add_number(&writer->group_text, group->detail);
        mt_page_add_number(&writer->group_text, mt_page_string(writer, group->stream));
        mt_page_add_number(&writer->group_text, mt_page_string(writer, group->pool));
        mt_page_add_number(&writer->group_text, mt_page_string(writer, group->tag));
    }
}

static void add_changes(struct mt_page_data *writer)
{
    const struct mt_history *history = writer->history;
    struct mt_buf *out = &writer->change_text;

    mt_buf_reset(out);
    mt_buf_add_text(out, ",\"changes\":[");
    for (uint32_t i = 0; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];

        mt_buf_add_text(out, i ? ",[" : "[");
        for (uint32_t j = 0; j < column->change_count; j++) {
            const struct mt_history_change *change = &history->changes[column->first_change + j];

            mt_page_add_number(out, change->group);
            mt_page_add_number(out, change->bytes / (int64_t)writer->unit);
            mt_page_add_number(out, change->blocks);
        }
        mt_buf_add_char(out, ']');
    }
    mt_buf_add_char(out, ']');
}

static int64_t time_of(const struct mt_page_data *writer, uint64_t t_ns)
{
    return (int64_t)(t_ns - writer->report->first_t_ns);
}

/* The busy time of the axis, or its events. */
static void add_axis(const struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_timeline *axis = &writer->history->axis;

    mt_buf_printf(out, ",\"by_event\":%d,\"first_step\":%u,\"events\":[%llu,%llu],\"spans\":[",
                  writer->history->by_event, writer->history->first_step_percent,
                  (unsigned long long)axis->first_event, (unsigned long long)axis->last_event);
    for (uint32_t i = 0; i < axis->span_count; i++) {
        mt_page_add_number(out, time_of(writer, axis->spans[i].begin_t_ns));
        mt_page_add_number(out, time_of(writer, axis->spans[i].end_t_ns));
    }
    mt_buf_add_char(out, ']');
}

static const char *place_of(struct mt_page_data *writer, const struct mt_history_column *column)
{
    int32_t phase = column->phase;
    int64_t step = phase >= 0 ? writer->report->phases[phase].step : MT_NO_STEP;

    return mt_chart_frame_where(&writer->drawing, writer->report, phase, step);
}

/* Phases and steps of the instants: pairs of a number of columns and a string. */
static void add_places(struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_history *history = writer->history;
    uint32_t count = 0, last = 0;

    mt_buf_add_text(out, ",\"where\":[");
    for (uint32_t i = 0; i < history->column_count; i++, count++) {
        const struct mt_history_column *column = &history->columns[i];
        uint32_t place = i && column->phase == column[-1].phase
                             ? last
                             : mt_page_string(writer, place_of(writer, column));

        if (count && place != last) {
            mt_page_add_number(out, count);
            mt_page_add_number(out, last);
            count = 0;
        }
        last = place;
    }
    mt_page_add_number(out, count);
    mt_page_add_number(out, last);
    mt_buf_add_char(out, ']');
}

/* Pairs of the first column and the number of columns that have a single event. */
static void add_exact(const struct mt_history *history, struct mt_buf *out)
{
    uint32_t count = 0;

    mt_buf_add_text(out, ",\"exact\":[");
    for (uint32_t i = 0; i <= history->column_count; i++) {
        if (i < history->column_count && history->columns[i].is_exact) {
            count++;
            continue;
        }
        if (count) {
            mt_page_add_number(out, i - count);
            mt_page_add_number(out, count);
        }
        count = 0;
    }
    mt_buf_add_char(out, ']');
}

/* Numbers of the columns. All but the instants are differences from the previous column; an instant
 * is the difference from the start of its column. */
static void add_columns(struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_history *history = writer->history;
    struct mt_history_column before = {.begin_t_ns = writer->report->first_t_ns};
    static const char *const names[] = {"begin", "begin_event", "t", "event", "reserved"};

    for (size_t name = 0; name < MT_ARRAY_LEN(names); name++) {
        struct mt_history_column last = before;

        mt_buf_printf(out, ",\"%s\":[", names[name]);
        for (uint32_t i = 0; i < history->column_count; i++) {
            const struct mt_history_column *column = &history->columns[i];
            const int64_t values[] = {(int64_t)(column->begin_t_ns - last.begin_t_ns),
                                      (int64_t)(column->begin_event - last.begin_event),
                                      (int64_t)(column->t_ns - column->begin_t_ns),
                                      (int64_t)(column->event - column->begin_event),
                                      (int64_t)(column->bytes.reserved - last.bytes.reserved)};

            mt_page_add_number(out, values[name]);
            last = *column;
        }
        mt_buf_add_char(out, ']');
    }
    add_exact(history, out);
    add_places(writer, out);
}

/* The first and the last column whose changes are those of a step or a phase; -1, -1: unknown. */
static void add_range_columns(const struct mt_page_data *writer, struct mt_buf *out, int32_t phase,
                              uint64_t end_event)
{
    int64_t before = MT_HISTORY_NO_CUT, last = MT_HISTORY_NO_CUT;

    if (phase >= 0) {
        const struct mt_phase *range = &writer->report->phases[phase];

        before = mt_history_cut_column(writer->history, mt_phase_last_event_before(range));
        last = mt_history_cut_column(writer->history, end_event);
    }
    bool is_known = before != MT_HISTORY_NO_CUT && last > before;
    mt_page_add_number(out, is_known ? before + 1 : -1);
    mt_page_add_number(out, is_known ? last : -1);
}

static void add_range(const struct mt_page_data *writer, struct mt_buf *out, uint64_t begin_t_ns,
                      uint64_t end_t_ns, uint64_t begin_event, uint64_t end_event)
{
    mt_page_add_number(out, time_of(writer, begin_t_ns));
    mt_page_add_number(out, time_of(writer, end_t_ns));
    mt_page_add_number(out, (int64_t)begin_event);
    mt_page_add_number(out, (int64_t)end_event);
}

/* Rows below the timeline. If there are too many, steps are left out, or the shortest phases. */
static void add_steps(const struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_device_report *device = writer->device;
    struct mt_buf columns = {0};

    mt_buf_add_text(out, ",\"steps\":[");
    for (uint32_t i = 0; device->step_count <= MAX_STEPS && i < device->step_count; i++) {
        const struct mt_step_use *step = &device->steps[i];

        mt_page_add_number(out, step->step);
        add_range(writer, out, step->begin_t_ns, step->end_t_ns, step->begin_event,
                  step->end_event);
        add_range_columns(writer, &columns, step->phase, step->end_event);
    }
    mt_buf_printf(out, "],\"steps_in_all\":%u", (unsigned)device->step_count);
    mt_page_add_part(out, "step_columns", &columns);
    mt_buf_release(&columns);
}

static uint64_t length_of(const struct mt_page_data *writer, const struct mt_phase *phase)
{
    return writer->history->by_event ? phase->end_event - phase->begin_event
                                     : phase->end_t_ns - phase->begin_t_ns;
}

static void add_phases(struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_report *report = writer->report;
    struct mt_time_axis axis = {.report = report}; /* its colors of names are those of charts */
    uint64_t *lengths = mt_memory_new(((size_t)report->phase_count + 1) * sizeof *lengths);
    struct mt_buf columns = {0};
    size_t count = 0;

    for (uint32_t i = 0; i < report->phase_count; i++)
        if (report->main_phase[i])
            lengths[count++] = length_of(writer, &report->phases[i]);
    struct mt_largest longest = mt_largest_of(lengths, count, MAX_PHASES);
    free(lengths);
    mt_buf_add_text(out, ",\"phases\":[");
    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        if (!report->main_phase[i])
            continue;
        const struct mt_axis_name *name = mt_time_axis_name(&axis, phase->name);
        if (!mt_report_rows_is_large(&longest, length_of(writer, phase)))
            continue;
        mt_page_add_number(out, mt_page_string(writer, phase->name));
        mt_page_add_number(out, (name ? name->color : mt_phase_color(phase->name, 0)) -
                                    MT_COLOR_PHASE_0);
        add_range(writer, out, phase->begin_t_ns, phase->end_t_ns, phase->begin_event,
                  phase->end_event);
        add_range_columns(writer, &columns, (int32_t)i, phase->end_event);
    }
    mt_buf_printf(out, "],\"phases_in_all\":%zu", count);
    mt_page_add_part(out, "phase_columns", &columns);
    mt_buf_release(&columns);
}

static void add_marks(const struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_device_report *device = writer->device;
    const struct mt_peak *peak = &device->allocated_peak;

    mt_buf_add_text(out, ",\"peak\":[");
    mt_page_add_number(out, time_of(writer, peak->t_ns));
    mt_page_add_number(out, (int64_t)peak->event);
    mt_page_add_number(out, (int64_t)peak->bytes);
    mt_buf_printf(out, "],\"limit\":%llu,\"ooms\":[",
                  (unsigned long long)mt_timeline_limit(device));
    for (uint32_t i = 0; i < device->oom_count && i < MAX_OOMS; i++) {
        mt_page_add_number(out, time_of(writer, device->oom_list[i].t_ns));
        mt_page_add_number(out, (int64_t)device->oom_list[i].event);
        mt_page_add_number(out, (int64_t)device->oom_list[i].request_bytes);
    }
    mt_buf_printf(out, "],\"ooms_in_all\":%u", (unsigned)device->oom_count);
}

static void add_strings(const struct mt_page_data *writer, struct mt_buf *out)
{
    mt_buf_add_text(out, ",\"strings\":[");
    for (uint32_t i = 0; i < writer->strings.count; i++) {
        if (i)
            mt_buf_add_char(out, ',');
        mt_escape_add_script_string(out, writer->strings.texts[i], NAME_COLUMNS);
    }
    mt_buf_add_char(out, ']');
}

static void release(struct mt_page_data *writer)
{
    mt_drawing_release(&writer->drawing);
    mt_strings_release(&writer->strings);
    mt_map_release(&writer->nodes);
    mt_map_release(&writer->stack_nodes);
    mt_map_release(&writer->frames);
    mt_map_release(&writer->known_frames);
    mt_buf_release(&writer->node_text);
    mt_buf_release(&writer->frame_text);
    mt_buf_release(&writer->group_text);
    mt_buf_release(&writer->kind_text);
    mt_buf_release(&writer->block_text);
}

/* Writes the history that `base` has, with the first `blocks` blocks. Returns whether it fits, and
 * sets the room for the rows of blocks. */
static bool write_history(struct mt_buf *out, struct mt_page_data *base, uint32_t blocks)
{
    struct mt_page_data writer = *base;

    mt_buf_reset(out);
    mt_drawing_init(&writer.drawing, 1, 1, "words");
    mt_named_frames_init(&writer.named, &writer.drawing.arena, writer.report->symbols);
    mt_buf_printf(out, "{\"device\":%u,\"unit\":%llu,\"small\":%llu",
                  (unsigned)writer.device->device, (unsigned long long)writer.unit,
                  (unsigned long long)writer.history->small_bytes);
    add_axis(&writer, out);
    add_columns(&writer, out);
    add_marks(&writer, out);
    add_steps(&writer, out);
    add_phases(&writer, out);
    add_groups(&writer);
    size_t used = out->length + writer.group_text.length + writer.change_text.length;
    base->block_room = mt_sub_or_0_u64(writer.most_bytes, used);
    bool fits = mt_page_add_blocks(&writer, blocks, base->block_room);
    if (fits) {
        mt_page_add_part(out, "nodes", &writer.node_text);
        mt_page_add_part(out, "frames", &writer.frame_text);
        mt_page_add_part(out, "groups", &writer.group_text);
        mt_page_add_block_rows(&writer, out);
        mt_buf_add(out, writer.change_text.data, writer.change_text.length);
        add_strings(&writer, out);
        mt_buf_add_char(out, '}');
    }
    release(&writer);
    return fits && out->length <= writer.most_bytes;
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

/* Writes the history in the finest form that fits in `most_bytes`, with the first `blocks` blocks.
 * Returns false if none of a bounded number of tries fits. */
static bool fit_history(struct mt_buf *text, const struct mt_report *report,
                        const struct mt_device_report *device, uint32_t blocks, size_t most_bytes)
{
    const bool is_long = report->last_t_ns - report->first_t_ns >= NS_PER_S;
    const int tries = blocks ? TRIES_WITH_BLOCKS : TRIES;
    struct mt_arena arena = {0};
    struct mt_history history;
    struct mt_page_data base = {.report = report,
                                .device = device,
                                .history = &history,
                                .most_bytes = most_bytes,
                                .time_unit = is_long ? NS_PER_US : 1}; /* a page shows no more */
    bool fits = false;

    copy_history(&arena, device->history, &history);
    for (int i = 0; i < tries && !fits; i++) {
        if (i) {
            mt_history_shorten(&history, MT_HISTORY_EXACT >> i);
            mt_history_reduce(&history, history.group_count / 2, history.change_count / 4 * 3);
        }
        base.unit = unit_of(&history);
        base.block_room = SIZE_MAX; /* not known yet */
        add_changes(&base);
        for (; !fits; blocks = blocks / 4 * 3) {
            fits = blocks <= base.block_room / MT_PAGE_BLOCK_BYTES &&
                   write_history(text, &base, blocks);
            if (blocks <= MIN_BLOCKS)
                break;
        }
    }
    mt_buf_release(&base.change_text);
    mt_arena_release(&arena);
    return fits;
}

void mt_page_add_data(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device, size_t most_bytes, bool *has_blocks)
{
    struct mt_buf text = {0};

    *has_blocks = *has_blocks && most_bytes >= BLOCKS_BYTES && device->history->block_count;
    bool fits = fit_history(&text, report, device, *has_blocks ? device->history->block_count : 0,
                            most_bytes);
    if (*has_blocks && !fits) {
        *has_blocks = false;
        fits = fit_history(&text, report, device, 0, most_bytes);
    }
    if (fits && text.length)
        mt_buf_add(out, text.data, text.length);
    mt_buf_release(&text);
}

void mt_page_add_roles(struct mt_buf *out)
{
    mt_buf_add_text(out, ",\"roles\":[");
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        mt_buf_printf(out, "%s\"%s\"", i ? "," : "", mt_role_name((enum mt_role)i));
    mt_buf_add_text(out, "],\"stack\":[");
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        mt_page_add_number(out, mt_timeline_stack[i]);
    mt_buf_add_char(out, ']');
}
